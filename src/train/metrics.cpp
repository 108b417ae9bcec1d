#include "src/train/metrics.hpp"

#include <nlohmann/json.hpp>

namespace gs {
namespace {

double per_pair(const Trainer::Step& step) { return step.pairs ? step.loss / double(step.pairs) : 0; }

}  // namespace

MetricsFile::MetricsFile(const fs::path& path) : path_(path), out_(path, std::ios::trunc) {
  if (!out_) throw Error(Fault::output, cat(path.string(), ": cannot be written"));
}

void MetricsFile::write(const Trainer& trainer, const Trainer::Step& since, double seconds, double elapsed_s) {
  write_line(nlohmann::ordered_json{{"step", trainer.steps_done()},
                                    {"epoch", trainer.epoch()},
                                    {"walks", trainer.walks_done()},
                                    {"loss", per_pair(since)},
                                    {"learning_rate", since.learning_rate},
                                    {"pairs_per_s", double(since.pairs) / seconds},
                                    {"elapsed_s", elapsed_s},
                                    {"memory_bytes", trainer.ledger().peak_bytes()}}
                 .dump());
}

void MetricsFile::write_end(const TrainSummary& summary) {
  write_line(nlohmann::ordered_json{{"end", summary.stopped ? "stopped" : "complete"},
                                    {"steps", summary.steps},
                                    {"walks", summary.walks},
                                    {"pairs", summary.pairs},
                                    {"loss", summary.loss},
                                    {"seconds", summary.seconds}}
                 .dump());
}

void MetricsFile::write_line(const std::string& line) {
  out_ << line << '\n' << std::flush;
  if (!out_) throw Error(Fault::output, cat(path_.string(), ": a line could not be written: is the disk full?"));
}

}  // namespace gs
