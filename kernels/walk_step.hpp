// How an arc of a node is drawn: uniformly or by weight.
#pragma once

#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

/// A node's arcs: places first .. first + degree among the graph's.
struct ArcRange {
  Offset first, degree;
};

/// Where x stands, or would, among `count` sorted rows: the first that is not below it.
GS_DEV Offset lower_bound_of(const RowId* rows, Offset count, RowId x) {
  Offset first = 0;
  while (count > 0) {
    const Offset half = count / 2;
    const bool below_x = rows[first + half] < x;
    first = below_x ? first + half + 1 : first;
    count = below_x ? count - half - 1 : half;
  }
  return first;
}

/// Draws arcs in two stages, so that a flock's reads of one are on their way while the others' are asked for.
struct ArcDraw {
  WalkGraph graph;

  GS_DEV Offset first_arc(RowId node) const {
    return Offset(graph.arcs[node] & ((std::uint64_t(1) << kFirstArcBits) - 1));
  }

  /// degree 0 where no arc can be walked.
  GS_DEV ArcRange arcs(RowId node) const {
    const std::uint64_t degree = graph.arcs[node] >> kFirstArcBits;
    return {first_arc(node), degree == kManyArcs ? graph.offsets[node + 1] - graph.offsets[node] : Offset(degree)};
  }

  /// Those of a node's arcs that lead to x. Its targets are sorted.
  GS_DEV ArcRange arcs_to(const ArcRange& range, RowId x) const {
    const RowId* targets = &graph.targets[range.first];
    const Offset first = lower_bound_of(targets, range.degree, x);
    Offset count = 0;
    while (first + count < range.degree && targets[first + count] == x) ++count;
    return {range.first + first, count};
  }

  /// A uniform arc of `node`, or -1 where it has none; what it leads to is on its way from memory.
  GS_DEV Offset pick(RowId node, std::uint64_t bits) const {
    if (node == kNoRow) return -1;
    const ArcRange range = arcs(node);
    if (range.degree == 0) return -1;
    const Offset arc = range.first + Offset(below(bits, std::uint64_t(range.degree)));
    if (graph.arc_alias.empty()) {
      prefetch(&graph.targets[arc]);
    } else {
      prefetch(&graph.arc_alias[arc]);
    }
    return arc;
  }

  /// Of graphs with arc_alias: the picked arc or its alias.
  GS_DEV Offset weigh(RowId node, Offset arc, std::uint32_t coin) const {
    if (arc < 0) return arc;
    const AliasSlot slot = graph.arc_alias[arc];
    if (coin >= slot.threshold) arc = first_arc(node) + slot.alias;
    prefetch(&graph.targets[arc]);
    return arc;
  }
};

}  // namespace gs::kernels::GS_BACKEND
