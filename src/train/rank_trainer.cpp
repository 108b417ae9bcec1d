#include <algorithm>
#include <cmath>
#include <thread>

#include "graphscale/train.hpp"

#include "src/train/handover.hpp"

namespace gs {

/// A step's buffers on their way round the pipeline.
struct RankTrainer::Slot {
  std::unique_ptr<StepRows> rows;
  WalkShare share;        // of this rank, host memory
  Buffer<Offset> chosen;  // the share's chosen walks on the device
  Buffer<kernels::TileResult> results;
  Buffer<kernels::TrainTotals> totals;
  Offset step = 0;
  StepWalks walks;
};

namespace {

enum Stage { kSample, kFetch, kCompute, kPush };

/// Adds the time of its scope to a stage, and shows it to a profiler.
class Busy {
 public:
  explicit Busy(StageTime& stage) : stage_(stage), range_(stage.name), start_s_(now_s()) {}
  ~Busy() { std::atomic_ref(stage_.busy_s).fetch_add(now_s() - start_s_); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  StageTime& stage_;
  StageRange range_;
  double start_s_;
};

Exec with(Device device, int threads, const Stream& stream, MemoryLedger& ledger) {
  return {device, threads, stream.get(), &ledger};
}

}  // namespace

/// The stages' threads and the queues between them:
///
///   free -> [sample] -> sampled -> [exchange: fetch] -> fetched -> [the caller: compute] -> computed
///        -> [exchange: push] -> free
///
/// The exchange's thread keeps one schedule on all ranks: it fetches step t as soon as step t - 1 - staleness is
/// pushed. An error in any stage closes every queue and is thrown to the caller; the exchange's thread then ends after
/// the call it is in, which the other ranks still answer.
class RankTrainer::Pipeline {
 public:
  explicit Pipeline(RankTrainer& trainer)
      : trainer_(trainer), first_(trainer.steps_done_), steps_(trainer.next_pause(first_)), start_s_(now_s()) {
    for (const auto& slot : trainer_.slots_) free_.push(slot.get());
    try {
      if (!trainer_.partitioned_) sampler_ = std::thread([this] { guarded([this] { sample_all(); }); });
      exchange_ = std::thread([this] { guarded([this] { exchange_all(); }); });
    } catch (const std::system_error& error) {
      close();
      join();
      throw Error(Fault::memory, cat("a stage's thread cannot be started: ", error.what()));
    }
  }

  ~Pipeline() {
    close();
    join();
  }

  /// The next fetched step, or nullptr after the last.
  Slot* next() {
    Slot* slot = nullptr;
    if (fetched_.pop(slot, trainer_.stages_[kCompute].waiting_s)) return slot;
    rethrow();
    return nullptr;
  }
  void hand_back(Slot* slot) { computed_.push(slot); }

  /// Adds what this rank trained to its next report.
  void add(Offset pairs, double loss) {
    const std::lock_guard lock(mutex_);
    unreported_.pairs += pairs, unreported_.loss += loss;
  }
  /// What all ranks have reported since the last call.
  RankReport take_reported() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reported_, {});
  }
  /// Steps of the run until this pipeline ends; fewer once a rank was told to stop, or rank 0 asked for a pause.
  Offset steps() const { return steps_; }
  bool told_to_stop() const { return told_to_stop_; }
  bool told_to_pause() const { return told_to_pause_; }
  double seconds() const { return now_s() - start_s_; }

  /// Waits for the last push, and for every rank's last report.
  void finish() {
    join();
    rethrow();
  }

 private:
  template <class Body>
  void guarded(const Body& body) {
    try {
      body();
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
      close();
    }
  }
  void close() {
    for (Handover<Slot*>* queue : {&free_, &sampled_, &fetched_, &computed_}) queue->close();
  }
  void join() {
    if (sampler_.joinable()) sampler_.join();
    if (exchange_.joinable()) exchange_.join();
  }
  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  void sample(Slot* slot, Offset step, const Exec& exec) {
    const Busy busy(trainer_.stages_[kSample]);
    slot->step = step;
    trainer_.sample(*slot, exec);
  }

  void sample_all() {
    for (Offset step = first_; step < steps_; ++step) {
      Slot* slot = nullptr;
      if (!free_.pop(slot, trainer_.stages_[kSample].waiting_s)) return;
      sample(slot, step, trainer_.sampling_);
      sampled_.push(slot);
    }
  }

  void exchange_all() {
    Offset fetched = first_, pushed = first_;
    while (pushed < steps_) {
      for (; fetched < steps_ && fetched <= pushed + trainer_.config_.training.steps_behind(); ++fetched)
        if (!fetch(fetched)) return;
      if (!push()) return;
      ++pushed;
    }
    report_last();
    close();
  }

