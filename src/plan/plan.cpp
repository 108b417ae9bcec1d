#include "graphscale/plan.hpp"

#include <algorithm>

#include "src/plan/entries.hpp"

namespace gs {
namespace {

/// Enough walks to keep the device busy, few enough that the learning rate falls smoothly on small graphs.
Offset step_walks_in_place(const Config& config, Offset units, Device device) {
  constexpr double kStepsOfARun = 200;
  const double least = device.is_cuda() ? 256 : 32, most = device.is_cuda() ? 1 << 17 : 1 << 13;
  const double walks = double(units) * std::max(1, config.training.epochs);
  return Offset(std::clamp(walks / kStepsOfARun, least, most));
}

/// Gradients of a step are summed before any row moves, so a run needs many steps to learn (BlogCatalog, 10 walks a
/// node: micro-F1 .34 with 800 steps, .24 with 80), and more of them the more are on their way at once.
Offset step_walks_exchanged(const Config& config, Offset units, Device device, int compute_ranks) {
  constexpr double kStepsOfARun = 800;
  const double steps = kStepsOfARun * std::max(1.0, (1 + config.training.steps_behind()) / 2.0);
  const double most_a_rank = device.is_cuda() ? 1 << 13 : 1 << 12;
  const double walks = double(units) * std::max(1, config.training.epochs);
  return Offset(std::clamp(walks / steps, 64.0, most_a_rank * compute_ranks));
}

}  // namespace

GraphSize size_of(const Csr& graph) {
  return {graph.num_nodes(), graph.num_arcs(), !graph.weights.empty(), graph.num_relations};
}

Offset choose_step_walks(const Config& config, Offset units, Device device, int compute_ranks) {
  if (config.training.step_walks > 0) return config.training.step_walks;
  return needs_exchange(config) || compute_ranks > 1 ? step_walks_exchanged(config, units, device, compute_ranks)
                                                     : step_walks_in_place(config, units, device);
}

Offset Plan::total_bytes() const { return total_bytes(Tier::device) + total_bytes(Tier::host); }

Offset Plan::total_bytes(Tier tier) const {
  Offset sum = 0;
  for (const PlanEntry& entry : entries) sum += entry.tier == tier ? entry.bytes : 0;
  return sum;
}

std::vector<PlanEntry> graph_entries(const Config& config, Offset rows, Offset arcs, bool weighted, Device device,
                                     int ranks) {
  const std::string& topology = config.sampler.topology;
  const bool is_partitioned = topology == "partitioned";
  const Tier tier = topology == "uva" ? Tier::host : Tier::device;
  const std::string remedy = tier == Tier::device && !is_partitioned && device.is_cuda() ? "set sampler.topology uva"
                             : !is_partitioned && ranks > 1 ? "set sampler.topology partitioned"
                                                            : "";
  std::vector<PlanEntry> entries;
  for (const auto& [purpose, bytes] : Sampler::bytes(config, rows, arcs, weighted)) {
    const bool by_weights = std::string_view(purpose).find("weight") != std::string_view::npos ||
                            std::string_view(purpose).find("alias") != std::string_view::npos;
    entries.push_back({purpose, bytes, by_weights ? "set sampler.weighted no" : remedy, tier});
  }
  if (keeps_known_triples(config))
    entries.push_back({"graph: known triples", KnownTable::bytes(rows, arcs), "set sampler.filter_negatives no"});
  return entries;
}

Plan plan_training(const Config& config, const GraphSize& size, Device device) {
  const kernels::TileShape shape = tile_shape(config);
  Plan plan;
  plan.device = device;
  plan.step_walks = choose_step_walks(config, units_of(config, size), device, 1);
  const Offset tiles = plan.step_walks * shape.tiles_per_walk;
  for (const auto& [purpose, bytes] : Model::bytes(model_shape(config, size.nodes, size.relations)))
    plan.entries.push_back({purpose, bytes, "lower model.dim"});
  for (PlanEntry& entry : graph_entries(config, size.nodes, size.arcs, size.weighted, device, 1))
    plan.entries.push_back(std::move(entry));
  const std::vector<PlanEntry> rest = {
      {"negative alias table", NegativeTable::bytes(size.nodes), ""},
      {"step: walks", 4 * plan.step_walks * shape.walk_length, "lower training.step_walks"},
      {"step: negatives", 4 * tiles * shape.shared_negatives, "lower training.step_walks"},
      {"step: results", Offset(sizeof(kernels::TileResult)) * tiles, "lower training.step_walks"},
      {"step: totals", Offset(sizeof(kernels::TrainTotals)), ""},
  };
  plan.entries.insert(plan.entries.end(), rest.begin(), rest.end());
  return plan;
}

}  // namespace gs
