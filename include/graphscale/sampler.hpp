// What training reads: a graph to walk on, tables to draw from, walks and negatives. All of it on exec's device.
#pragma once

#include "graphscale/graph.hpp"
#include "kernels/ops.hpp"

namespace gs {

/// Alias table of a distribution in proportion to `weights` [n] (finite, >= 0, not all 0), host memory. A weight of 0
/// is never drawn; a positive one has a probability right within 2^-32 of the mean slot (Vose 1991, O(n)).
std::vector<kernels::AliasSlot> alias_table(Span<const double> weights);

/// The same into `slots`, as long as `weights`; `scratch` keeps its storage between calls.
void fill_alias_table(Span<const float> weights, kernels::AliasSlot* slots, std::vector<std::uint32_t>& scratch);

/// A graph on exec's device, ready for `make_walks`: a packed word a node, targets, and, where weighted, alias slots.
/// Held bytes: 16 n + 4 arcs, 12 arcs where weighted.
class WalkTopology {
 public:
  /// weighted: follow arcs by weight where the graph has weights. A node all of whose arcs weigh 0 is a sink.
  WalkTopology(const Csr& graph, bool weighted, const Exec& exec);
  kernels::WalkGraph view() const;
  Offset num_nodes() const { return arcs_.size(); }
  static Offset bytes(Offset nodes, Offset arcs, bool weighted);

 private:
  Buffer<kernels::PackedArcs> arcs_;
  Buffer<Offset> offsets_;
  Buffer<RowId> targets_;
  Buffer<kernels::AliasSlot> arc_alias_;
};

/// Rows to draw as negatives, in proportion to (number of arcs that reach the row, its own where undirected) ^ power.
/// A row without arcs is never drawn unless no row has any. Held bytes: 8 a row, 4 more where the rows are a list.
class NegativeTable {
 public:
  NegativeTable(const Csr& graph, double power, const Exec& exec);  ///< of all rows
  /// Of `count` rows of the graph; their list, if any, in host memory. Throws internal where count is 0.
  NegativeTable(const Csr& graph, double power, const kernels::RowSequence& rows, Offset count, const Exec& exec);
  kernels::RowDraw view() const;
  static Offset bytes(Offset rows, bool is_list = false) {
    return rows * Offset(sizeof(kernels::AliasSlot) + (is_list ? sizeof(RowId) : 0));
  }

 private:
  Buffer<kernels::AliasSlot> slots_;
  kernels::RowSequence rows_;
  Buffer<RowId> list_;
};

/// Expected number of (centre, context) pairs of one full walk over the draws of its windows; tests hold a run's count
/// of pairs against it.
double expected_pairs(const kernels::TileShape& shape);

}  // namespace gs
