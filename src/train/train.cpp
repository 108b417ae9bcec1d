#include "graphscale/train.hpp"

#include <algorithm>
#include <cstdio>

#include "src/train/metrics.hpp"

namespace gs {
namespace {

constexpr const char *kConfigFile = "config.json", *kMetricsFile = "metrics.jsonl", *kEmbeddings = "embeddings";

void make_folder(const fs::path& run) {
  std::error_code failure;
  fs::create_directory(run, failure);
  if (failure) throw Error(Fault::output, cat(run.string(), ": cannot be made: ", failure.message()));
}

void check_space(const fs::path& run, const Graph& graph, const Config& config) {
  const Offset wanted = graph.csr().num_nodes() * (4 * Offset(config.model.dim) + 16);
  const Offset free = free_bytes(run);
  if (free < wanted)
    throw Error(Fault::output,
                cat(run.string(), ": about ", human_bytes(double(wanted)), " of embeddings will be written and ",
                    human_bytes(double(free)), " are free on its file system"));
}

/// Writes run/embeddings. Those of an earlier run stay until the new ones are whole, and are whole under another name
/// should the program be killed between the two renames.
void replace_embeddings(const fs::path& run, Rows<const float> rows, const NodeNames& names) {
  const fs::path final = run / kEmbeddings, next = run / "embeddings.next", previous = run / "embeddings.previous";
  try {
    const bool is_first = !fs::exists(final);
    fs::remove_all(next);  // of a run that was killed
    save_embeddings(is_first ? final : next, rows, names);
    fs::remove_all(previous);
    if (is_first) return;
    fs::rename(final, previous);
    fs::rename(next, final);
    fs::remove_all(previous);
  } catch (const fs::filesystem_error& error) {
    throw Error(Fault::output, cat(error.path1().string(), ": cannot be moved or removed: ", error.code().message()));
  }
}

/// Nodes that no walk leaves and none reaches: their vectors stay as they were drawn.
Offset count_untrained(const Csr& graph, bool weighted) {
  weighted = weighted && !graph.weights.empty();
  std::vector<bool> trained(std::size_t(graph.num_nodes()), false);
  for (Offset row = 0; row < graph.num_nodes(); ++row)
    for (Offset arc = graph.offsets[row]; arc < graph.offsets[row + 1]; ++arc)
      if (!weighted || graph.weights[arc] > 0)
        trained[std::size_t(row)] = trained[std::size_t(graph.targets[arc])] = true;
  return Offset(std::count(trained.begin(), trained.end(), false));
}

double loss_a_pair(const Trainer::Step& step) { return step.pairs ? step.loss / double(step.pairs) : 0; }

std::string note_of(const Trainer::Step& since, double seconds) {
  char text[96];
  std::snprintf(text, sizeof text, "%s pairs/s, loss %.4f, lr %.5f", human_count(double(since.pairs) / seconds).c_str(),
                loss_a_pair(since), since.learning_rate);
  return text;
}

void add(Trainer::Step& sum, const Trainer::Step& step) {
  sum.walks += step.walks, sum.pairs += step.pairs, sum.loss += step.loss, sum.learning_rate = step.learning_rate;
}

/// Runs the trainer to its end or to a signal, with progress and metrics.
TrainSummary run_steps(Trainer& trainer, const Config& config, MetricsFile& metrics) {
  TrainSummary summary;
  Trainer::Step since, tail;  // since the last line of metrics; over the last tenth of the run
  const double start_s = now_s();
  double since_s = start_s;
  Progress progress("train", "walks", trainer.walks_total());
  while (!trainer.done() && !stop_requested()) {
    const Trainer::Step step = trainer.step();
    summary.pairs += step.pairs;
    add(since, step);
    if (trainer.walks_done() * 10 > trainer.walks_total() * 9) add(tail, step);
    const double spent_s = std::max(now_s() - since_s, 1e-9);
    progress.advance(step.walks, note_of(since, spent_s));
    if (trainer.steps_done() % config.metrics.every == 0 || trainer.done() || stop_requested()) {
      metrics.write(trainer, since, spent_s, now_s() - start_s);
      if (tail.pairs == 0) summary.loss = loss_a_pair(since);  // of a run stopped before its last tenth
      since = {}, since_s = now_s();
    }
  }
  summary.stopped = !trainer.done();
  summary.seconds = now_s() - start_s;
  summary.steps = trainer.steps_done(), summary.walks = trainer.walks_done();
  if (tail.pairs > 0) summary.loss = loss_a_pair(tail);
  if (!summary.stopped && summary.steps > 0) progress.finish(cat("loss ", summary.loss));
  return summary;
}

/// Trains and saves. An error leaves the run's folder with its record, and embeddings of an earlier run.
TrainSummary train_and_save(Trainer& trainer, const Graph& graph, const Config& config, const fs::path& run) {
  MetricsFile metrics(run / kMetricsFile);
  write_text(run / kConfigFile, to_json(config));
  TrainSummary summary;
  try {
    summary = run_steps(trainer, config, metrics);
    std::vector<float> copy;
    const Rows<const float> rows = trainer.embeddings(copy);
    if (const auto [row, column] = first_not_finite(rows); row >= 0)
      throw Error(Fault::internal, cat("training diverged: column ", column, " of node ", graph.names().name(row),
                                       " is not finite; nothing was saved; lower training.learning_rate"));
    replace_embeddings(run, rows, graph.names());
  } catch (const Error& error) {
    metrics.write_failure(error.what());
    throw Error(error.fault, cat(error.what(), " (", run.string(), " keeps ", kConfigFile, " and ", kMetricsFile,
                                 fs::exists(run / kEmbeddings) ? " beside the embeddings of the earlier run" : "",
                                 "; train into it again, or remove it)"));
  }
  metrics.write_end(summary);
  return summary;
}

void log_setting(const Graph& graph, const std::string& graph_path, const Config& config, Device device, int threads) {
  log_info(cat("graph: ", graph_path, " ", graph.info().id, ", ", with_commas(graph.csr().num_nodes()), " nodes, ",
               with_commas(graph.csr().num_arcs()), " arcs"));
  log_info(cat("device: ", to_string(device), " (", describe(device), ")",
               device.is_cuda() ? "" : cat(", ", threads, threads == 1 ? " thread" : " threads")));
  if (!config.training.deterministic && (threads > 1 || device.is_cuda()))
    log_info("writers share the tables without locks: last bits vary between runs (--deterministic fixes them)");
  if (const Offset untrained = count_untrained(graph.csr(), config.sampler.weighted))
    log_info(cat("nodes never trained: ", with_commas(untrained), " (no edge",
                 graph.csr().weights.empty() ? "" : " of a weight above 0", "); their vectors stay as drawn"));
}

}  // namespace

void check_run_folder(const fs::path& run, bool overwrite) {
  const auto refuse = [&](const char* what) { throw Error(Fault::output, cat("\"", run.string(), "\" ", what)); };
  if (run.empty()) refuse("names no folder for the run");
  std::error_code failure;
  const fs::file_status status = fs::status(run, failure);
  if (fs::is_regular_file(status)) refuse("is a file; the run's folder is expected");
  check_writable(run);
  if (!fs::exists(status)) return;
  const bool empty = fs::is_empty(run, failure);
  if (failure) refuse("cannot be read");
  if (!empty && !fs::exists(run / kMetricsFile))
    refuse("is a folder of something else (it has no metrics.jsonl); choose another");
  if (!overwrite && fs::exists(run / kEmbeddings))
    refuse("holds the embeddings of an earlier run; choose another folder, or pass --overwrite");
}

TrainSummary train(const Graph& graph, const std::string& graph_path, const Config& config, const fs::path& run,
                   bool overwrite) {
  check_run_folder(run, overwrite);
  check_space(run, graph, config);
  const int threads = config.run.threads > 0 ? config.run.threads : hardware_threads();
  const Device device = choose_device(config.run.device);
  log_setting(graph, graph_path, config, device, threads);
  Trainer trainer(graph.csr(), config, device, threads);  // refuses what cannot be trained before anything is written
  log_info(cat("memory: ", human_bytes(double(trainer.plan().total_bytes())), " on ", to_string(device), ", ",
               with_commas(trainer.plan().step_walks), " walks a step"));
  make_folder(run);
  const TrainSummary summary = train_and_save(trainer, graph, config, run);
  log_info(cat(summary.stopped ? "stopped by a signal: " : "", with_commas(summary.pairs), " pairs in ",
               human_seconds(summary.seconds), " (",
               human_count(double(summary.pairs) / std::max(summary.seconds, 1e-9)), " pairs/s), embeddings in ",
               (run / kEmbeddings).string()));
  return summary;
}

}  // namespace gs
