// METIS behind one function.
#pragma once

#include "graphscale/graph.hpp"

namespace gs {

/// [n] each row's part in 0 .. parts - 1: parts of about as many rows and as many arcs each, with few arcs between
/// them. Directions and weights of arcs do not count. The same graph gives the same parts. More parts than rows, or no
/// arc between two rows: parts as cyclic placement makes them. Throws usage: more arcs than METIS can count; memory:
/// METIS had too little.
std::vector<int> partition(const Csr& graph, int parts);

}  // namespace gs