  bool fetch(Offset step) {
    Slot* slot = nullptr;
    if (trainer_.partitioned_) {
      if (!free_.pop(slot, trainer_.stages_[kFetch].waiting_s)) return false;
      sample(slot, step, trainer_.exchange_);
    } else if (!sampled_.pop(slot, trainer_.stages_[kFetch].waiting_s)) {
      return false;
    }
    RankReport mine;
    {
      const std::lock_guard lock(mutex_);
      mine = std::exchange(unreported_, {});
    }
    mine.stop = stop_requested();
    mine.pause = trainer_.asked_to_pause_.exchange(false);
    {
      const Busy busy(trainer_.stages_[kFetch]);
      const double start_s = now_s();
      take_in(trainer_.tables_->fetch(*slot->rows, mine), step);
      trainer_.note_fetch(now_s() - start_s);
    }
    fetched_.push(slot);
    return true;
  }

  /// Every rank sees the same reports with the same step, and so ends after the same one.
  void take_in(const std::vector<RankReport>& reports, Offset step) {
    const std::lock_guard lock(mutex_);
    for (const RankReport& report : reports) {
      reported_.pairs += report.pairs, reported_.loss += report.loss, reported_.counters += report.counters;
      if (!report.stop && !report.pause) continue;
      (report.stop ? told_to_stop_ : told_to_pause_) = true;
      steps_ = std::min<Offset>(steps_, step + 1);
    }
  }

  bool push() {
    Slot* slot = nullptr;
    if (!computed_.pop(slot, trainer_.stages_[kPush].waiting_s)) return false;
    {
      const Busy busy(trainer_.stages_[kPush]);
      const kernels::UpdateRule rule = update_rule(trainer_.config_.training, slot->walks.share, slot->step);
      trainer_.tables_->push(*slot->rows, rule);
      if (slot->step + 1 == steps_) trainer_.tables_->update_head(rule);
      const std::lock_guard lock(trainer_.measures_mutex_);
      trainer_.measures_.updates += trainer_.tables_->take_updates();
    }
    free_.push(slot);
    return true;
  }

  void report_last() {
    StoreCounters counters = trainer_.tables_->tell_counters();
    std::vector<Offset> counts{unreported_.pairs};
    for (const auto& [name, counter] : kStoreCounters) counts.push_back(counters.*counter);
    double loss = unreported_.loss;
    trainer_.comm_.all_reduce(Span<double>(&loss, 1));
    trainer_.comm_.all_reduce(Span<Offset>(counts));
    auto next = counts.begin() + 1;
    for (const auto& [name, counter] : kStoreCounters) counters.*counter = *next++;
    const std::lock_guard lock(mutex_);
    reported_.pairs += counts.front(), reported_.loss += loss, reported_.counters += counters;
  }

  RankTrainer& trainer_;
  const Offset first_;
  std::atomic<Offset> steps_;
  std::atomic<bool> told_to_stop_ = false, told_to_pause_ = false;
  double start_s_;
  Handover<Slot*> free_, sampled_, fetched_, computed_;
  std::mutex mutex_;
  RankReport unreported_, reported_;
  std::exception_ptr failure_;
  std::thread sampler_, exchange_;
};

