#include "src/train/metrics.hpp"

#include <nlohmann/json.hpp>

namespace gs {
namespace {

using Json = nlohmann::ordered_json;

/// Sums over all ranks; nothing where nothing was exchanged.
void add_counters(const StoreCounters& counters, Json& line) {
  if (counters.requested_rows == 0) return;
  for (const auto& [name, counter] : kStoreCounters) line["exchange"][name] = counters.*counter;
}

}  // namespace

MetricsFile::MetricsFile(const fs::path& path, const RunState* resumed)
    : path_(path), out_(path, resumed ? std::ios::app : std::ios::trunc) {
  if (!out_) throw Error(Fault::output, cat(path.string(), ": cannot be written"));
  if (resumed) write_line(Json{{"resume", resumed->totals.steps}, {"walks", resumed->totals.walks}}.dump());
}

void MetricsFile::write_checkpoint(const CheckpointWriter::Result& result) {
  Json line{{"checkpoint", result.step}, {"bytes", result.bytes},   {"waited_s", result.waited_s},
            {"write_s", result.write_s}, {"beside", result.beside}, {"best", result.is_best}};
  if (!result.error.empty()) line["error"] = result.error;
  write_line(line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void MetricsFile::write(const Training& training, const Training::Step& since, double seconds, double elapsed_s) {
  Json line{{"step", training.steps_done()},
            {"epoch", training.epoch()},
            {"walks", training.walks_done()},
            {"loss", since.pairs ? Json(since.loss_a_pair()) : Json()},  // ranks report what they trained later
            {"learning_rate", since.learning_rate},
            {"pairs_per_s", double(since.pairs) / seconds},
            {"elapsed_s", elapsed_s},
            {"memory_bytes", training.peak_bytes()}};
  add_counters(since.counters, line);
  write_line(line.dump());
}

void MetricsFile::write_validation(const Training& training, const RankScores& scores, bool is_best, double seconds) {
  Json line{{"validation", training.epochs_done()}, {"step", training.steps_done()}, {"queries", scores.queries}};
  for (const auto& [name, mean] : kRankMeans) line[name] = scores.*mean;
  line["best"] = is_best, line["seconds"] = seconds;
  write_line(line.dump());
}

void MetricsFile::write_end(const TrainSummary& summary, const RankTrainer* rank) {
  Json line{{"end", summary.stopped ? "stopped"
                    : summary.early ? "early"
                                    : "complete"},
            {"steps", summary.steps},
            {"walks", summary.walks},
            {"pairs", summary.pairs},
            {"loss", summary.loss},
            {"seconds", summary.seconds}};
  if (summary.validations > 0)
    line["best"] = {{"mrr", summary.best_mrr},
                    {"epoch", summary.best_epoch},
                    {"validations", summary.validations},
                    {"seconds", summary.validation_seconds}};
  if (rank)
    for (const StageTime& stage : rank->stages())
      line["stages"][stage.name] = {{"busy_s", stage.busy_s}, {"waiting_s", stage.waiting_s}};
  add_counters(summary.counters, line);
  write_last(line.dump());
}

void MetricsFile::write_last(const std::string& line) {
  write_line(line);
  if (!out_)
    throw Error(Fault::output, cat(path_.string(), ": lines are missing, for they could not be written: is the disk ",
                                   "full? The embeddings are saved"));
}

void MetricsFile::write_failure(const std::string& reason) {
  write_line(Json{{"end", "failed"}, {"reason", reason}}.dump(
      -1, ' ', false, Json::error_handler_t::replace));  // names of nodes are any bytes
}

void MetricsFile::write_line(const std::string& line) {
  if (!out_) return;
  out_ << line << '\n' << std::flush;
  if (!out_) log_warn(cat(path_.string(), ": a line could not be written; no more will follow"));
}

}  // namespace gs
