// The first steps of a run, sampled and made unique as it will.
#include <algorithm>

#include "graphscale/plan.hpp"

namespace gs {
namespace {

constexpr Offset kSteps = 3;
constexpr int kRanks = 8;

/// Samples any rank's steps.
class Rehearsal {
 public:
  Rehearsal(const Config& config, const Csr& graph, const Placement& placement, const RankPlan& plan, int threads)
      : config_(config),
        graph_(graph),
        placement_(placement),
        plan_(plan),
        exec_{{}, threads, nullptr, &ledger_},
        sampler_(graph, config, placement.dense_rows(), exec_) {}

  void add_rank(int rank, StepCounts& counts) {
    const int own = placement_.owner_index(rank);
    const Offset rows = own >= 0 ? placement_.rows_of(own) : 0;
    const Offset dense = placement_.dense_rows();
    const NegativeTable negatives =
        plan_.local_negatives && rows > 0
            ? NegativeTable(graph_, config_, dense, placement_.sequence_of(own), rows, exec_)
            : NegativeTable(graph_, config_, dense, exec_);
    const int slices = plan_.shape.deterministic ? kSlices : 1;
    Batch batch(plan_.shape.tile, plan_.shape.step_walks, placement_.rows(), exec_, slices);
    for (Offset step = 0; step < steps(); ++step) {
      sample(batch, negatives, rank, step);
      add(batch, own, counts);
    }
  }

  /// Whole steps of an epoch, up to kSteps; one at least.
  Offset steps() const { return std::clamp<Offset>(walks_of_epoch() / plan_.step_walks, 1, kSteps); }

 private:
  Offset walks_of_epoch() const { return units_per_epoch(config_, graph_.num_nodes(), graph_.num_arcs()); }

  void sample(Batch& batch, const NegativeTable& negatives, int rank, Offset step) const {
    const kernels::TileShape& tile = plan_.shape.tile;
    const Offset first = step * plan_.step_walks, count = std::min(plan_.step_walks, walks_of_epoch() - first);
    kernels::WalkBatch walks{config_.training.seed, 0, first, count, tile.walk_length};
    const int index = placement_.compute_index(rank), ranks = int(placement_.compute().size());
    const kernels::Owners owners = placement_.owners();
    const WalkShare share = plan_.by_start ? share_by_start(walks, placement_.nodes(), index, ranks,
                                                            [&](RowId row) { return owners.owner(row); })
                                           : share_of_walks(first, count, index, ranks, plan_.shape.deterministic);
    walks.first = share.first, walks.count = share.count;
    walks.chosen = share.chosen;
    batch.start(walks);
    sampler_.make(walks, batch.nodes(), exec_);
    kernels::ops(exec_).draw_negatives(negatives.view(batch.nodes()), walks, tile.tiles_per_walk, tile.shared_negatives,
                                       batch.negatives(), exec_);
    batch.deduplicate(owners, RowId(plan_.shape.head_rows), share.slice_ends, exec_);
    count_walkers(batch, placement_.owner_index(rank));
  }

  void add(const Batch& batch, int own, StepCounts& counts) const {
    counts.walks += double(batch.walks().count);
    for (std::size_t g = 0; g < batch.groups().size(); ++g) {
      const Batch::Group& group = batch.groups()[g];
      counts.requested_rows += double(plan_.shape.positions(group));
      StepCounts::Group& sum = g == 0 ? counts.head : int(g) - 1 == own ? counts.local : counts.remote;
      sum.rows += double(group.rows), sum.centres += double(plan_.shape.centre_rows(group));
    }
    counts.travellers += travellers_, counts.news += news_;
  }

  /// As PartitionedTopology moves them; walkers are drawn where their node is.
  void count_walkers(const Batch& batch, int home) const {
    travellers_ = news_ = 0;
    if (config_.sampler.topology != "partitioned") return;
    const int length = batch.walks().length;
    const kernels::Owners owners = placement_.owners();
    for (Offset i = 0; i < batch.walks().count; ++i) {
      const RowId* const walk = batch.nodes().data + i * length;
      int here = home;
      for (int place = 0; place < length && walk[place] != kNoRow; ++place) {
        const int to = owners.owner(walk[place]);
        const bool goes_on = place + 1 < length;
        if (goes_on) travellers_ += to != here;
        if (place > 0 && (!goes_on || to != home)) news_ += here != home;
        here = to;
      }
    }
  }

  const Config& config_;
  const Csr& graph_;
  const Placement& placement_;
  const RankPlan& plan_;
  MemoryLedger ledger_{Device{}};
  Exec exec_;
  Sampler sampler_;
  mutable double travellers_ = 0, news_ = 0;  // of the step sampled last
};

}  // namespace

StepCounts sampled_counts(const Config& config, const Csr& graph, const Placement& placement, const RankPlan& plan,
                          int threads) {
  Rehearsal rehearsal(config, graph, placement, plan, threads);
  const std::vector<int>& compute = placement.compute();
  const int ranks = std::min(int(compute.size()), kRanks);
  StepCounts counts;
  for (int i = 0; i < ranks; ++i)
    rehearsal.add_rank(compute[compute.size() * std::size_t(i) / std::size_t(ranks)], counts);
  const double parts = double(rehearsal.steps()) * ranks;
  for (double* value :
       {&counts.walks, &counts.requested_rows, &counts.head.rows, &counts.head.centres, &counts.local.rows,
        &counts.local.centres, &counts.remote.rows, &counts.remote.centres, &counts.travellers, &counts.news})
    *value /= parts;
  counts.is_sampled = true;
  return counts;
}

}  // namespace gs
