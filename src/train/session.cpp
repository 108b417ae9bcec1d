#include "src/train/session.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "src/train/hubs.hpp"

namespace gs {
namespace {

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

std::string note_of(const Training::Step& since, double seconds) {
  if (since.pairs == 0) return "no pair reported yet";
  char text[96];
  std::snprintf(text, sizeof text, "%s pairs/s, loss %.4f, lr %.5f", human_count(double(since.pairs) / seconds).c_str(),
                since.loss_a_pair(), since.learning_rate);
  return text;
}

void add(Training::Step& sum, const Training::Step& step) {
  sum.walks += step.walks, sum.pairs += step.pairs, sum.loss += step.loss, sum.learning_rate = step.learning_rate;
  sum.counters += step.counters;
}

/// The error of a run that began, with what is left of it in its folder.
Error with_folder(const Error& error, const fs::path& run, const Config& config, const TrainSummary& summary) {
  const bool has_saved = summary.validations > 0 && parts_of(config).size() == 1;  // several are saved together
  return Error(error.fault, cat(error.what(), " (", run.string(), " keeps ", kConfigFile, " and ", kMetricsFile,
                                has_saved ? cat(" beside the best embeddings, of epoch ", summary.best_epoch)
                                : fs::exists(run / kEmbeddings) ? " beside the embeddings of the earlier run"
                                : list_checkpoints(run).empty() ? "; nothing was saved"
                                                                : "",
                                list_checkpoints(run).empty()
                                    ? "; train into it again, or remove it)"
                                    : cat("; its checkpoint ", list_checkpoints(run)[0].filename().string(),
                                          " is untouched: --resume goes on there)")));
}

}  // namespace

TrainSummary with_record(const Config& config, const fs::path& run, const RunState* resumed,
                         const std::function<void(MetricsFile&, TrainSummary&)>& body) {
  Monitor monitor(config);
  make_run_folder(run);
  const FolderLock lock(run);
  sweep_leftovers(checkpoints_of(run), lock.is_held());
  TrainSummary summary;
  if (resumed) {
    static_cast<RunTotals&>(summary) = resumed->totals;
  } else {
    remove_folder(checkpoints_of(run));  // else a later resume would find an earlier run
  }
  MetricsFile metrics(run / kMetricsFile, monitor, resumed);
  write_text(run / kConfigFile, to_json(config));
  try {
    body(metrics, summary);
    return summary;
  } catch (const Error& error) {
    metrics.write_failure(error.what());
    throw with_folder(error, run, config, summary);
  } catch (const std::exception& error) {
    metrics.write_failure(error.what());
    throw;
  }
}

void run_steps(Training& training, const Config& config, MetricsFile& metrics, bool stops_itself, TrainSummary& summary,
               const BetweenSteps& between) {
  Training::Step since, tail;  // since the last line of metrics; over the last tenth of the run
  const Offset walks_of_run = training.walks_total();
  const Offset steps_before = summary.steps - training.steps_done();  // of earlier parts
  const Offset walks_before = summary.walks - training.walks_done();
  const double seconds_before = summary.seconds;
  double start_s = now_s(), since_s = start_s;  // later by the time of validations
  std::string judged;
  Progress progress(config.model.kind == "line" ? "train " + config.model.order : "train", unit_name(config),
                    walks_of_run);
  progress.start_at(training.walks_done());
  const auto stopped = [&] { return !stops_itself && stop_requested(); };
  while (!training.done() && !stopped()) {
    const Training::Step step = training.step();
    summary.pairs += step.pairs, summary.counters += step.counters;
    summary.steps = steps_before + training.steps_done(), summary.walks = walks_before + training.walks_done();
    summary.seconds = seconds_before + now_s() - start_s;
    add(since, step);
    metrics.note(training, step);
    if (training.walks_done() * 10 > walks_of_run * 9) add(tail, step);
    const double spent_s = std::max(now_s() - since_s, 1e-9);
    progress.advance(step.walks, cat(note_of(since, spent_s), judged.empty() ? "" : ", ", judged));
    if (!config.eval.valid.empty() && training.at_validation() && !stopped()) {
      const double asked_s = now_s();
      judged = between.validate();
      start_s += now_s() - asked_s, since_s += now_s() - asked_s;
    }
    if (!training.done() && !stopped()) between.save();
    if (training.steps_done() % config.metrics.log_steps == 0 || training.done() || stopped()) {
      metrics.write(training, since, spent_s, now_s() - start_s);
      if (tail.pairs == 0) summary.loss = since.loss_a_pair();  // of a run stopped before its last tenth
      since = {}, since_s = now_s();
    }
  }
  summary.stopped = !training.done() || training.stopped();
  summary.seconds = seconds_before + now_s() - start_s;
  if (tail.pairs > 0) summary.loss = tail.loss_a_pair();
  if (training.walks_done() == walks_of_run && training.steps_done() > 0)
    progress.finish(cat("loss ", summary.loss, judged.empty() ? "" : ", ", judged));
}

void check_place(const Graph& graph, const Config& config, const fs::path& run, Existing existing) {
  check_run_folder(run, existing);
  check_metrics_port(config.metrics);
  check_space(run, graph.csr(), config, existing);
}

bool is_complete(const RunState& state, const Config& config) {
  const bool would_go_on = config.training.epochs > state.config.training.epochs ||
                           (has_lost_patience(state) && config.eval.patience != state.config.eval.patience);
  return state.complete && !would_go_on;
}

TrainSummary left_as_it_is(const fs::path& run, const RunState& state) {
  log_info(cat(run.string(), ": the run is complete (", with_commas(state.totals.steps), " steps, ",
               state.config.training.epochs, " epochs",
               has_lost_patience(state) ? ", ended early by eval.patience" : "",
               ") and is left as it is; more training.epochs would go on"));
  TrainSummary summary;
  static_cast<RunTotals&>(summary) = state.totals;
  summary.was_complete = true;
  return summary;
}

RunState state_of(int part, const RunTotals& totals, const std::optional<Validator>& validator,
                  const Training& training) {
  RunState state;
  state.part = part, state.totals = totals;
  if (validator) validator->add_to(state), state.is_best = validator->is_best_at(training);
  return state;
}

void log_graph(const Graph& graph, const std::string& graph_path, const Config& config) {
  log_info(cat("graph: ", graph_path, " ", graph.info().id, ", ", with_commas(graph.csr().num_nodes()), " nodes, ",
               with_commas(graph.csr().num_arcs()), " arcs",
               graph.csr().relations.empty() ? "" : cat(" of ", with_commas(graph.csr().num_relations), " relations")));
  log_hubs(graph);
  if (const Offset untrained = count_untrained(graph.csr(), config.sampler.weighted))
    log_info(cat("nodes never trained: ", with_commas(untrained), " (no edge",
                 graph.csr().weights.empty() ? "" : " of a weight above 0", "); their vectors stay as drawn"));
}

void log_device(const Config& config, Device device, int threads) {
  log_info(cat("device: ", to_string(device), " (", describe(device), ")",
               device.is_cuda() ? "" : cat(", ", threads, threads == 1 ? " thread" : " threads")));
  if (!config.training.deterministic && (threads > 1 || device.is_cuda()))
    log_info("writers share the tables without locks: last bits vary between runs (--deterministic fixes them)");
}

const char* unit_name(const Config& config) { return tile_kind(config) == kernels::TileKind::walk ? "walks" : "tiles"; }

Outcome::Outcome(const Graph& graph, const Config& config, const fs::path& run, std::size_t parts)
    : graph_(graph),
      run_(run),
      dim_(config.model.dim),
      columns_(config.model.dim / int(parts)),
      joined_(parts > 1 ? std::size_t(graph.csr().num_nodes() * dim_) : 0, 0.0f) {}

void Outcome::keep(std::size_t part, Rows<const float> table) {
  const Offset nodes = graph_.csr().num_nodes(), dense = table.count - nodes;
  if (joined_.empty()) return save_vectors(run_, {dim_, graph_, dense, source_of(table)});
  for (Offset i = 0; i < nodes; ++i) {
    const float* const from = table.row(dense + i);
    float* const to = joined_.data() + i * dim_ + Offset(part) * columns_;
    double squares = 0;
    for (int c = 0; c < columns_; ++c) squares += double(from[c]) * double(from[c]);
    const float factor = squares > 0 ? float(1 / std::sqrt(squares)) : 0;
    for (int c = 0; c < columns_; ++c) to[c] = from[c] * factor;
  }
}

void Outcome::restore(Rows<const float> finished) {
  for (Offset i = 0; i < finished.count; ++i) std::copy_n(finished.row(i), dim_, joined_.data() + i * dim_);
}

bool Outcome::is_kept() const { return !joined_.empty() || fs::exists(run_ / kEmbeddings); }

Rows<const float> Outcome::finished() const {
  return {joined_.data(), joined_.empty() ? 0 : graph_.csr().num_nodes(), dim_, dim_};
}

void Outcome::finish() {
  if (joined_.empty()) return;
  save_vectors(run_, {dim_, graph_, 0, source_of({joined_.data(), graph_.csr().num_nodes(), dim_, dim_})});
}

}  // namespace gs
