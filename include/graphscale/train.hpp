// Training: from a graph and a configuration to vectors on disk.
#pragma once

#include "graphscale/checkpoint.hpp"
#include "graphscale/plan.hpp"
#include "graphscale/store.hpp"

namespace gs {

/// With validations, the vectors that are saved are those of the best by filtered MRR; of LINE's both orders, best_*
/// are of the later. Of a resumed run the totals are of all its sessions.
struct TrainSummary : RunTotals {
  bool stopped = false;          ///< by SIGINT, SIGTERM or SIGUSR1, with what was trained so far saved
  bool early = false;            ///< ended for eval.patience
  bool was_complete = false;     ///< there was nothing to resume, and nothing was done
  StoreCounters counters;        ///< of all ranks since the run began or was resumed, where training is exchanged
  std::string checkpoint_error;  ///< why the last checkpoint could not be written, or empty
};

/// Seconds that a stage of training worked, and waited for another stage.
struct StageTime {
  const char* name = "";
  double busy_s = 0, waiting_s = 0;
};

/// What a training has seen of its own work since it was asked last; of exchanged training this rank's.
struct Measures {
  static constexpr std::size_t kLatest = 1024;

  std::vector<StageTime> stages;
  Offset batches = 0, units = 0;        ///< that were looked at: of exchanged training all, in place one
  Offset nodes = 0, distinct_rows = 0;  ///< of those; distinct in a batch, its negatives among them
  std::vector<double> fetch_s;          ///< of the latest fetches, kLatest at most; of exchanged training
  Offset fetches = 0;                   ///< of them all
  double fetching_s = 0, longest_fetch_s = 0;
  kernels::UpdateTotals updates;  ///< of exchanged training: of the rows that this rank owns or has replicas of
  std::map<std::string, Offset> device_bytes, host_bytes;  ///< held now, by purpose
  Device device;
};

/// A run under way, a step at a time: what progress and metrics look at.
class Training {
 public:
  struct Step {
    Offset walks = 0, pairs = 0;
    double loss = 0;  ///< sum over pairs
    double learning_rate = 0;
    StoreCounters counters;  ///< of exchanged training

    double loss_a_pair() const { return pairs ? loss / double(pairs) : 0; }
  };

  virtual ~Training() = default;
  virtual Step step() = 0;  ///< the next walks. Throws internal where the loss diverges: step, learning rate, bad value
  bool done() const { return walks_done_ == walks_total_; }
  /// Goes on where a checkpoint stopped; before the first step. Expects the same steps.
  void resume(const RunState& state);

  /// A pause: no step is under way on any rank, and each may look at its rows. There is one at validations, at
  /// checkpoints that are due by their steps, and soon after rank 0 asked for it; in place after every step.
  virtual void ask_to_pause() { paused_ = true; }
  virtual void end_pause() { paused_ = false; }       ///< and with it what was asked for meanwhile
  bool paused() const { return paused_; }             ///< as rank 0 asked; the same on every rank
  bool at_checkpoint() const;                         ///< by checkpoint.every_steps
  virtual std::vector<TablesPart> parts() const = 0;  ///< the rows here; at a pause or after the end
  virtual const Exec& table_exec() const = 0;         ///< where they are

  /// Whether eval.valid is to be ranked now: at the first step's end after each eval.every epochs, and at the last's.
  bool at_validation() const;
  void end() { walks_total_ = walks_done_; }  ///< after a validation, on every rank: no step follows
  bool stopped() const { return stopped_; }   ///< of a rank: all ended after the same step, for one was told to

  Offset walks_done() const { return walks_done_; }
  Offset walks_total() const { return walks_total_; }
  Offset steps_done() const { return steps_done_; }
  Offset step_walks() const { return step_walks_; }
  int epoch() const { return epoch_; }
  const Config& config() const { return config_; }
  double epochs_done() const { return double(walks_done_) / double(walks_per_epoch_); }
  virtual Offset peak_bytes() const = 0;  ///< of the device's memory held at once
  virtual Measures take_measures() = 0;
  Offset graph_arcs() const { return graph_arcs_; }

 protected:
  /// Refuses what needs no memory to be refused: input for a graph without an arc, usage for deterministic on a GPU and
  /// for more walks than can be counted.
  Training(const Csr& graph, const Config& config, Device device);