RankTrainer::RankTrainer(const Csr& graph, const Config& config, Comm& comm, Device device, int threads,
                         const StartRows& start)
    : Training(graph, config, device),
      comm_(comm),
      shape_(tile_shape(config)),
      triples_(triple_shape(config, graph.num_relations)),
      ledger_(device),
      host_ledger_(device, true),
      sampling_stream_(device),
      exchange_stream_(device),
      compute_stream_(device),
      sampling_(with(device, std::max(1, threads / 2), sampling_stream_, ledger_)),
      exchange_(with(device, std::max(1, threads / 2), exchange_stream_, ledger_)),
      compute_(with(device, threads, compute_stream_, ledger_)),
      writer_(with(device, config.training.deterministic ? 1 : threads, compute_stream_, ledger_)),
      placement_(Placement::make(config, graph, comm)),
      stages_{{"sample"}, {"fetch"}, {"compute"}, {"push"}} {
  told_stages_ = stages_;
  shape_.both_ways = !graph.directed;
  const int rank = comm.rank();
  plan_ = plan_rank(config, size_of(graph), placement_.part_of(rank, graph), device, available_bytes(device));
  check_ranks_fit(plan_, comm);
  step_walks_ = plan_.step_walks;
  const TablesShape& shape = plan_.shape;
  if (device.is_cuda() && comm.size() > 1) device_comm_ = open_nccl(comm, config, exchange_);

  if (config.sampler.topology == "partitioned") {
    partitioned_ = std::make_unique<PartitionedTopology>(graph, walk_rule(config), placement_, comm, exchange_);
  } else if (plan_.part.computes) {
    Exec graph_home = sampling_;
    if (config.sampler.topology == "uva") graph_home.ledger = &host_ledger_;
    sampler_ = std::make_unique<Sampler>(graph, config, dense_rows(), graph_home);
    if (keeps_known_triples(config)) known_ = std::make_unique<KnownTable>(graph, graph_home);
  }
  if (plan_.part.computes) make_negatives(graph);
  tables_ = std::make_unique<ShardedTables>(shape, placement_, config.training.seed, comm,
                                            device_comm_ ? *device_comm_ : comm, host_ledger_, exchange_);
  tables_->start_from(start);
  const Offset walks = plan_.part.computes ? shape.step_walks : 0;
  for (int i = 0; i < plan_.steps_in_flight; ++i) {
    auto slot = std::make_unique<Slot>();
    slot->rows = tables_->make_step();
    slot->chosen = {ledger_, plan_.by_start ? walks : 0, "step: chosen walks"};
    slot->results = {ledger_, walks * shape_.tiles_per_walk, "step: results"};
    slot->totals = {ledger_, 1, "step: totals"};
    slots_.push_back(std::move(slot));
  }
}

RankTrainer::~RankTrainer() = default;

void RankTrainer::make_negatives(const Csr& graph) {
  const int own = placement_.owner_index(comm_.rank());
  const Offset rows = own >= 0 ? placement_.rows_of(own) : 0;
  if (config_.sampler.negatives_from == "local" && rows == 0)
    throw Error(Fault::usage, cat("sampler.negatives_from local: rank ", comm_.rank(),
                                  " has no rows of its own to draw from; use auto or global"));
  negative_table_ =
      plan_.local_negatives
          ? std::make_unique<NegativeTable>(graph, config_, dense_rows(), placement_.sequence_of(own), rows, sampling_)
          : std::make_unique<NegativeTable>(graph, config_, dense_rows(), sampling_);
}

void RankTrainer::sample(Slot& slot, const Exec& exec) {
  slot.walks = walks_of(slot.step);
  const StepWalks& walks = slot.walks;
  const TrainingConfig& training = config_.training;
  kernels::WalkBatch batch{training.seed, std::uint32_t(walks.epoch), walks.first, walks.count, shape_.walk_length};
  const int index = placement_.compute_index(comm_.rank()), ranks = int(placement_.compute().size());
  Batch& tiles = slot.rows->batch;
  if (index < 0) {
    slot.share = {walks.first, 0, {}, {}};
  } else if (plan_.by_start) {
    const kernels::Owners owners = placement_.owners();
    slot.share = share_by_start(batch, placement_.nodes(), index, ranks, [&](RowId row) { return owners.owner(row); });
    copy_bytes(slot.chosen.data(), slot.share.chosen.data(), slot.share.count * Offset(sizeof(Offset)), exec);
    batch.chosen = slot.chosen.span().subspan(0, slot.share.count);
  } else {
    slot.share = share_of_walks(walks.first, walks.count, index, ranks, training.deterministic);
  }
  batch.first = slot.share.first, batch.count = slot.share.count;
  tiles.start(batch);
  if (partitioned_) {
    kernels::WalkBatch on_host = batch;
    if (plan_.by_start) on_host.chosen = slot.share.chosen;
    partitioned_->make_walks(on_host, tiles.nodes());
  } else if (batch.count > 0) {
    sampler_->make(batch, tiles.nodes(), exec);
  }
  if (batch.count > 0)
    kernels::ops(exec).draw_negatives(negative_table_->view(tiles.nodes()), batch, shape_.tiles_per_walk,
                                      shape_.shared_negatives, tiles.negatives(), exec);
  tiles.deduplicate(tables_->owners(), RowId(tables_->head_rows()), slot.share.slice_ends, exec);
  wait(exec);
  if (batch.count == 0) return;
  const std::lock_guard lock(measures_mutex_);
  ++measures_.batches, measures_.units += batch.count, measures_.distinct_rows += tiles.slots();
  for (const Batch::Group& group : tiles.groups()) measures_.nodes += group.node_positions;
}

void RankTrainer::note_fetch(double seconds) {
  const std::lock_guard lock(measures_mutex_);
  std::vector<double>& latest = measures_.fetch_s;
  if (latest.size() < Measures::kLatest) {
    latest.push_back(seconds);
  } else {
    latest[std::size_t(measures_.fetches) % Measures::kLatest] = seconds;
  }
  ++measures_.fetches, measures_.fetching_s += seconds;
  measures_.longest_fetch_s = std::max(measures_.longest_fetch_s, seconds);
}

