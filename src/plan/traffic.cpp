// What a step touches and moves: by a model of degrees, or counted in a few steps sampled as the run will.
#include <algorithm>
#include <cmath>

#include "graphscale/plan.hpp"

#include "src/plan/entries.hpp"

namespace gs {
namespace {

constexpr double kRankExponent = 2.0 / 3;  // degree ~ rank^-a is a power law of exponent 1 + 1 / a = 2.5

/// Calls visit(first, last) for ranges of rows that have nearly one degree: single rows, then wider by a tenth.
template <class Visit>
void for_each_range(double rows, const Visit& visit) {
  constexpr double kGrowth = 1.1;
  for (double first = 0; first < rows;) {
    const double last = std::min(rows, std::max(first + 1, std::floor(first * kGrowth)));
    visit(first, last);
    first = last;
  }
}

/// Draws of nodes, and of dense rows, by one item of a batch.
struct Draws {
  double starts = 0;     ///< nodes drawn uniformly
  double by_degree = 0;  ///< nodes drawn by degree
  double dense = 0;
};
Draws draws_of(const kernels::TileShape& tile, double return_chance) {
  const double places = tile.walk_length;
  switch (tile.kind) {
    case kernels::TileKind::walk:
      return {1, (places - 1) * (1 - return_chance), 0};
    case kernels::TileKind::edges:
      return {0, places, 0};
    case kernels::TileKind::triples:
      return {0, places * 2 / tile.triple_width, places * (tile.triple_width - 2) / tile.triple_width};
  }
  return {};
}

/// Walkers that go to another rank, and news to the walk's home, where nodes lie on ranks at random: `away` is the
/// chance of another rank than a given one. See PartitionedTopology.
void expect_walkers(double walks, int length, double away, StepCounts& counts) {
  counts.travellers = walks * (length - 1) * away;
  counts.news = walks * (std::max(0, length - 2) * away * away + away);
}

}  // namespace

double share_of_first(double rows, double nodes, double power) {
  return nodes > 0 ? std::pow(std::min(1.0, rows / nodes), 1 - kRankExponent * power) : 0;
}

StepCounts expected_counts(const Config& config, const GraphSize& size, const RankPlan& plan) {
  const TablesShape& shape = plan.shape;
  const kernels::TileShape& tile = shape.tile;
  const RankPart& part = plan.part;
  const double nodes = double(size.nodes), owners = part.storage_ranks;
  StepCounts counts;
  counts.walks = double(std::min(plan.step_walks, units_of(config, size))) / part.compute_ranks;
  counts.requested_rows =
      counts.walks * (double(shape.tables()) * tile.walk_length + double(tile.tiles_per_walk) * tile.shared_negatives);

  // A deterministic step is made unique slice by slice, and all its rows count as centres.
  const bool sliced = shape.deterministic;
  const double slices = sliced ? std::max(1.0, double(kSlices) / part.compute_ranks) : 1;
  const double walks = counts.walks / slices;
  const double returns = std::min(1.0, nodes / std::max(1.0, double(size.arcs)));
  const Draws draws = draws_of(tile, returns);
  const double starts = std::min(1.0, walks * draws.starts / nodes), steps = walks * draws.by_degree;
  const SamplerConfig& sampler = config.sampler;
  const double negatives = walks * tile.tiles_per_walk * tile.shared_negatives * (1 - sampler.in_batch_share);
  const double own_share = part.stores && part.computes ? 1 / owners : 0;

  for_each_range(nodes, [&](double first, double last) {
    const double rows = last - first;
    const auto a_row = [&](double of_power) {
      return (share_of_first(last, nodes, of_power) - share_of_first(first, nodes, of_power)) / rows;
    };
    const double no_node = (1 - starts) * std::exp(-steps * a_row(1));
    const double drawn =
        negatives * ((1 - sampler.uniform_share) * a_row(sampler.negative_power) + sampler.uniform_share / nodes);
    const auto add = [&](StepCounts::Group& group, double count, double no_negative) {
      const double any = slices * count * (1 - no_node * no_negative);
      group.rows += any;
      if (!shape.one_table) group.centres += sliced ? any : slices * count * (1 - no_node);
    };
    const double no_own = std::exp(-drawn * (plan.local_negatives ? owners : 1));
    const double no_other = plan.local_negatives ? 1 : std::exp(-drawn);
    const double in_head = std::clamp(double(shape.head_rows - shape.dense_rows) - first, 0.0, rows);
    add(counts.head, in_head * own_share, no_own), add(counts.head, in_head * (1 - own_share), no_other);
    add(counts.local, (rows - in_head) * own_share, no_own);
    add(counts.remote, (rows - in_head) * (1 - own_share), no_other);
  });
  if (const double dense = double(shape.dense_rows); dense > 0)
    counts.head.rows += slices * dense * (1 - std::exp(-walks * draws.dense / dense));
  if (config.sampler.topology == "partitioned") expect_walkers(counts.walks, tile.walk_length, 1 - own_share, counts);
  return counts;
}

StepTraffic traffic_of(const RankPlan& plan, const Config& config, const StepCounts& counts) {
  const RankPart& part = plan.part;
  const int others = part.ranks - 1;
  StepTraffic traffic;
  if (others == 0) return traffic;
  const double moved = counts.remote.rows + counts.remote.centres;  // vectors of all tables
  const double ids = counts.remote.rows * double(sizeof(RowId));
  const double gradients = moved * plan.shape.codec.row_bytes();
  const double rows = moved * plan.shape.tile.dim * kernels::bytes_of(plan.shape.wire_type);
  const double asking = part.stores ? double(part.compute_ranks) / part.storage_ranks : 0;  // compute ranks an owner
  if (part.computes) traffic.id_bytes = ids, traffic.gradient_bytes = gradients, traffic.received_bytes = rows;
  traffic.row_bytes = rows * asking;
  traffic.received_bytes += (ids + gradients) * asking;

  // An all-reduce moves 2 (ranks - 1) / ranks of its bytes: padded gradients and curvatures of all tables.
  const double head = double(plan.shape.tables() * plan.shape.head_rows) *
                      double(padded_stride(plan.shape.tile.dim) + 1) * sizeof(float);
  traffic.head_bytes = head * 2 * others / part.ranks / plan.shape.replicate_every;
  constexpr double kTravellerBytes = 12, kNewsBytes = 8, kWordBytes = 8;
  traffic.count_bytes = double(kCountBytes * others);
  if (config.sampler.topology == "partitioned") {
    traffic.walker_bytes = counts.travellers * kTravellerBytes + counts.news * kNewsBytes;
    traffic.count_bytes += kWordBytes * (plan.shape.tile.walk_length + 2) * others;
  }
  traffic.received_bytes += traffic.head_bytes + traffic.walker_bytes + traffic.count_bytes;
  return traffic;
}

}  // namespace gs
