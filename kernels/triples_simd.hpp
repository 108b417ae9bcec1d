// Cells in a CPU's vectors, and the block of scores that stays in registers.
#pragma once

#include "kernels/simd.hpp"
#include "kernels/triples.hpp"

namespace gs::kernels::GS_BACKEND::simd {

using Wide [[gnu::vector_size(kLanes * 4)]] = float;  // Vec, as what a template's argument can be

/// A row's cells of one vector: `count` of them from `first` on, or all of a vector's.
template <bool Whole>
struct Columns {
  int first, count;

  GS_DEV Vec read(const float* p) const { return Whole ? load_any(p + first) : load_first(p + first, count); }
  GS_DEV void write(float* p, Vec v) const { Whole ? store_any(p + first, v) : store_first(p + first, v, count); }
  template <Score S>
  GS_DEV Cell<S, Wide> read(const float* row, int cells) const {
    if constexpr (kPaired<S>) {
      return {held(read(row)), held(read(row + cells))};
    } else {
      return held(read(row));
    }
  }
  template <Score S>
  GS_DEV void write(float* row, int cells, Cell<S, Wide> v) const {
    if constexpr (kPaired<S>) {
      write(row, v.re), write(row + cells, v.im);
    } else {
      write(row, v);
    }
  }
};

/// body(columns) for every vector of `cells` cells.
template <class Body>
GS_DEV void each_vector(int cells, const Body& body) {
  int first = 0;
  for (; first + kLanes <= cells; first += kLanes) body(Columns<true>{first, kLanes});
  if (first < cells) body(Columns<false>{first, cells - first});
}

/// Queries against entities at a time: as many scores as a vector has lanes, but for the narrowest.
inline constexpr int kQueryBlock = kLanes == 4 ? 2 : kLanes / 4, kEntityBlock = kLanes == 4 ? 2 : 4;

/// Lane a * kEntityBlock + b of the result is the score of q[a] with e[b].
template <Score S>
GS_DEV Vec score_block(const float* const* q, const float* const* e, int dim) {
  constexpr int X = kQueryBlock, Y = kEntityBlock;
  const int cells = dim / kCellFloats<S>;
  Wide acc[X * Y] = {};
  each_vector(cells, [&](auto columns) {
    Cell<S, Wide> left[X];
    for (int a = 0; a < X; ++a) left[a] = columns.template read<S>(q[a], cells);
    for (int b = 0; b < Y; ++b) {
      const Cell<S, Wide> right = columns.template read<S>(e[b], cells);
      for (int a = 0; a < X; ++a) acc[a * Y + b] = add_cell<S>(acc[a * Y + b], left[a], right);
    }
  });
  return score_of<S, Wide>(lane_sums<X * Y>(acc));
}

}  // namespace gs::kernels::GS_BACKEND::simd
