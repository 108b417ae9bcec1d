// Small graphs for tests, with their arrays.
#pragma once

#include <algorithm>
#include <map>

#include "graphscale/graph.hpp"
#include "kernels/philox.hpp"

namespace gs {

struct SmallGraph {
  std::vector<Offset> offsets;
  std::vector<RowId> targets;
  std::vector<float> weights;
  bool directed = true;

  Csr csr() const { return {offsets, targets, weights, directed}; }
};

struct Arc {
  RowId from, to;
  float weight = 1;
};

inline SmallGraph graph_of(Offset nodes, std::vector<Arc> arcs, bool weighted = false) {
  std::sort(arcs.begin(), arcs.end(), [](Arc a, Arc b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
  SmallGraph graph;
  graph.offsets.assign(std::size_t(nodes + 1), 0);
  for (const Arc& arc : arcs) {
    ++graph.offsets[arc.from + 1];
    graph.targets.push_back(arc.to);
    if (weighted) graph.weights.push_back(arc.weight);
  }
  for (Offset i = 0; i < nodes; ++i) graph.offsets[std::size_t(i + 1)] += graph.offsets[std::size_t(i)];
  return graph;
}

/// Arcs drawn by a fixed recurrence; every node has at least one.
inline SmallGraph random_graph(Offset nodes, Offset arcs, bool weighted, std::uint64_t seed) {
  std::vector<Arc> list;
  for (Offset i = 0; i < arcs; ++i) {
    const Philox4 random = draw(seed, 0, std::uint64_t(i), 0, Draw::edge);
    list.push_back({RowId(i < nodes ? std::uint64_t(i) : below(random.low(), std::uint64_t(nodes))),
                    RowId(below(random.high(), std::uint64_t(nodes))), 0.25f + unit_float(random.word[0])});
  }
  return graph_of(nodes, std::move(list), weighted);
}

/// The arcs of rows part, part + parts ... as local rows 0, 1 ..., with global targets.
inline SmallGraph part_of(const SmallGraph& graph, RowId part, RowId parts) {
  SmallGraph local;
  local.offsets = {0};
  for (std::size_t row = part; row + 1 < graph.offsets.size(); row += parts) {
    for (Offset arc = graph.offsets[row]; arc < graph.offsets[row + 1]; ++arc) {
      local.targets.push_back(graph.targets[std::size_t(arc)]);
      if (!graph.weights.empty()) local.weights.push_back(graph.weights[std::size_t(arc)]);
    }
    local.offsets.push_back(Offset(local.targets.size()));
  }
  return local;
}

}  // namespace gs
