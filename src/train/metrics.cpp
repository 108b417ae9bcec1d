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

void add_stages(const std::vector<StageTime>& stages, Json& line) {
  for (const StageTime& stage : stages)
    line["stages"][stage.name] = {{"busy_s", stage.busy_s}, {"waiting_s", stage.waiting_s}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

void add_shares(const Reading& reading, Json& line) {
  const StoreCounters& counters = reading.since.counters;
  line["unique_share"] = or_null(reading.unique_share);
  Json &cache = line["cache"], &wire = line["wire_bytes_per_s"];
  if (reading.cache) {
    for (const auto& [tier, share] : kCacheTiers) cache[tier] = (*reading.cache).*share;
    for (const auto& [kind, counter] : kWireKinds) wire[kind] = double(counters.*counter) / reading.seconds;
  }
  Json& fetch = line["fetch_s"];
  if (reading.fetch)
    fetch = {{"p50", reading.fetch->p50_s},
             {"p90", reading.fetch->p90_s},
             {"p99", reading.fetch->p99_s},
             {"max", reading.fetch->max_s}};
  Json& batch = line["batch"];
  if (reading.batch) batch = {{"nodes", reading.batch->nodes}, {"distinct_rows", reading.batch->distinct_rows}};
  line["arc_coverage"] = or_null(reading.arc_coverage);
  Json& norm = line["gradient_norm"];
  if (reading.gradient_norm) norm = {{"mean", reading.gradient_norm->mean}, {"max", reading.gradient_norm->max}};
}

void add_card(const std::optional<CardUse>& card, Json& gpu) {
  if (!card) return;
  gpu = {{"busy_share", or_null(card->busy_share)},
         {"used_bytes", or_null(card->used_bytes)},
         {"total_bytes", or_null(card->total_bytes)}};
}

/// A killed run may have left half a line.
void end_with_a_whole_line(const fs::path& path) {
  if (!fs::exists(path)) return;
  const MappedFile file(path);
  const std::string_view text(file.bytes().data, std::size_t(file.bytes().size));
  if (!text.empty() && text.back() != '\n') fs::resize_file(path, text.rfind('\n') + 1);  // npos + 1 is 0
}

}  // namespace

MetricsFile::MetricsFile(const fs::path& path, Monitor& monitor, const RunState* resumed)
    : path_(path), monitor_(monitor) {
  if (resumed) end_with_a_whole_line(path);
  out_.open(path, resumed ? std::ios::app : std::ios::trunc);
  if (!out_) throw Error(Fault::output, cat(path.string(), ": cannot be written"));
  if (resumed) write_line(Json{{"resume", resumed->totals.steps}, {"walks", resumed->totals.walks}}.dump());
}

void MetricsFile::write_checkpoint(const CheckpointWriter::Result& result) {
  Json line{{"checkpoint", result.step}, {"bytes", result.bytes},   {"waited_s", result.waited_s},
            {"write_s", result.write_s}, {"beside", result.beside}, {"best", result.is_best}};
  if (!result.error.empty()) line["error"] = result.error;
  write_line(line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void MetricsFile::write(Training& training, const Training::Step& since, double seconds, double elapsed_s) {
  const Reading reading = monitor_.read(training, since, seconds, elapsed_s);
  Json line{{"step", reading.step},
            {"epoch", reading.epoch},
            {"walks", reading.walks},
            {"loss", since.pairs ? Json(since.loss_a_pair()) : Json()},  // ranks report what they trained later
            {"learning_rate", since.learning_rate},
            {"pairs_per_s", double(since.pairs) / seconds},
            {"elapsed_s", elapsed_s},
            {"memory_bytes", reading.peak_bytes}};
  add_stages(reading.stages, line);
  add_counters(since.counters, line);
  add_shares(reading, line);
  line["memory"] = {{"device", reading.device_bytes},
                    {"host", reading.host_bytes},
                    {"resident_bytes", reading.machine.resident_bytes},
                    {"host_used_bytes", reading.machine.host_used_bytes},
                    {"host_limit_bytes", reading.machine.host_limit_bytes}};
  add_card(reading.machine.card, line["gpu"]);
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
  if (rank) add_stages(rank->stages(), line);
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
