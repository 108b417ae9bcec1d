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
  if (!out_)
    throw Error(Fault::output, cat(path_.string(), ": lines are missing, for they could not be written: is the disk ",
                                   "full? The embeddings are saved"));
}

void MetricsFile::write_failure(const std::string& reason) {
  write_line(nlohmann::ordered_json{{"end", "failed"}, {"reason", reason}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));  // names of nodes are any bytes
}

void MetricsFile::write_line(const std::string& line) {
  if (!out_) return;
  out_ << line << '\n' << std::flush;
  if (!out_) log_warn(cat(path_.string(), ": a line could not be written; no more will follow"));
}

}  // namespace gs
