#include "graphscale/train.hpp"

#include <algorithm>
#include <cstdio>

#include "src/train/metrics.hpp"

namespace gs {
namespace {

/// Makes the run's folder, or takes one that an earlier run left without embeddings.
void open_run(const fs::path& run, bool overwrite) {
  std::error_code failure;
  if (!fs::exists(run)) {
    check_writable(run);
    if (!fs::create_directory(run, failure)) throw Error(Fault::output, cat(run.string(), ": ", failure.message()));
    return;
  }
  if (!fs::is_directory(run))
    throw Error(Fault::output, cat(run.string(), ": is a file; --out names the run's folder"));
  const bool is_run = fs::exists(run / "config.json");
  if (!is_run && !fs::is_empty(run))
    throw Error(Fault::output, cat(run.string(), ": is a folder of something else; choose another --out"));
  if (!fs::exists(run / "embeddings")) return;
  if (!overwrite)
    throw Error(
        Fault::output,
        cat(run.string(), ": holds the embeddings of an earlier run; choose another --out or pass --overwrite"));
}

void check_space(const fs::path& run, const Graph& graph, const Config& config) {
  const Offset wanted = graph.csr().num_nodes() * (4 * Offset(config.model.dim) + 16);
  const Offset free = free_bytes(run);
  if (free < wanted)
    throw Error(Fault::output,
                cat(run.string(), ": about ", human_bytes(double(wanted)), " of embeddings will be written and ",
                    human_bytes(double(free)), " are free on its file system"));
}

/// Writes run/embeddings; those of an earlier run stay until the new ones are whole.
void replace_embeddings(const fs::path& run, Rows<const float> rows, const NodeNames& names) {
  const fs::path final = run / "embeddings", fresh = run / "embeddings.next";
  if (!fs::exists(final)) return save_embeddings(final, rows, names);
  fs::remove_all(fresh);
  save_embeddings(fresh, rows, names);
  fs::remove_all(final);
  fs::rename(fresh, final);
}

/// Nodes that no walk visits but as its start: their vectors stay as they were drawn.
Offset count_untrained(const Csr& graph) {
  std::vector<bool> reached(std::size_t(graph.num_nodes()), false);
  for (const RowId target : graph.targets) reached[target] = true;
  Offset count = 0;
  for (Offset row = 0; row < graph.num_nodes(); ++row)
    count += graph.degree(row) == 0 && !reached[std::size_t(row)] ? 1 : 0;
  return count;
}

std::string note_of(const Trainer::Step& since, double seconds) {
  char text[96];
  std::snprintf(text, sizeof text, "%s pairs/s, loss %.4f, lr %.5f", human_count(double(since.pairs) / seconds).c_str(),
                since.pairs ? since.loss / double(since.pairs) : 0.0, since.learning_rate);
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
  std::string note;
  Progress progress("train", "walks", trainer.walks_total());
  while (!trainer.done() && !stop_requested()) {
    const Trainer::Step step = trainer.step();
    summary.pairs += step.pairs;
    add(since, step);
    if (trainer.walks_done() * 10 > trainer.walks_total() * 9) add(tail, step);
    const double spent_s = std::max(now_s() - since_s, 1e-9);
    note = note_of(since, spent_s);
    progress.advance(step.walks, note);
    if (trainer.steps_done() % config.metrics.every == 0 || trainer.done()) {
      metrics.write(trainer, since, spent_s, now_s() - start_s);
      since = {}, since_s = now_s();
    }
  }
  summary.stopped = !trainer.done();
  summary.seconds = now_s() - start_s;
  summary.steps = trainer.steps_done(), summary.walks = trainer.walks_done();
  const Trainer::Step& last = tail.pairs ? tail : since;
  summary.loss = last.pairs ? last.loss / double(last.pairs) : 0;
  if (!summary.stopped) progress.finish(note);
  return summary;
}

}  // namespace

TrainSummary train(const Graph& graph, const std::string& graph_path, const Config& config, const fs::path& run,
                   bool overwrite) {
  const int threads = config.run.threads > 0 ? config.run.threads : hardware_threads();
  const Device device = choose_device(config.run.device);
  open_run(run, overwrite);
  check_space(run, graph, config);
  log_info(cat("graph: ", graph_path, " ", graph.info().id, ", ", with_commas(graph.csr().num_nodes()), " nodes, ",
               with_commas(graph.csr().num_arcs()), " arcs"));
  log_info(cat("device: ", to_string(device), " (", describe(device), ")",
               device.is_cuda() ? "" : cat(", ", threads, threads == 1 ? " thread" : " threads")));
  if (!config.training.deterministic && (threads > 1 || device.is_cuda()))
    log_info("writers share the tables without locks: last bits vary between runs (--deterministic fixes them)");

  Trainer trainer(graph.csr(), config, device, threads);
  log_info(cat("memory: ", human_bytes(double(trainer.plan().total_bytes())), " on ", to_string(device), ", ",
               with_commas(trainer.plan().step_walks), " walks a step"));
  if (const Offset untrained = count_untrained(graph.csr()))
    log_info(cat(with_commas(untrained), " nodes have no edge: their vectors stay as drawn"));
  write_text(run / "config.json", to_json(config));
  MetricsFile metrics(run / "metrics.jsonl");

  const TrainSummary summary = run_steps(trainer, config, metrics);

  std::vector<float> copy;
  const Rows<const float> rows = trainer.embeddings(copy);
  if (const auto [row, column] = first_not_finite(rows); row >= 0)
    throw Error(Fault::internal, cat("training diverged: column ", column, " of node ", graph.names().name(row),
                                     " is not finite; nothing was saved; lower training.learning_rate"));
  replace_embeddings(run, rows, graph.names());
  metrics.write_end(summary);
  log_info(cat(summary.stopped ? "stopped by a signal: " : "", with_commas(summary.pairs), " pairs in ",
               human_seconds(summary.seconds), " (",
               human_count(double(summary.pairs) / std::max(summary.seconds, 1e-9)), " pairs/s), embeddings in ",
               (run / "embeddings").string()));
  return summary;
}

}  // namespace gs
