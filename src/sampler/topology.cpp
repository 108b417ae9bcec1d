#include <algorithm>
#include <cmath>
#include <numeric>

#include "graphscale/sampler.hpp"

#include "src/sampler/upload.hpp"

namespace gs {
namespace {

constexpr Offset kGrain = 1 << 14;  // nodes a piece of a parallel loop

}  // namespace

WalkRule walk_rule(const Config& config) {
  WalkRule rule{config.sampler.weighted};
  if (config.model.kind == "node2vec")
    rule.return_bias = float(1 / config.sampler.p), rule.out_bias = float(1 / config.sampler.q);
  return rule;
}

WalkTopology::WalkTopology(const Csr& graph, const WalkRule& rule, const Exec& exec)
    : directed_(graph.directed), rule_(rule) {
  const Offset n = graph.num_nodes();
  const bool weighted = rule.weighted && !graph.weights.empty(), keeps_weights = weighted && rule.second_order();
  GS_EXPECT(graph.num_arcs() < Offset(1) << kernels::kFirstArcBits, "a graph of ", graph.num_arcs(),
            " arcs: at most 2^39 can be walked");
  std::vector<kernels::PackedArcs> arcs(std::size_t(n), 0);
  std::vector<kernels::AliasSlot> slots(weighted ? std::size_t(graph.num_arcs()) : 0);
  std::vector<double> sums(keeps_weights ? std::size_t(n) : 0, 0.0);

  parallel_for(exec.threads, n, kGrain, [&](Offset first, Offset last, int) {
    std::vector<std::uint32_t> scratch;
    for (Offset row = first; row < last; ++row) {
      const Offset degree = graph.degree(row), start = graph.offsets[row];
      if (degree == 0) continue;
      if (weighted) {
        const Span<const float> weights = graph.weights.subspan(start, degree);
        if (*std::max_element(weights.begin(), weights.end()) <= 0) continue;  // never walked: a sink
        fill_alias_table(weights, slots.data() + start, scratch);
        if (keeps_weights) sums[std::size_t(row)] = std::accumulate(weights.begin(), weights.end(), 0.0);
      }
      arcs[std::size_t(row)] = std::uint64_t(std::min<Offset>(degree, Offset(kernels::kManyArcs)))
                                   << kernels::kDegreeShift |
                               std::uint64_t(start);
      if (!rule.second_order() || weighted || graph.directed) continue;
      const Span<const RowId> targets = graph.targets.subspan(start, degree);
      if (std::adjacent_find(targets.begin(), targets.end()) == targets.end())
        arcs[std::size_t(row)] |= kernels::kDistinctArcs;
    }
  });

  arcs_ = upload<kernels::PackedArcs>(arcs, "graph: nodes", exec);
  offsets_ = upload(graph.offsets, "graph: offsets", exec);
  targets_ = upload(graph.targets, "graph: targets", exec);
  if (weighted) arc_alias_ = upload<kernels::AliasSlot>(slots, "graph: arc alias slots", exec);
  if (!keeps_weights) return;
  weights_ = upload(graph.weights, "graph: arc weights", exec);
  weight_sums_ = upload<double>(sums, "graph: weight sums", exec);
}

kernels::WalkGraph WalkTopology::view() const {
  return {arcs_.span(),   offsets_.span(), targets_.span(), arc_alias_.span(),  rule_.return_bias,
          rule_.out_bias, directed_,       weights_.span(), weight_sums_.span()};
}

Offset WalkTopology::bytes(Offset nodes, Offset arcs, const WalkRule& rule) {
  const Offset weights = rule.weighted && rule.second_order() ? 8 * nodes + 4 * arcs : 0;
  return 16 * nodes + 8 + (rule.weighted ? 12 : 4) * arcs + weights;
}

double expected_pairs(const kernels::TileShape& shape) {
  double pairs = 0;  // over distances d: (l - d) ordered positions on either side, times the chance that d is inside
  for (int d = 1; d <= shape.window && d < shape.walk_length; ++d)
    pairs += 2.0 * (shape.walk_length - d) * (shape.shrink_window ? double(shape.window - d + 1) / shape.window : 1.0);
  return pairs;
}

}  // namespace gs