Measures RankTrainer::take_measures() {
  Measures measures;
  {
    const std::lock_guard lock(measures_mutex_);
    measures = std::exchange(measures_, {});
  }
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    StageTime& told = told_stages_[i];
    const StageTime now{told.name, std::atomic_ref(stages_[i].busy_s).load(),
                        std::atomic_ref(stages_[i].waiting_s).load()};
    measures.stages.push_back({now.name, now.busy_s - told.busy_s, now.waiting_s - told.waiting_s});
    told = now;
  }
  measures.device_bytes = ledger_.held(), measures.host_bytes = host_ledger_.held();
  measures.device = compute_.device;
  return measures;
}

void RankTrainer::compute(Slot& slot) {
  const Busy busy(stages_[kCompute]);
  const StepRows& rows = *slot.rows;
  const kernels::WalkBatch& walks = rows.batch.walks();
  if (walks.count == 0) return;
  const Span<kernels::TileResult> results = slot.results.span().subspan(0, walks.count * shape_.tiles_per_walk);
  const kernels::Ops& ops = kernels::ops(compute_);
  if (shape_.kind != kernels::TileKind::triples) {
    ops.train_tiles({shape_, walks, rows.batch.node_slots(), rows.batch.negative_slots(), rows.rows(rows.centres),
                     rows.rows(rows.contexts), 0, 0, results, rows.gradients()},
                    writer_);
  } else {
    kernels::TripleBatch batch;
    batch.shape = triples_, batch.tiles = walks, batch.results = results;
    batch.nodes = rows.batch.node_slots(), batch.negatives = rows.batch.negative_slots();
    batch.rows = rows.rows(rows.contexts), batch.gradients = rows.gradients();
    if (known_) batch.known = known_->view(), batch.global_rows = rows.batch.rows();
    batch.first_entity = RowId(dense_rows());
    ops.train_triples(batch, writer_);
  }
  clear_bytes(slot.totals.data(), sizeof(kernels::TrainTotals), compute_);
  ops.add_totals(results, slot.totals.span(), compute_);
  kernels::TrainTotals totals;
  copy_bytes(&totals, slot.totals.data(), sizeof totals, compute_);
  wait(compute_);

  Step step;
  step.pairs = Offset(totals.pairs), step.loss = totals.loss;
  step.learning_rate = learning_rate_at(config_.training, slot.walks.share);
  check_loss(step, [&] { return first_bad_value(slot); });
  pipeline_->add(step.pairs, step.loss);
}

Training::Step RankTrainer::step() {
  paused_ = false;
  if (!pipeline_) pipeline_ = std::make_unique<Pipeline>(*this);
  Step step;
  Slot* const slot = pipeline_->next();
  GS_EXPECT(slot, "a step after the last");
  epoch_ = slot->walks.epoch;
  ++steps_done_;
  compute(*slot);
  step.walks = slot->walks.count;
  step.learning_rate = learning_rate_at(config_.training, slot->walks.share);
  walks_done_ += step.walks;
  const bool is_last = slot->step + 1 == pipeline_->steps();
  pipeline_->hand_back(slot);
  if (is_last) {
    pipeline_->finish();
    seconds_ += pipeline_->seconds();
    paused_ = pipeline_->told_to_pause();
    if (pipeline_->told_to_stop()) stopped_ = walks_done_ < walks_total_, end();
  }
  const RankReport all = pipeline_->take_reported();
  if (is_last) pipeline_.reset();
  step.pairs = all.pairs, step.loss = all.loss, step.counters = all.counters;
  return step;
}

std::string RankTrainer::first_bad_value(const Slot& slot) const {
  const StepRows& step = *slot.rows;
  for (const auto& [name, table] :
       {std::pair("centre", step.rows(step.centres)), {"context", step.rows(step.contexts)}}) {
    std::vector<float> values(std::size_t(table.count * table.stride));
    std::vector<RowId> ids(std::size_t(table.count));
    copy_bytes(values.data(), table.data, Offset(values.size() * sizeof(float)), compute_);
    copy_bytes(ids.data(), step.batch.rows().data, table.count * Offset(sizeof(RowId)), compute_);
    wait(compute_);
    if (const auto [row, column] = first_not_finite({values.data(), table.count, table.dim, table.stride}); row >= 0)
      return cat("; first bad value: ", values[std::size_t(row * table.stride + column)], " in row ",
                 ids[std::size_t(row)], ", column ", column, " of the ", name, " table");
  }
  return "";
}

}  // namespace gs
