// Seconds of a step, as the largest of what bounds it.
#include <algorithm>
#include <cmath>

#include "graphscale/plan.hpp"

#include "src/plan/entries.hpp"

namespace gs {
namespace {

double over(double amount, double rate) { return amount > 0 ? amount / rate : 0; }

/// What a unit of training computes and touches: pairs, what is set against the shared negatives (centres, or queries
/// of triples), and rows.
struct Work {
  double pairs = 0, against_negatives = 0, rows = 0;
};
Work work_of(const kernels::TileShape& tile) {
  const double places = tile.walk_length, negatives = double(tile.tiles_per_walk) * tile.shared_negatives;
  switch (tile.kind) {
    case kernels::TileKind::walk:
      return {expected_pairs(tile), places,
              double(tile.tiles_per_walk) * (tile.centres() + tile.contexts()) + negatives};
    case kernels::TileKind::edges: {
      const double pairs = tile.both_ways ? places : places / 2;
      return {pairs, pairs, 2 * pairs + negatives};
    }
    case kernels::TileKind::triples: {
      const double queries = places * 2 / tile.triple_width;
      return {queries, queries, places + negatives};
    }
  }
  return {};
}

/// The tile's dot products and row sums: a score and two gradients, 2 dim flops each, for every pair and every shared
/// negative of a centre.
double flops_of_walk(const kernels::TileShape& tile) {
  const Work work = work_of(tile);
  return 6.0 * tile.dim * (work.pairs + work.against_negatives * tile.shared_negatives);
}

/// A tile reads its rows and writes them, or adds to their gradients: read, read and written.
double bytes_of_walk(const kernels::TileShape& tile, bool in_place) {
  return work_of(tile).rows * tile.dim * sizeof(float) * (in_place ? 2 : 3);
}

StageCost sampling(const kernels::TileShape& tile, double walks, bool is_exchanged, const MachineRates& rates) {
  const double negatives = walks * tile.tiles_per_walk * tile.shared_negatives, nodes = walks * tile.walk_length;
  StageCost stage{"sample"};
  stage.compute_s = over(nodes + negatives, rates.walk_steps);
  if (is_exchanged) stage.compute_s += over(nodes + negatives, rates.unique_rows);
  return stage;
}

StageCost computing(const kernels::TileShape& tile, double walks, bool in_place, const MachineRates& rates) {
  StageCost stage{"compute"};
  stage.compute_s = over(walks * flops_of_walk(tile), rates.flops);
  stage.memory_s = over(walks * bytes_of_walk(tile, in_place), rates.memory_bytes);
  return stage;
}

std::string name_of(const StageCost& stage) { return cat(stage.name, ": ", stage.bound()); }

/// The device's own part of a stage, without links to other ranks.
double on_device(const StageCost& stage) { return std::max({stage.memory_s, stage.compute_s, stage.host_link_s}); }

Offset steps_per_epoch(const Config& config, const GraphSize& size, Offset step_walks) {
  return (units_of(config, size) + step_walks - 1) / step_walks;
}

/// Accesses to rows behind the first `hot` of `rows` local rows, of all.
double cold_share(Offset hot, Offset rows) { return rows > 0 ? 1 - share_of_first(double(hot), double(rows)) : 0; }

}  // namespace

MachineRates cpu_rates(double threads) {
  MachineRates rates;
  rates.name = cat("cpu, ", threads, threads == 1 ? " thread" : " threads");
  rates.memory_bytes = std::min(10e9 * threads, 200e9);
  rates.flops = 20e9 * threads;
  rates.walk_steps = 20e6 * threads;
  rates.unique_rows = 60e6 * std::min(1.0, threads);  // one thread
  rates.host_link_bytes = rates.memory_bytes;
  rates.link_bytes = 100e9 / 8;
  rates.call_s = 30e-6;
  return rates;
}

MachineRates h200_rates() {
  MachineRates rates;
  rates.name = "H200";
  rates.memory_bytes = 4.8e12;
  rates.flops = 60e12;
  rates.walk_steps = 10e9;
  rates.unique_rows = 2e9;
  rates.host_link_bytes = 50e9;
  rates.link_bytes = 400e9 / 8;
  rates.call_s = 30e-6;
  return rates;
}

double StageCost::seconds() const { return std::max({memory_s, compute_s, host_link_s, link_s}); }

const char* StageCost::bound() const {
  const double most = seconds();
  return most == link_s ? "link" : most == host_link_s ? "host link" : most == memory_s ? "memory" : "arithmetic";
}

StepTime expected_time(const Config& config, const GraphSize& size, const Plan& plan, const MachineRates& rates) {
  const kernels::TileShape tile = tile_shape(config);
  StepTime time;
  time.steps_per_epoch = steps_per_epoch(config, size, plan.step_walks);
  time.stages = {sampling(tile, double(plan.step_walks), false, rates),
                 computing(tile, double(plan.step_walks), true, rates)};
  const bool is_sampling = time.stages[0].seconds() > time.stages[1].seconds();
  time.step_s = time.stages[0].seconds() + time.stages[1].seconds();
  time.bottleneck = name_of(time.stages[is_sampling ? 0 : 1]);
  return time;
}

StepTime expected_time(const Config& config, const GraphSize& size, const RankPlan& plan, const StepCounts& counts,
                       const StepTraffic& traffic, const MachineRates& rates) {
  const RankPart& part = plan.part;
  const TablesShape& shape = plan.shape;
  const double vector = double(shape.tile.dim) * sizeof(float), walks = part.computes ? counts.walks : 0;
  const double asking = part.stores ? double(part.compute_ranks) / part.storage_ranks : 0;
  const double own =
      part.computes ? counts.local.rows + counts.local.centres + counts.head.rows + counts.head.centres : 0;
  const double far = part.computes ? counts.remote.rows + counts.remote.centres : 0;
  const double served = (counts.remote.rows + counts.remote.centres) * asking + own;  // vectors this rank reads
  const TablesSize tables(shape, part, plan.device);
  const double row_bytes = double(ShardTable::bytes_a_row(shape.tile.dim, shape.type, 0));
  const double state_bytes =
      double(ShardTable::bytes_a_row(shape.tile.dim, shape.type, tables.state_columns)) - row_bytes;
  const double cold = plan.device.is_cuda() ? cold_share(shape.hot_rows, tables.local_rows) : 0;
  const double calls = part.ranks > 1 ? 1 : 0;

  StageCost fetch{"fetch"}, push{"push"};
  fetch.memory_s =
      over(served * row_bytes * (1 - cold) + (own + far) * vector + 2 * traffic.row_bytes, rates.memory_bytes);
  fetch.host_link_s = over(served * row_bytes * cold, rates.host_link_bytes);
  // Ids one way, rows the other: both directions of a link are full at once.
  fetch.link_s = over(std::max(traffic.row_bytes + traffic.id_bytes,
                               traffic.id_bytes + far * shape.tile.dim * kernels::bytes_of(shape.wire_type)),
                      rates.link_bytes) +
                 over(traffic.walker_bytes, rates.link_bytes) + 3 * calls * rates.call_s;
  if (config.sampler.topology == "partitioned") fetch.link_s += 2 * calls * rates.call_s * shape.tile.walk_length;
  // Gradients are read, coded, decoded and summed; a row and its state are read and written once.
  push.memory_s = over((own + far) * 2 * vector + served * 2 * vector + 2 * traffic.gradient_bytes +
                           2 * served * (row_bytes + state_bytes) * (1 - cold) + 3 * traffic.head_bytes,
                       rates.memory_bytes);
  push.host_link_s = over(2 * served * (row_bytes + state_bytes) * cold, rates.host_link_bytes);
  push.link_s = over(std::max(traffic.gradient_bytes,
                              asking * (counts.remote.rows + counts.remote.centres) * shape.codec.row_bytes()) +
                         traffic.head_bytes,
                     rates.link_bytes) +
                calls * rates.call_s;

  StepTime time;
  time.steps_per_epoch = steps_per_epoch(config, size, plan.step_walks);
  time.stages = {sampling(shape.tile, walks, true, rates), fetch, computing(shape.tile, walks, false, rates), push};
  const StageCost* slowest = &time.stages[0];
  double sum_s = 0, device_s = 0;
  for (const StageCost& stage : time.stages) {
    sum_s += stage.seconds(), device_s += on_device(stage);
    if (stage.seconds() > slowest->seconds()) slowest = &stage;
  }
  const double exchange_s = time.stages[1].seconds() + time.stages[3].seconds();
  time.step_s = config.training.steps_behind() == 0
                    ? sum_s
                    : std::max({device_s, exchange_s, time.stages[0].seconds(), time.stages[2].seconds()});
  time.bottleneck = name_of(*slowest);
  return time;
}

}  // namespace gs
