// How an arc of a node is drawn: uniformly or by weight.
#pragma once

#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

/// A node's arcs: places first .. first + degree among the graph's.
struct ArcRange {
  Offset first, degree;
};

/// A binary search in sorted rows, step by step, so that many can wait for memory together. Ends at the first row that
/// is not below the one sought.
struct Search {
  const RowId *at, *end;
  Offset left;  // rows that it may still be among, from `at` on
  RowId row;

  GS_DEV Search(Span<const RowId> rows, RowId sought)
      : at(rows.data), end(rows.data + rows.size), left(rows.size), row(sought) {
    prefetch(at + left / 2);
  }
  GS_DEV void step() {
    const Offset half = left / 2, is_below = at[half] < row;
    at += (half + 1) & -is_below;  // without a branch, as is `left`: which way it goes cannot be foreseen
    left = half - (is_below & ~left & 1);
    prefetch(at + left / 2);
  }
  /// By leaps that double, where the row is likely to be among the first.
  GS_DEV void leap() {
    Offset leap = 1;
    while (leap < left && at[leap] < row) leap *= 2;
    if (leap < left) left = leap;
  }
  GS_DEV void finish() {
    while (left > 0) step();
  }
  /// What the search would find, by looking at every row.
  GS_DEV bool is_among_left() const {
    bool is_among = false;
    for (Offset i = 0; i < left; ++i) is_among |= at[i] == row;  // no branch
    return is_among;
  }
  /// Of a finished one.
  GS_DEV bool found() const { return at < end && *at == row; }
};

/// Draws arcs in two stages, so that a flock's reads of one are on their way while the others' are asked for.
struct ArcDraw {
  WalkGraph graph;

  GS_DEV Offset first_arc(RowId node) const {
    return Offset(graph.arcs[node] & ((std::uint64_t(1) << kFirstArcBits) - 1));
  }

  GS_DEV bool has_distinct_arcs(RowId node) const { return (graph.arcs[node] & kDistinctArcs) != 0; }

  /// degree 0 where no arc can be walked.
  GS_DEV ArcRange arcs(RowId node) const {
    const std::uint64_t degree = graph.arcs[node] >> kDegreeShift;
    return {first_arc(node), degree == kManyArcs ? graph.offsets[node + 1] - graph.offsets[node] : Offset(degree)};
  }

  GS_DEV Span<const RowId> targets(const ArcRange& range) const {
    return {graph.targets.data + range.first, range.degree};
  }

  /// Those of a node's arcs that lead to the row that a finished search of its targets sought.
  GS_DEV ArcRange found(const Search& search) const {
    const RowId* last = search.at;
    while (last < search.end && *last == search.row) ++last;
    return {search.at - graph.targets.data, last - search.at};
  }
  GS_DEV ArcRange arcs_to(const ArcRange& range, RowId x) const {
    Search search(targets(range), x);
    search.finish();
    return found(search);
  }

  /// Those of a node's arcs that lead where one of them does.
  GS_DEV ArcRange beside(const ArcRange& range, Offset arc) const {
    const RowId x = graph.targets[arc];
    const Offset end = range.first + range.degree;
    const Offset before = arc - (arc > range.first), after = arc + (arc + 1 < end);
    const bool is_alone =
        ((before == arc) | (graph.targets[before] != x)) & ((after == arc) | (graph.targets[after] != x));
    if (is_alone) return {arc, 1};  // most are, and this one branch knows it
    Offset first = arc, last = arc + 1;
    while (first > range.first && graph.targets[first - 1] == x) --first;
    while (last < end && graph.targets[last] == x) ++last;
    return {first, last - first};
  }

  /// A uniform arc of `node`, or -1 where it has none; what it leads to is on its way from memory.
  GS_DEV Offset pick(RowId node, std::uint64_t bits) const { return node == kNoRow ? -1 : pick(arcs(node), bits); }
  GS_DEV Offset pick(const ArcRange& range, std::uint64_t bits) const {
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
