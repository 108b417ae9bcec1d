#include "graphscale/sampler.hpp"

#include <numeric>

#include "src/sampler/upload.hpp"

namespace gs {
namespace {

/// Every node in proportion to the weight of its arcs that can be drawn.
std::vector<kernels::AliasSlot> edge_sources(const Csr& graph, bool weighted) {
  std::vector<double> weight(std::size_t(graph.num_nodes()), 0);
  for (Offset node = 0; node < graph.num_nodes(); ++node) {
    const Span<const float> arcs =
        weighted ? graph.weights.subspan(graph.offsets[node], graph.degree(node)) : Span<const float>();
    weight[std::size_t(node)] = weighted ? std::accumulate(arcs.begin(), arcs.end(), 0.0) : double(graph.degree(node));
  }
  if (std::all_of(weight.begin(), weight.end(), [](double w) { return w == 0; }))
    throw Error(Fault::input, "every edge of the graph weighs 0: there is none to draw; use --weighted no");
  return alias_table(weight);
}

}  // namespace

kernels::TileKind tile_kind(const Config& config) {
  return config.model.kind == "line"                   ? kernels::TileKind::edges
         : is_knowledge_graph_model(config.model.kind) ? kernels::TileKind::triples
                                                       : kernels::TileKind::walk;
}

int triple_width(const Config& config) { return config.model.reciprocal ? 4 : 3; }

int unit_length(const Config& config) {
  return tile_kind(config) == kernels::TileKind::triples ? triple_width(config) * config.sampler.triples_per_tile
                                                         : config.sampler.walk_length;
}

Offset units_per_epoch(const Config& config, Offset nodes, Offset arcs) {
  const kernels::TileKind kind = tile_kind(config);
  if (kind == kernels::TileKind::walk) return nodes * config.sampler.walks_per_node;
  const Offset a_unit = unit_length(config) / (kind == kernels::TileKind::edges ? 2 : triple_width(config));
  return (arcs + a_unit - 1) / a_unit;
}

Sampler::Sampler(const Csr& graph, const Config& config, Offset dense_rows, const Exec& exec)
    : kind_(tile_kind(config)), reciprocal_(config.model.reciprocal ? int(graph.num_relations) : 0) {
  if (kind_ != kernels::TileKind::triples) {
    topology_ = std::make_unique<WalkTopology>(graph, walk_rule(config), exec);
    const bool weighted = config.sampler.weighted && !graph.weights.empty();
    if (kind_ == kernels::TileKind::edges)
      sources_ = upload<kernels::AliasSlot>(edge_sources(graph, weighted), "graph: edge sources", exec);
    return;
  }
  if (graph.relations.empty())
    throw Error(Fault::input, cat("model.kind ", config.model.kind,
                                  " learns triples, and the graph has no relations; ingest it with --triples"));
  std::vector<RowId> heads(std::size_t(graph.num_arcs())), tails(heads.size());
  for (Offset node = 0; node < graph.num_nodes(); ++node)
    for (Offset arc = graph.offsets[node]; arc < graph.offsets[node + 1]; ++arc) {
      heads[std::size_t(arc)] = RowId(dense_rows + node);
      tails[std::size_t(arc)] = RowId(dense_rows + graph.targets[arc]);
    }
  heads_ = upload<RowId>(heads, "graph: triples", exec);
  relations_ = upload(graph.relations, "graph: triples", exec);
  tails_ = upload<RowId>(tails, "graph: triples", exec);
}

void Sampler::make(const kernels::WalkBatch& batch, Span<RowId> nodes, const Exec& exec) const {
  const kernels::Ops& ops = kernels::ops(exec);
  if (kind_ == kernels::TileKind::walk) {
    ops.make_walks(topology_->view(), batch, nodes, exec);
  } else if (kind_ == kernels::TileKind::edges) {
    ops.draw_edges(topology_->view(), {sources_.span()}, batch, nodes, exec);
  } else {
    ops.draw_triples({heads_.span(), relations_.span(), tails_.span(), reciprocal_}, batch, nodes, exec);
  }
}

std::vector<std::pair<const char*, Offset>> Sampler::bytes(const Config& config, Offset nodes, Offset arcs,
                                                           bool weighted) {
  const kernels::TileKind kind = tile_kind(config);
  if (kind == kernels::TileKind::triples) return {{"graph: triples", 3 * arcs * Offset(sizeof(RowId))}};
  const WalkRule rule = walk_rule(config);
  weighted = weighted && rule.weighted;
  const bool keeps_weights = weighted && rule.second_order();
  return {{"graph: nodes", nodes * Offset(sizeof(kernels::PackedArcs))},
          {"graph: offsets", (nodes + 1) * Offset(sizeof(Offset))},
          {"graph: targets", arcs * Offset(sizeof(RowId))},
          {"graph: arc alias slots", weighted ? arcs * Offset(sizeof(kernels::AliasSlot)) : 0},
          {"graph: arc weights", keeps_weights ? arcs * Offset(sizeof(float)) : 0},
          {"graph: weight sums", keeps_weights ? nodes * Offset(sizeof(double)) : 0},
          {"graph: edge sources", kind == kernels::TileKind::edges ? nodes * Offset(sizeof(kernels::AliasSlot)) : 0}};
}

}  // namespace gs
