#include <algorithm>
#include <cmath>

#include "graphscale/sampler.hpp"

namespace gs {
namespace {

constexpr Offset kGrain = 1 << 14;  // nodes a piece of a parallel loop

/// Host values into a buffer of exec's device.
template <class T>
Buffer<T> upload(Span<const T> values, const std::string& purpose, const Exec& exec) {
  Buffer<T> buffer(*exec.ledger, values.size, purpose);
  copy_bytes(buffer.data(), values.data, values.size * Offset(sizeof(T)), exec);
  wait(exec);
  return buffer;
}

}  // namespace

WalkTopology::WalkTopology(const Csr& graph, bool weighted, const Exec& exec) {
  const Offset n = graph.num_nodes();
  weighted = weighted && !graph.weights.empty();
  GS_EXPECT(graph.num_arcs() < Offset(1) << kernels::kFirstArcBits, "a graph of ", graph.num_arcs(),
            " arcs: at most 2^40 can be walked");
  std::vector<kernels::PackedArcs> arcs(std::size_t(n), 0);
  std::vector<kernels::AliasSlot> slots(weighted ? std::size_t(graph.num_arcs()) : 0);

  parallel_for(exec.threads, n, kGrain, [&](Offset first, Offset last, int) {
    std::vector<std::uint32_t> scratch;
    for (Offset row = first; row < last; ++row) {
      const Offset degree = graph.degree(row), start = graph.offsets[row];
      if (degree == 0) continue;
      if (weighted) {
        const Span<const float> weights = graph.weights.subspan(start, degree);
        if (*std::max_element(weights.begin(), weights.end()) <= 0) continue;  // never walked: a sink
        fill_alias_table(weights, slots.data() + start, scratch);
      }
      arcs[std::size_t(row)] = std::uint64_t(std::min<Offset>(degree, Offset(kernels::kManyArcs)))
                                   << kernels::kFirstArcBits |
                               std::uint64_t(start);
    }
  });

  arcs_ = upload<kernels::PackedArcs>(arcs, "graph: nodes", exec);
  offsets_ = upload(graph.offsets, "graph: offsets", exec);
  targets_ = upload(graph.targets, "graph: targets", exec);
  if (weighted) arc_alias_ = upload<kernels::AliasSlot>(slots, "graph: arc alias slots", exec);
}

kernels::WalkGraph WalkTopology::view() const {
  return {arcs_.span(), offsets_.span(), targets_.span(), arc_alias_.span()};
}

Offset WalkTopology::bytes(Offset nodes, Offset arcs, bool weighted) {
  return 16 * nodes + 8 + (weighted ? 12 : 4) * arcs;
}

NegativeTable::NegativeTable(const Csr& graph, double power, const Exec& exec)
    : NegativeTable(graph, power, {}, graph.num_nodes(), exec) {}

NegativeTable::NegativeTable(const Csr& graph, double power, const kernels::RowSequence& rows, Offset count,
                             const Exec& exec)
    : rows_(rows) {
  std::vector<Offset> reached;  // directed: arcs that lead to each node
  if (graph.directed) {
    reached.assign(std::size_t(graph.num_nodes()), 0);
    for (const RowId target : graph.targets) ++reached[target];
  }
  std::vector<double> weight(std::size_t(count), 0);
  bool any = false;
  for (Offset i = 0; i < count; ++i) {
    const RowId row = rows[i];
    const Offset arcs = graph.directed ? reached[row] : graph.degree(row);
    if (arcs > 0) weight[std::size_t(i)] = std::pow(double(arcs), power), any = true;
  }
  if (!any) std::fill(weight.begin(), weight.end(), 1.0);
  slots_ = upload<kernels::AliasSlot>(alias_table(weight), "negative alias table", exec);
  if (rows.list.empty()) return;
  list_ = upload<RowId>(rows.list, "negative alias table", exec);
  rows_.list = list_.span();
}

kernels::RowDraw NegativeTable::view() const { return {slots_.span(), rows_}; }

double expected_pairs(const kernels::TileShape& shape) {
  double pairs = 0;  // over distances d: (l - d) ordered positions on either side, times the chance that d is inside
  for (int d = 1; d <= shape.window && d < shape.walk_length; ++d)
    pairs += 2.0 * (shape.walk_length - d) * (shape.shrink_window ? double(shape.window - d + 1) / shape.window : 1.0);
  return pairs;
}

}  // namespace gs