  /// The walks of step `step`; steps never span two epochs.
  struct StepWalks {
    int epoch = 0;
    Offset first = 0, count = 0;
    double share = 0;  ///< of all walks, before this step
  };
  StepWalks walks_of(Offset step) const;
  Offset steps_until(Offset walks) const;      ///< the fewest with which so many walks of the run are done
  Offset next_validation(Offset steps) const;  ///< the fewest steps above `steps` after which there is one, or all
  Offset next_pause(Offset steps) const;       ///< the same of validations and checkpoints
  /// Throws where the step's mean loss is not finite or exploded; first_bad_value is called for the message alone.
  void check_loss(const Step& step, const std::function<std::string()>& first_bad_value) const;

  Config config_;
  Offset graph_arcs_;
  Offset walks_per_epoch_ = 0, walks_total_ = 0, walks_done_ = 0, steps_done_ = 0;
  Offset step_walks_ = 1;  ///< at most; the last step of an epoch may have fewer
  int epoch_ = 0;
  bool stopped_ = false, paused_ = false;
};

/// Training in place: tables and buffers on one device, no exchange.
///
/// Order    every step is queued on exec.stream; `step` returns when its sums are on the host
/// Threads  on the CPU exec.threads write without locks (Hogwild), or one in walk order where deterministic
class Trainer : public Training {
 public:
  /// Uploads the graph and makes the tables. Throws memory where the plan does not fit, and what Training throws.
  Trainer(const Csr& graph, const Config& config, Device device, int threads, const StartRows& start = {});

  Step step() override;

  std::vector<TablesPart> parts() const override { return {{{}, model_->tables()}}; }
  const Exec& table_exec() const override { return exec_; }

  const Plan& plan() const { return plan_; }
  const MemoryLedger& ledger() const { return *ledger_; }
  Offset peak_bytes() const override { return ledger_->peak_bytes(); }
  /// Units, nodes and rows are of the first step since the last call, unless looking would take 0.5 % of the time.
  Measures take_measures() override;

  /// The table [relations + n, dim] in host memory: itself on the CPU, else copied into `copy`. Relations come first.
  Rows<const float> table(std::vector<float>& copy) const;
  Offset dense_rows() const { return dense_rows_; }

 private:
  std::string first_bad_value() const;
  void look_at(Offset units, Span<const RowId> nodes, Span<const RowId> negatives);

  void train(const kernels::WalkBatch& units, Span<const RowId> nodes, Span<const RowId> negatives,
             double learning_rate);

  kernels::TileShape shape_;
  kernels::TripleShape triples_;
  Offset dense_rows_;
  Plan plan_;
  std::unique_ptr<MemoryLedger> ledger_, host_ledger_;  ///< host: a graph that the GPU reads through UVA
  Stream stream_;
  Exec exec_, writer_;  ///< writer_: the same with one thread where deterministic
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<NegativeTable> negative_table_;
  std::unique_ptr<KnownTable> known_;
  std::unique_ptr<Model> model_;
  Buffer<RowId> nodes_, negatives_;
  Buffer<kernels::TileResult> results_;
  Buffer<kernels::TrainTotals> totals_;
  kernels::TrainTotals seen_;

  Measures measures_;
  bool looks_ = true;                 // at the next step's nodes
  double looked_s_ = 0, look_s_ = 0;  // when, and what it took
  double sample_share_ = 0;           // of a step's time
  std::vector<std::uint32_t> met_;    // a bit a row
};

/// One rank of exchanged training: a pipeline of sample and deduplicate, fetch, compute, push and update, each on the
/// thread and stream of its own but for fetch and push, which share the exchange's. It runs empty where eval.valid is
/// to be ranked.
///
/// Order    fetched rows lack the updates of at most `training.staleness` steps; with 0 the stages take turns, and a
///          deterministic run has the same bits on any number of ranks
/// Ranks    all ranks of `comm` make one, call step() to the end and then gather; the same graph and configuration
class RankTrainer : public Training {
 public:
  /// Throws memory where the ranks' plans do not fit, and what Training and Comm throw.
  RankTrainer(const Csr& graph, const Config& config, Comm& comm, Device device, int threads,
              const StartRows& start = {});
  ~RankTrainer() override;

