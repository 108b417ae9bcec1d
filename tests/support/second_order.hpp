// Small graphs on which walks of second order meet all their cases.
#pragma once

#include "tests/support/graphs.hpp"

namespace gs {

/// Every arc with its reverse, a self-loop once.
inline SmallGraph undirected_graph(Offset nodes, const std::vector<Arc>& edges, bool weighted) {
  std::vector<Arc> arcs = edges;
  for (const Arc& edge : edges)
    if (edge.from != edge.to) arcs.push_back({edge.to, edge.from, edge.weight});
  SmallGraph graph = graph_of(nodes, std::move(arcs), weighted);
  graph.directed = false;
  return graph;
}

/// Parallel edges of unlike weights, a self-loop, edges of weight 0, a hub, a node with one edge.
inline SmallGraph undirected_multigraph(bool weighted) {
  return undirected_graph(9, {{0, 1, 1},    {0, 2, 2},    {0, 3, 0.5f}, {0, 4, 1}, {0, 5, 3}, {0, 6, 1}, {0, 7, 0.25f},
                              {1, 2, 1},    {1, 2, 0.5f}, {2, 3, 4},    {3, 3, 2}, {3, 4, 0}, {4, 5, 1}, {5, 6, 0.75f},
                              {5, 6, 0.5f}, {5, 6, 0},    {6, 7, 2},    {7, 8, 1}, {2, 6, 1}, {1, 4, 2}},
                          weighted);
}

/// One-way arcs among them, parallel arcs, a self-loop, arcs of weight 0, and two sinks: 7 has no arc, 8 only those of
/// weight 0.
inline SmallGraph directed_multigraph(bool weighted) {
  return graph_of(9, {{0, 1, 1}, {0, 2, 2}, {0, 3, 1},    {0, 4, 0.5f}, {0, 5, 1}, {1, 0, 1}, {1, 2, 3}, {1, 2, 1},
                      {1, 5, 0}, {2, 0, 1}, {2, 3, 1},    {2, 4, 2},    {2, 2, 1}, {3, 0, 1}, {3, 1, 1}, {3, 4, 1},
                      {3, 7, 1}, {4, 0, 2}, {4, 5, 1},    {4, 5, 0.5f}, {4, 6, 1}, {5, 0, 1}, {5, 1, 1}, {5, 6, 0.25f},
                      {5, 8, 1}, {6, 0, 1}, {6, 4, 0.5f}, {6, 5, 1},    {8, 0, 0}, {8, 3, 0}},
                  weighted);
}

/// Node 0 with `leaves` leaves, and `edges` edges drawn between these.
inline SmallGraph star_with_edges(RowId leaves, RowId edges) {
  std::vector<Arc> list;
  for (RowId leaf = 1; leaf <= leaves; ++leaf) list.push_back({0, leaf});
  for (RowId i = 0; i < edges; ++i) {
    const Philox4 random = draw(1, 0, i, 0, Draw::edge);
    list.push_back({RowId(1 + below(random.low(), leaves)), RowId(1 + below(random.high(), leaves))});
  }
  return undirected_graph(leaves + 1, list, false);
}

}  // namespace gs
