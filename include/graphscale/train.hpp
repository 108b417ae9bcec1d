// Training: from a graph and a configuration to vectors on disk.
#pragma once

#include "graphscale/checkpoint.hpp"
#include "graphscale/plan.hpp"

namespace gs {

/// Learning rate after `share` (0 to 1) of all walks.
double learning_rate_at(const TrainingConfig& training, double share);

struct TrainSummary {
  Offset steps = 0, walks = 0, pairs = 0;
  double seconds = 0;    ///< in the training loop
  double loss = 0;       ///< mean per pair over the last tenth of the run
  bool stopped = false;  ///< by SIGINT or SIGTERM, with what was trained so far saved
};

/// The training loop over tables and buffers on one device; what a benchmark drives and `train` wraps.
///
/// Order    every step is queued on exec.stream; `step` returns when its sums are on the host
/// Threads  on the CPU exec.threads write without locks (Hogwild), or one in walk order where deterministic
class Trainer {
 public:
  /// Uploads the graph and makes the tables. Throws memory where the plan does not fit, usage for deterministic on a
  /// GPU, input for a graph without an arc to walk.
  Trainer(const Csr& graph, const Config& config, Device device, int threads);

  struct Step {
    Offset walks = 0, pairs = 0;
    double loss = 0;  ///< sum over pairs
    double learning_rate = 0;
  };

  bool done() const { return walks_done_ == walks_total_; }
  Step step();  ///< the next walks. Throws internal where the loss diverges: step, learning rate, first bad value

  Offset walks_done() const { return walks_done_; }
  Offset walks_total() const { return walks_total_; }
  Offset steps_done() const { return steps_done_; }
  int epoch() const { return epoch_; }
  const Plan& plan() const { return plan_; }
  const MemoryLedger& ledger() const { return *ledger_; }

  /// The embeddings [n, dim] in host memory: the table itself on the CPU, else copied into `copy`.
  Rows<const float> embeddings(std::vector<float>& copy) const;

 private:
  void check_loss(const Step& step) const;
  std::string first_bad_value() const;

  Config config_;
  kernels::TileShape shape_;
  Plan plan_;
  std::unique_ptr<MemoryLedger> ledger_;
  Stream stream_;
  Exec exec_, writer_;  ///< writer_: the same with one thread where deterministic
  std::unique_ptr<WalkTopology> topology_;
  std::unique_ptr<NegativeTable> negative_table_;
  std::unique_ptr<SkipGram> model_;
  Buffer<RowId> nodes_, negatives_;
  Buffer<kernels::TileResult> results_;
  Buffer<kernels::TrainTotals> totals_;
  kernels::TrainTotals seen_;
  Offset walks_per_epoch_ = 0, walks_total_ = 0, walks_done_ = 0, steps_done_ = 0;
  int epoch_ = 0;
};

/// Throws output where `run` could not become a run's folder now: no writable place, other things in it, or embeddings
/// and not `overwrite`. Makes nothing: for a check before a long load.
void check_run_folder(const fs::path& run, bool overwrite);

/// Trains on `graph` into the folder `run`: config.json, metrics.jsonl, embeddings/. Logs progress to stderr.
///
/// The last line of metrics.jsonl has `end`: complete, stopped (by a signal, embeddings saved) or failed (nothing
/// saved; embeddings of an earlier run are as they were).
/// Throws what check_run_folder, choose_device and Trainer do, before anything is written; internal where training
/// diverges; output where embeddings cannot be written whole.
TrainSummary train(const Graph& graph, const std::string& graph_path, const Config& config, const fs::path& run,
                   bool overwrite);

}  // namespace gs