  /// This rank's next walks. Pairs, loss and counters are all ranks', as far as they were reported since the last call.
  Step step() override;
  Offset peak_bytes() const override { return ledger_.peak_bytes(); }
  Measures take_measures() override;

  void ask_to_pause() override { asked_to_pause_ = true; }
  void end_pause() override { paused_ = asked_to_pause_ = false; }
  std::vector<TablesPart> parts() const override { return tables_->parts(); }
  const Exec& table_exec() const override { return exchange_; }

  /// out <- the vectors of global rows first .. first + out.count, relations before nodes, on rank 0; others pass rows
  /// without data. After the end or at a validation.
  void gather(Offset first, Rows<float> out) { tables_->gather_centres(first, out); }

  const std::vector<StageTime>& stages() const { return stages_; }       ///< after the end
  double seconds() const { return seconds_; }                            ///< of the pipelines, after the end
  const StoreCounters& counters() const { return tables_->counters(); }  ///< after the end, or between steps roughly
  const kernels::UpdateTotals& updates() const { return tables_->updates(); }
  const Placement& placement() const { return placement_; }
  Offset dense_rows() const { return placement_.dense_rows(); }
  const RankPlan& plan() const { return plan_; }
  const MemoryLedger& ledger() const { return ledger_; }            ///< of the device
  const MemoryLedger& host_ledger() const { return host_ledger_; }  ///< of pinned host memory; on the CPU more RAM

 private:
  class Pipeline;
  struct Slot;

  void make_negatives(const Csr& graph);
  void sample(Slot& slot, const Exec& exec);
  void compute(Slot& slot);
  void note_fetch(double seconds);
  std::string first_bad_value(const Slot& slot) const;

  Comm& comm_;
  kernels::TileShape shape_;
  kernels::TripleShape triples_;
  MemoryLedger ledger_, host_ledger_;
  Stream sampling_stream_, exchange_stream_, compute_stream_;
  Exec sampling_, exchange_, compute_, writer_;
  Placement placement_;
  RankPlan plan_;
  std::unique_ptr<Comm> device_comm_;  // NCCL, where rows lie on a GPU
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<PartitionedTopology> partitioned_;
  std::unique_ptr<NegativeTable> negative_table_;
  std::unique_ptr<KnownTable> known_;
  std::unique_ptr<ShardedTables> tables_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<StageTime> stages_;
  std::atomic<bool> asked_to_pause_ = false;
  double seconds_ = 0;

  std::mutex measures_mutex_;
  Measures measures_;
  std::vector<StageTime> told_stages_;

  std::unique_ptr<Pipeline> pipeline_;  // last, and so the first to go: its threads use all that is above
};

/// What becomes of an earlier run in the same folder.
enum class Existing { refuse, overwrite, resume };

/// Throws output where `run` could not become a run's folder now: no writable place, other things in it, or a run and
/// `refuse`; embeddings without a checkpoint and `resume`. Makes nothing: for a check before a long load.
void check_run_folder(const fs::path& run, Existing existing);

/// The version of the store that the run in `run` was training on, by its newest checkpoint that can be read; or empty.
std::string graph_version_of(const fs::path& run);

/// Trains on `graph` into the folder `run`: config.json, metrics.jsonl, embeddings/, checkpoints/. Logs progress to
/// stderr. In place where one rank can; else as the ranks that `find_world` finds, of which rank 0 writes `run` but for
/// the others' shards of checkpoints.
///
/// resume: goes on at the newest sound checkpoint, or begins where there is none. Deterministic training gives the bits
/// that it would have given without a break; also on another number of ranks, in another placement. A run that is
/// complete is left as it is, unless it is to have more epochs.
///
/// With eval.valid the embeddings are the best that it ranked, replaced whole whenever there are better ones; rank 0
/// then holds the whole table in host memory.
///
/// The last line of metrics.jsonl has `end`: complete, early (for eval.patience), stopped (by a signal, embeddings
/// saved) or failed (embeddings are those of the best validation, if there was one, or of an earlier run).
/// Throws what check_run_folder, choose_device and Trainer do, before anything is written; internal where training
/// diverges; output where embeddings cannot be written whole.
TrainSummary train(const Graph& graph, const std::string& graph_path, const Config& config, const fs::path& run,
                   Existing existing);

}  // namespace gs
