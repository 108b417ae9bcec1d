// When a run's checkpoints are written, and where a run goes on.
#pragma once

#include "src/train/metrics.hpp"
#include "src/train/run_folder.hpp"

namespace gs {

/// The checkpoints of a run under way. Of ranks each has one of these, and the same calls are made on all.
class Checkpoints {
 public:
  /// comm: null of training in place. ranks_here: of this machine. metrics: of rank 0, else null. All must outlive
  /// this. from: where the run goes on.
  Checkpoints(const Graph& graph, const Config& config, const fs::path& run, Comm* comm, int ranks_here,
              MetricsFile* metrics, const RunState& from);

  /// Rank 0, after each step: asks `training` to pause where the time has come, and tells of what was written.
  void look(Training& training);

  /// At a pause before the end: whether there is to be a checkpoint.
  bool is_due(const Training& training, bool is_best) const {
    return keeps() && (is_best || training.paused() || training.at_checkpoint());
  }

  /// state: without graph, config and counts, which are added. finished: see Outcome. beside: training goes on
  /// meanwhile. Collective.
  void save(Training& training, RunState state, Rows<const float> finished, bool beside);

  /// Rank 0, once the embeddings are saved: the newest checkpoint then says so.
  void mark_complete();

  /// Why the newest could not be written, or empty. After the last one.
  const std::string& error() const { return error_; }

 private:
  bool keeps() const { return config_.checkpoint.keep > 0; }
  void settle();
  void tell();
  void warn_of(const std::string& error);

  const Graph& graph_;
  const Config& config_;
  Comm* comm_;
  MetricsFile* metrics_;
  fs::path run_;
  std::shared_ptr<NodeNames> relations_;
  CheckpointWriter writer_;
  double last_s_;
  Offset newest_step_;  // of the run, that a checkpoint is of or was tried
  std::string error_;
};

/// Where a run in `run` goes on: at its newest sound checkpoint, which is `graph`'s and fits `config`; null: there is
/// none, and the run starts. Throws input: no checkpoint is sound, or it is of another graph, model or sampler, by
/// name.
std::unique_ptr<Checkpoint> find_resumed(const fs::path& run, const Graph& graph, const Config& config);

/// `config` with what the run chose when it started.
Config resumed_config(const RunState& state, Config config);
void log_resumed(const Checkpoint& checkpoint, const Config& config);  ///< and which options are new

}  // namespace gs
