#include "src/train/checkpoints.hpp"

#include <algorithm>

namespace gs {
namespace {

/// Options by which rows mean what they mean and walks are the same ones: a run keeps them.
bool is_kept(const std::string& name) {
  if (name == "sampler.topology" || name == "sampler.negatives_from") return false;
  for (const char* section : {"model.", "sampler."})
    if (name.rfind(section, 0) == 0) return true;
  return name == "training.optimizer" || name == "training.seed" || name == "start.frozen";
}

std::map<std::string, std::string> values_of(const Config& config) {
  std::map<std::string, std::string> values;
  each_option(config, [&](const char* name, const auto& value, const Option&) { values[name] = cat(value); });
  return values;
}

}  // namespace

Checkpoints::Checkpoints(const Graph& graph, const Config& config, const fs::path& run, Comm* comm, int ranks_here,
                         MetricsFile* metrics, const RunState& from)
    : graph_(graph),
      config_(config),
      comm_(comm),
      metrics_(metrics),
      run_(run),
      relations_(relation_row_names(graph.relation_names(), dense_rows_of(config, graph.csr().num_relations))),
      writer_(run, comm ? comm->rank() : 0, comm ? comm->size() : 1, ranks_here, config.checkpoint.keep, graph.names(),
              *relations_),
      last_s_(now_s()),
      newest_step_(from.totals.steps) {}

void Checkpoints::look(Training& training) {
  if (!keeps()) return;
  const bool is_writing = writer_.is_writing();
  if (!is_writing) tell();
  // One that takes that long again is waited for: another rank may have failed to write its part.
  const double every_s = 60 * config_.checkpoint.every_minutes, due_s = is_writing ? 2 * every_s : every_s;
  if (every_s > 0 && now_s() - last_s_ >= due_s) training.ask_to_pause();
}

void Checkpoints::save(Training& training, RunState state, Rows<const float> finished, bool beside) {
  training.end_pause();
  if (!keeps()) return;
  settle();
  if (state.totals.steps == newest_step_ && newest_step_ > 0) return;  // nothing was trained since
  newest_step_ = state.totals.steps;
  last_s_ = now_s();
  state.config = config_;
  state.config.training.step_walks = int(training.step_walks());
  state.graph_version = graph_.info().id, state.graph_hash = graph_.info().content_hash;
  state.nodes = graph_.csr().num_nodes(), state.dense_rows = relations_->size();
  state.steps = training.steps_done(), state.walks = training.walks_done();
  const bool leads = !comm_ || comm_->rank() == 0;
  std::string folder;
  if (leads) try {
      folder = writer_.begin(state).string();
    } catch (const Error& error) {
      warn_of(error.what());
    }
  if (comm_) folder = comm_->gather_texts(folder)[0];
  if (folder.empty()) return;
  const bool copied = writer_.write(folder, state, training.parts(), finished, training.table_exec(), beside);
  Offset waiting = copied ? 0 : 1;
  if (comm_) comm_->all_reduce(Span<Offset>(&waiting, 1));
  if (waiting > 0) settle();
}

void Checkpoints::mark_complete() {
  if (keeps() && error_.empty()) try {
      gs::mark_complete(checkpoint_of(run_, newest_step_));
    } catch (const Error& error) {
      error_ = error.what();
    }
}

/// Waits until the one under way is whole, or known to fail.
void Checkpoints::settle() {
  const bool leads = !comm_ || comm_->rank() == 0;
  if (comm_) {
    wait_for_work(
        *comm_, leads ? std::function<void()>() : [&] { writer_.wait(); });
    const std::optional<CheckpointWriter::Result> own = leads ? std::nullopt : writer_.take_result();
    const std::vector<std::string> errors = comm_->gather_texts(own ? own->error : "");
    const auto failed = std::find_if(errors.begin(), errors.end(), [](const std::string& e) { return !e.empty(); });
    if (leads)
      writer_.others_are_done(failed == errors.end() ? "" : cat("rank ", failed - errors.begin(), ": ", *failed));
    wait_for_work(*comm_, 0, [&] { writer_.wait(); });
  } else {
    writer_.wait();
  }
  if (leads) tell();
}

void Checkpoints::tell() {
  const std::optional<CheckpointWriter::Result> result = writer_.take_result();
  if (!result) return;
  error_.clear();
  if (!result->error.empty()) warn_of(result->error);
  metrics_->write_checkpoint(*result);
}

void Checkpoints::warn_of(const std::string& error) {
  error_ = error;
  log_warn(cat("a checkpoint could not be written, and those before it stay: ", error));
}

std::unique_ptr<Checkpoint> find_resumed(const fs::path& run, const Graph& graph, const Config& config) {
  std::unique_ptr<Checkpoint> found = newest_sound(run, hardware_threads());
  if (!found) return nullptr;
  if (config.checkpoint.keep == 0)
    throw Error(Fault::usage, cat("checkpoint.keep is 0: a run that goes on from ", found->folder().string(),
                                  " needs a checkpoint at its end; give 1 or more"));
  const RunState& state = found->state();
  const auto refuse = [&](const auto&... parts) {
    throw Error(Fault::input, cat(found->folder().string(), ": ", parts...,
                                  "; a run goes on as it began: give the same, or begin another run from its vectors "
                                  "with start.warm_start"));
  };
  if (state.graph_hash != graph.info().content_hash)
    refuse("is of graph version ", state.graph_version, " with content ", state.graph_hash, ", the graph given is ",
           graph.info().id, " with ", graph.info().content_hash);
  const auto theirs = values_of(state.config);
  for (const auto& [name, value] : values_of(config)) {
    if (is_kept(name) && theirs.at(name) != value) refuse(name, " is ", theirs.at(name), ", now ", value);
    if (name == "training.step_walks" && config.training.step_walks > 0 && theirs.at(name) != value)
      refuse(name, " is ", theirs.at(name), ", now ", value);
  }
  const Csr csr = graph.csr();
  if (const Offset an_epoch = units_per_epoch(config, csr.num_nodes(), csr.num_arcs());
      an_epoch * config.training.epochs < state.walks)
    refuse("has done ", double(state.walks) / double(an_epoch), " epochs, training.epochs is now ",
           config.training.epochs);
  if (parts_of(config).size() > 1 && config.training.epochs != state.config.training.epochs &&
      (state.part > 0 || state.complete))
    refuse("has learnt model.order first in ", state.config.training.epochs, " epochs, training.epochs is now ",
           config.training.epochs);
  return found;
}

Config resumed_config(const RunState& state, Config config) {
  config.training.step_walks = state.config.training.step_walks;
  return config;
}

void log_resumed(const Checkpoint& checkpoint, const Config& config) {
  const RunState& state = checkpoint.state();
  log_info(cat("resume: from ", checkpoint.folder().string(), ", step ", with_commas(state.totals.steps), ", ",
               with_commas(state.totals.pairs), " pairs"));
  const auto before = values_of(state.config);
  for (const auto& [name, value] : values_of(config))
    if (before.at(name) != value)
      log_info(cat("resume: ", name, " was ", before.at(name).empty() ? "empty" : before.at(name), ", is now ",
                   value.empty() ? "empty" : value));
}

}  // namespace gs
