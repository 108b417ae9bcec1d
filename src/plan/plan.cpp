#include "graphscale/plan.hpp"

#include <algorithm>

namespace gs {
namespace {

/// Enough walks to keep the device busy, few enough that the learning rate falls smoothly on small graphs.
Offset step_walks_in_place(const Config& config, Offset nodes, Device device) {
  constexpr double kStepsOfARun = 200;
  const double least = device.is_cuda() ? 256 : 32, most = device.is_cuda() ? 1 << 17 : 1 << 13;
  const double walks = double(nodes) * config.sampler.walks_per_node * std::max(1, config.training.epochs);
  return Offset(std::clamp(walks / kStepsOfARun, least, most));
}

/// A walk an 8th of the nodes: a node is a centre in about 5 places of a step, whatever the graph's size.
Offset step_walks_exchanged(Offset nodes, Device device, int compute_ranks) {
  const Offset most_a_rank = device.is_cuda() ? 1 << 15 : 1 << 12;
  return std::clamp<Offset>(nodes / 8, 64, most_a_rank * compute_ranks);
}

}  // namespace

Offset choose_step_walks(const Config& config, Offset nodes, Device device, int compute_ranks) {
  if (config.training.step_walks > 0) return config.training.step_walks;
  return needs_exchange(config) || compute_ranks > 1 ? step_walks_exchanged(nodes, device, compute_ranks)
                                                     : step_walks_in_place(config, nodes, device);
}

Offset Plan::total_bytes() const {
  Offset sum = 0;
  for (const PlanEntry& entry : entries) sum += entry.bytes;
  return sum;
}

Plan plan_training(const Config& config, const GraphSize& size, Device device) {
  const kernels::TileShape shape = tile_shape(config);
  const bool weighted = size.weighted && config.sampler.weighted;
  Plan plan;
  plan.device = device;
  plan.step_walks = choose_step_walks(config, size.nodes, device, 1);
  const Offset tiles = plan.step_walks * shape.tiles_per_walk;
  const Offset table = SkipGram::table_bytes(size.nodes, shape.dim);
  plan.entries = {
      {"model: centre table", table, "model.dim"},
      {"model: context table", table, "model.dim"},
      {"graph: nodes", 8 * size.nodes, ""},
      {"graph: offsets", 8 * (size.nodes + 1), ""},
      {"graph: targets", 4 * size.arcs, ""},
      {"graph: arc alias slots", weighted ? 8 * size.arcs : 0, "sampler.weighted"},
      {"negative alias table", NegativeTable::bytes(size.nodes), ""},
      {"step: walks", 4 * plan.step_walks * shape.walk_length, "training.step_walks"},
      {"step: negatives", 4 * tiles * shape.shared_negatives, "training.step_walks"},
      {"step: results", Offset(sizeof(kernels::TileResult)) * tiles, "training.step_walks"},
      {"step: totals", Offset(sizeof(kernels::TrainTotals)), ""},
  };
  return plan;
}

void check_fits(const Plan& plan, Offset available) {
  const Offset total = plan.total_bytes();
  if (total <= available) return;
  std::string parts;
  PlanEntry largest;
  for (const PlanEntry& entry : plan.entries) {
    if (entry.bytes * 100 >= total)
      parts += cat(parts.empty() ? "" : ", ", entry.purpose, " ", human_bytes(double(entry.bytes)));
    if (!entry.lower.empty() && entry.bytes > largest.bytes) largest = entry;
  }
  throw Error(Fault::memory, cat("this run needs ", human_bytes(double(total)), " on ", to_string(plan.device), " (",
                                 parts, ") and ", human_bytes(double(available)), " are free: lower ", largest.lower,
                                 ", or use a machine with more memory"));
}

}  // namespace gs
