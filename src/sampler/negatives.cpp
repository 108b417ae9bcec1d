#include <algorithm>
#include <cmath>

#include "graphscale/sampler.hpp"

#include "src/sampler/upload.hpp"

namespace gs {
namespace {

/// Arcs that lead to each node of a directed graph; of others none are counted, for they are a node's own.
std::vector<Offset> arcs_into(const Csr& graph) {
  std::vector<Offset> arcs(graph.directed ? std::size_t(graph.num_nodes()) : 0, 0);
  for (const RowId target : graph.directed ? graph.targets : Span<const RowId>()) ++arcs[target];
  return arcs;
}

}  // namespace

NegativeTable::NegativeTable(const Csr& graph, const Config& config, Offset dense_rows, const Exec& exec)
    : NegativeTable(graph, config, dense_rows, {RowId(dense_rows)}, graph.num_nodes(), exec) {}

NegativeTable::NegativeTable(const Csr& graph, const Config& config, Offset dense_rows,
                             const kernels::RowSequence& rows, Offset count, const Exec& exec)
    : rows_(rows),
      in_batch_share_(float(config.sampler.in_batch_share)),
      triple_width_(tile_kind(config) == kernels::TileKind::triples ? triple_width(config) : 0) {
  const SamplerConfig& sampler = config.sampler;
  const std::vector<Offset> into = arcs_into(graph);
  const auto reaching = [&](Offset node) {
    const bool own = !graph.directed || !graph.relations.empty();
    return (graph.directed ? into[std::size_t(node)] : 0) + (own ? graph.degree(node) : 0);
  };
  std::vector<double> weight(std::size_t(count), 0);
  double sum = 0;
  for (Offset i = 0; i < count; ++i) {
    const Offset arcs = reaching(Offset(rows[i]) - dense_rows);
    if (arcs > 0) sum += weight[std::size_t(i)] = std::pow(double(arcs), sampler.negative_power);
  }
  if (sum == 0) {
    std::fill(weight.begin(), weight.end(), 1.0);
  } else if (sampler.uniform_share > 0) {
    for (double& w : weight) w = (1 - sampler.uniform_share) * w / sum + sampler.uniform_share / double(count);
  }
  slots_ = upload<kernels::AliasSlot>(alias_table(weight), "negative alias table", exec);
  if (rows.list.empty()) return;
  list_ = upload<RowId>(rows.list, "negative alias table", exec);
  rows_.list = list_.span();
}

bool keeps_known_triples(const Config& config) {
  return config.sampler.filter_negatives && is_knowledge_graph_model(config.model.kind);
}

KnownTable::KnownTable(const Csr& graph, const Exec& exec) {
  const TripleIndex index(graph, {}, exec.threads);
  const kernels::KnownTriples known = index.view();
  constexpr const char* kPurpose = "graph: known triples";
  tail_offsets_ = upload(known.tail_offsets, kPurpose, exec),
  head_offsets_ = upload(known.head_offsets, kPurpose, exec);
  tails_ = upload(known.tails, kPurpose, exec), heads_ = upload(known.heads, kPurpose, exec);
  tail_relations_ = upload(known.tail_relations, kPurpose, exec);
  head_relations_ = upload(known.head_relations, kPurpose, exec);
}

kernels::KnownTriples KnownTable::view() const {
  return {tail_offsets_.span(), head_offsets_.span(),   tails_.span(),
          heads_.span(),        tail_relations_.span(), head_relations_.span()};
}

Offset KnownTable::bytes(Offset nodes, Offset triples) {
  return 2 * (nodes + 1) * Offset(sizeof(Offset)) + 4 * triples * Offset(sizeof(RowId));
}

kernels::RowDraw NegativeTable::view(Span<const RowId> step) const {
  return {slots_.span(), rows_, step, triple_width_, in_batch_share_};
}

}  // namespace gs
