// Cells in packs of four, and rows of them staged in a team's scratch.
#pragma once

#include "kernels/triples.hpp"

namespace gs::kernels::GS_BACKEND {

GS_DEV Pack4 operator+(Pack4 a, Pack4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
GS_DEV Pack4 operator-(Pack4 a, Pack4 b) { return {a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w}; }
GS_DEV Pack4 operator*(Pack4 a, Pack4 b) { return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w}; }
GS_DEV Pack4 all(float a) { return {a, a, a, a}; }
GS_DEV Pack4 operator+(Pack4 v, float a) { return v + all(a); }
GS_DEV Pack4 operator+(float a, Pack4 v) { return all(a) + v; }
GS_DEV Pack4 operator*(float a, Pack4 v) { return all(a) * v; }
GS_DEV Pack4 magnitude(Pack4 v) { return {magnitude(v.x), magnitude(v.y), magnitude(v.z), magnitude(v.w)}; }
GS_DEV Pack4 root(Pack4 v) { return {root(v.x), root(v.y), root(v.z), root(v.w)}; }
GS_DEV Pack4 inverse_root(Pack4 v) {
  return {inverse_root(v.x), inverse_root(v.y), inverse_root(v.z), inverse_root(v.w)};
}
GS_DEV Pack4 signed_by(Pack4 size, Pack4 v) {
  return {signed_by(size.x, v.x), signed_by(size.y, v.y), signed_by(size.z, v.z), signed_by(size.w, v.w)};
}
GS_DEV float sum_of(Pack4 v) { return v.x + v.y + (v.z + v.w); }

}  // namespace gs::kernels::GS_BACKEND

namespace gs::kernels::GS_BACKEND::team {

/// Cells [first, first + width) of rows in scratch: a row's real parts, then its imaginary ones, then a pack that keeps
/// neighbouring rows in different banks. Cells past a row's last are 0.
template <Score S>
struct Slab {
  int cells;         // of a whole row
  int first, width;  // a multiple of kPack

  static GS_HD int stride(int width) { return kCellFloats<S> * width + kPack; }

  /// staged(i) <- row_of(i), i < rows; the team meets before and after.
  template <class RowOf>
  GS_DEV void stage(const Team& team, float* staged, int rows, const RowOf& row_of) const {
    const int floats = kCellFloats<S> * width;
    for (int k = team.rank(); k < rows * floats; k += team.size()) {
      const int i = k / floats, at = k % floats, cell = first + at % width;
      staged[i * stride(width) + at] = cell < cells ? row_of(i)[at / width * cells + cell] : 0.0f;
    }
  }

  GS_DEV Cell<S, Pack4> read(const float* staged_row, int pack) const {
    const auto* packs = reinterpret_cast<const Pack4*>(staged_row);
    if constexpr (kPaired<S>) {
      return {packs[pack], packs[width / kPack + pack]};
    } else {
      return packs[pack];
    }
  }
  GS_DEV void write(float* staged_row, int pack, Cell<S, Pack4> cell) const {
    auto* packs = reinterpret_cast<Pack4*>(staged_row);
    if constexpr (kPaired<S>) {
      packs[pack] = cell.re, packs[width / kPack + pack] = cell.im;
    } else {
      packs[pack] = cell;
    }
  }
  /// Adds to a row of a table.
  GS_DEV void add(float* row, int pack, Cell<S, Pack4> cell) const {
    const int at = first + pack * kPack;
    if constexpr (kPaired<S>) {
      const float re[kPack] = {cell.re.x, cell.re.y, cell.re.z, cell.re.w};
      const float im[kPack] = {cell.im.x, cell.im.y, cell.im.z, cell.im.w};
      GS_UNROLL
      for (int k = 0; k < kPack; ++k)
        if (at + k < cells) add_to(row + at + k, re[k]), add_to(row + cells + at + k, im[k]);
    } else {
      if (at < cells) add_to(row + at, cell);  // the rest of a pack is the row's padding
    }
  }

  /// add(a, b, sum) with the share of the slab's first packs in the sums of staged queries i, i + 1 with entities j,
  /// j + step, ..., four of them: those below `queries` and `entities`.
  template <class Add>
  GS_DEV void sum_block(const float* staged_queries, int i, int queries, const float* staged_entities, int j, int step,
                        int entities, int packs, const Add& add) const {
    constexpr int X = 2, Y = 4;
    const float *q[X], *e[Y];
    for (int a = 0; a < X; ++a) q[a] = staged_queries + (i + a < queries ? i + a : i) * stride(width);
    for (int b = 0; b < Y; ++b) e[b] = staged_entities + (j + b * step < entities ? j + b * step : j) * stride(width);
    Pack4 acc[X][Y] = {};
    for (int pack = 0; pack < packs; ++pack) {
      Cell<S, Pack4> left[X];
      GS_UNROLL
      for (int a = 0; a < X; ++a) left[a] = read(q[a], pack);
      GS_UNROLL
      for (int b = 0; b < Y; ++b) {
        const Cell<S, Pack4> right = read(e[b], pack);
        GS_UNROLL
        for (int a = 0; a < X; ++a) acc[a][b] = add_cell<S>(acc[a][b], left[a], right);
      }
    }
    GS_UNROLL
    for (int a = 0; a < X; ++a) GS_UNROLL
    for (int b = 0; b < Y; ++b)
      if (i + a < queries && j + b * step < entities) add(i + a, j + b * step, sum_of(acc[a][b]));
  }
};

}  // namespace gs::kernels::GS_BACKEND::team
