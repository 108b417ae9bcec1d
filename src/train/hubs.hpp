// Nodes that many arcs meet at.
#pragma once

#include "graphscale/graph.hpp"

namespace gs {

struct Hubs {
  RowId largest = 0;         ///< the node that most arcs meet at
  Offset degree = 0;         ///< arcs from it; of a directed graph those to it as well
  double largest_share = 0;  ///< degree / arcs
  double top_share = 0;      ///< of the hundredth of the nodes of highest degree, at least one; at most 1
};
Hubs hubs_of(const Csr& graph);  ///< with an arc; reads targets only where directed

/// One line, and a warning where one node dominates.
void log_hubs(const Graph& graph);

}  // namespace gs
