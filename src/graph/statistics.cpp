#include <algorithm>
#include <cmath>

#include "graphscale/graph.hpp"

namespace gs {
namespace {

constexpr Offset kGrain = 1 << 14;  // rows a thread takes at a time

/// Disjoint sets that threads join at once. A parent is never larger than its child, so links make no cycle; only a
/// root is linked, by compare-and-swap (Anderson, Woll: "Wait-free parallel algorithms for the union-find problem",
/// 1991).
class Components {
 public:
  explicit Components(Offset nodes) : parents_(std::size_t(nodes)) {
    for (Offset row = 0; row < nodes; ++row) parents_[std::size_t(row)].store(RowId(row), std::memory_order_relaxed);
  }

  void join(RowId a, RowId b) {
    for (;;) {
      a = root(a), b = root(b);
      if (a == b) return;
      if (a < b) std::swap(a, b);
      RowId expected = a;
      if (parents_[a].compare_exchange_strong(expected, b, std::memory_order_relaxed)) return;
    }
  }

  RowId root(RowId row) {
    for (;;) {
      const RowId parent = parents_[row].load(std::memory_order_relaxed);
      const RowId above = parents_[parent].load(std::memory_order_relaxed);
      if (parent == above) return parent;
      parents_[row].store(above, std::memory_order_relaxed);  // halves the path; `row` was no root and never will be
      row = above;
    }
  }

 private:
  std::vector<std::atomic<RowId>> parents_;
};

bool walkable(const Csr& graph, Offset row) {
  if (graph.weights.empty()) return graph.degree(row) > 0;
  const Span<const float> weights = graph.weights.subspan(graph.offsets[row], graph.degree(row));
  return std::any_of(weights.begin(), weights.end(), [](float weight) { return weight > 0; });
}

void count_degrees(const Csr& graph, GraphStatistics& out) {
  const Offset n = graph.num_nodes();
  std::vector<Offset> degrees(std::size_t(n), 0);
  for (Offset row = 0; row < n; ++row) degrees[std::size_t(row)] = graph.degree(row);
  const auto percentile = [&](double share) {
    const auto at = degrees.begin() + std::ptrdiff_t(std::max<double>(std::ceil(share * double(n)), 1)) - 1;
    std::nth_element(degrees.begin(), at, degrees.end());
    return *at;
  };
  out.mean_degree = double(graph.num_arcs()) / double(n);
  out.degree_p50 = percentile(0.50), out.degree_p90 = percentile(0.90), out.degree_p99 = percentile(0.99);
  out.degree_max = percentile(1);
}

}  // namespace

GraphStatistics statistics(const Csr& graph, int threads) {
  GraphStatistics out;
  const Offset n = graph.num_nodes();
  if (n == 0) return out;
  count_degrees(graph, out);

  Components components(n);
  std::vector<std::atomic<bool>> entered(graph.directed ? std::size_t(n) : 0);  // has an arc in
  std::atomic<Offset> self_loops{0}, sinks{0};
  parallel_for(threads, n, kGrain, [&](Offset first, Offset last, int) {
    Offset loops = 0, ends = 0;
    for (Offset row = first; row < last; ++row) {
      for (const RowId to : graph.neighbours(row)) {
        if (to == row) ++loops;
        if (graph.directed) entered[to].store(true, std::memory_order_relaxed);
        if (graph.directed || to < row) components.join(RowId(row), to);  // the other half of an edge says the same
      }
      if (!walkable(graph, row)) ++ends;
    }
    self_loops += loops, sinks += ends;
  });
  out.self_loops = self_loops, out.sinks = sinks;

  std::vector<RowId> members(std::size_t(n), 0);
  for (Offset row = 0; row < n; ++row) {
    ++members[components.root(RowId(row))];
    if (graph.degree(row) == 0 && !(graph.directed && entered[std::size_t(row)])) ++out.isolated;
  }
  for (const RowId size : members) {
    if (size > 0) ++out.components;
    out.largest_component = std::max<Offset>(out.largest_component, size);
  }
  return out;
}

}  // namespace gs
