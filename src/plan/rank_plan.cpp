// One rank's memory, by purpose.
#include <algorithm>
#include <cmath>

#include "graphscale/checkpoint.hpp"
#include "graphscale/plan.hpp"

#include "src/plan/entries.hpp"

namespace gs {
namespace {

std::string lower_steps(const RankPlan& plan) { return cat("lower training.step_walks (here ", plan.step_walks, ")"); }

/// What makes the tables' memory smaller.
std::string remedy_of(const std::string& purpose, const Config& config, const RankPlan& plan) {
  const auto begins = [&](const char* text) { return purpose.rfind(text, 0) == 0; };
  if (begins("head") && config.exchange.method == "allreduce") return "set exchange.method rows";
  if (begins("head") && config.store.replicated_rows > 0) return "lower store.replicated_rows";
  if (begins("exchange: kept")) return "lower exchange.feedback_rows";
  if (begins("exchange") || begins("step") || begins("batch")) return lower_steps(plan);
  if (begins("store: placement")) return "set store.placement cyclic";
  if (plan.device.is_cuda() && purpose.find("hot rows") != std::string::npos) return "lower store.hot_rows";
  return "lower model.dim";
}

/// A part's own nodes are each other's contexts: as negatives they would set nothing against the other parts.
bool draws_local_negatives(const Config& config, const RankPart& part) {
  const std::string& from = config.sampler.negatives_from;
  const bool by_default = !part.is_partition && !config.training.deterministic;
  return part.local_rows > 0 && (from == "local" || (from == "auto" && by_default));
}

/// Rows of this rank among kSaveBlock consecutive ones, at most.
Offset rows_read_back(const RankPlan& plan) {
  const RankPart& part = plan.part;
  const Offset block = std::min(kSaveBlock, part.rows());
  const Offset head = std::min(block, plan.shape.head_rows);
  if (!part.stores || plan.shape.head_rows == part.rows()) return head;
  const Offset own = part.is_partition ? block : (block + part.storage_ranks - 1) / part.storage_ranks;
  return std::max(head, std::min(own, part.local_rows));
}

/// All but the tables' rows.
void add_graph_and_steps(const Config& config, const GraphSize& size, const TablesSize& tables, RankPlan& plan) {
  const RankPart& part = plan.part;
  const TablesShape& shape = plan.shape;
  if (config.sampler.topology == "partitioned") {
    for (PlanEntry& entry :
         graph_entries(config, part.local_rows, part.local_arcs, size.weighted, plan.device, part.ranks))
      plan.entries.push_back(std::move(entry));
    plan.entries.push_back({"graph: walkers", PartitionedTopology::walker_bytes(walk_rule(config)), ""});
  } else if (part.computes) {
    for (PlanEntry& entry : graph_entries(config, size.nodes, size.arcs, size.weighted, plan.device, part.ranks))
      plan.entries.push_back(std::move(entry));
  }
  const Offset negative_rows = plan.local_negatives ? part.local_rows : size.nodes;
  plan.entries.push_back(
      {"negative alias table",
       part.computes ? NegativeTable::bytes(negative_rows, plan.local_negatives && part.is_partition) : 0,
       plan.local_negatives ? "" : "set sampler.negatives_from local"});

  const Offset tiles = part.computes ? shape.step_walks * shape.tile.tiles_per_walk : 0;
  std::vector<MemoryNeed> a_step = tables.step(shape, part, plan.device);
  a_step.push_back({"step: chosen walks", plan.by_start ? shape.step_walks * Offset(sizeof(Offset)) : 0});
  a_step.push_back({"step: results", tiles * Offset(sizeof(kernels::TileResult))});
  a_step.push_back({"step: totals", Offset(sizeof(kernels::TrainTotals))});
  for (const MemoryNeed& need : a_step)
    plan.entries.push_back({need.purpose, need.bytes * plan.steps_in_flight, lower_steps(plan)});
  plan.entries.push_back(
      {"store: rows read back", TablesSize::bytes_read_back(rows_read_back(plan), shape.tile.dim), ""});
}

void add_tables(const Config& config, const TablesSize& tables, RankPlan& plan) {
  for (const MemoryNeed& need : tables.tables(plan.shape))
    plan.entries.push_back(
        {need.purpose, need.bytes, remedy_of(need.purpose, config, plan), need.on_host ? Tier::host : Tier::device});
}

}  // namespace

RankPlan plan_rank(const Config& config, const GraphSize& size, const RankPart& part, Device device,
                   Offset device_bytes) {
  const bool deterministic = config.training.deterministic;
  RankPlan plan;
  plan.device = device;
  plan.part = part;
  plan.step_walks = choose_step_walks(config, units_of(config, size), device, part.compute_ranks);
  plan.shape = tables_shape(config, size.nodes,
                            most_walks_of_a_rank(plan.step_walks, part.compute_ranks, deterministic), part.dense_rows);
  plan.steps_in_flight =
      config.training.steps_behind() == 0 ? 1 : config.training.steps_behind() + 2;  // one is being sampled
  plan.by_start = plan.shape.tile.kind == kernels::TileKind::walk && part.is_partition && !deterministic &&
                  part.storage_ranks == part.ranks && part.compute_ranks == part.ranks;
  plan.local_negatives = draws_local_negatives(config, part);

  const TablesSize tables(plan.shape, part, device);
  const Offset a_row =
      plan.shape.tables() * ShardTable::bytes_a_row(config.model.dim, plan.shape.type, tables.state_columns);
  RankPlan without_rows = plan;  // no hot rows yet: all else that lies on the device
  add_tables(config, tables, without_rows);
  add_graph_and_steps(config, size, tables, without_rows);
  const Offset left = device_bytes - without_rows.total_bytes(Tier::device);
  plan.shape.hot_rows = choose_hot_rows(config, tables.local_rows, a_row, left, device);

  add_tables(config, tables, plan);
  add_graph_and_steps(config, size, tables, plan);
  return plan;
}

RankPart expected_part(const Config& config, const GraphSize& size, int ranks, int rank) {
  constexpr double kMetisTolerance = 1.03;
  const std::vector<int> storage = parse_ranks(config.ranks.storage, ranks, "ranks.storage");
  const std::vector<int> compute = parse_ranks(config.ranks.compute, ranks, "ranks.compute");
  const auto owner = std::lower_bound(storage.begin(), storage.end(), rank);
  const auto owners = Offset(storage.size());
  RankPart part;
  part.nodes = size.nodes, part.dense_rows = dense_rows_of(config, size.relations);
  part.ranks = ranks, part.storage_ranks = int(storage.size()), part.compute_ranks = int(compute.size());
  part.stores = owner != storage.end() && *owner == rank;
  part.computes = std::binary_search(compute.begin(), compute.end(), rank);
  part.is_partition = config.store.placement == "partition" && owners > 1;
  if (!part.stores) return part;
  if (part.is_partition) {
    part.local_rows = std::min(size.nodes, Offset(std::ceil(kMetisTolerance * double(size.nodes) / double(owners))));
    part.local_arcs = std::min(size.arcs, Offset(std::ceil(kMetisTolerance * double(size.arcs) / double(owners))));
    return part;
  }
  part.local_rows = (size.nodes - (owner - storage.begin()) + owners - 1) / owners;
  // Rank 0's rows have at most the largest degree more than the mean: each of its rows but the first has no more arcs
  // than the one before it at any other rank.
  const double largest = std::min(double(size.nodes), double(size.arcs) * share_of_first(1, double(size.nodes)));
  part.local_arcs =
      std::min(size.arcs, Offset(std::ceil(double(size.arcs) / double(owners) + largest * (1 - 1.0 / double(owners)))));
  return part;
}

}  // namespace gs
