// One tile: which nodes of which walk it trains, and where its coefficients stand. Shared by every backend.
//
// The loss of a tile (u: rows of the centre table, v: of the context table, n: the shared negatives in that table):
//   sum over centres i [ sum over contexts j of i: -log sigma(u_i.v_j)  +  (k c_i / s) sum over s: -log sigma(-u_i.n_s)
//   ]
// c_i is the number of contexts of i: in expectation every pair has k negatives (Mikolov et al. 2013), at a fraction of
// the memory traffic. A negative that is the centre or one of its contexts counts as score -infinity: no loss, no
// gradient.
#pragma once

#include "kernels/exec.hpp"
#include "kernels/views.hpp"

namespace gs::kernels::GS_BACKEND {

/// Positions are indices into the walk; centres are [first_centre, first_centre + centres), contexts likewise.
struct Tile {
  const RowId* walk;       // [nodes]
  const RowId* negatives;  // [s]
  int nodes;               // of the walk, before it ended
  int first_centre, centres;
  int first_context, contexts;
  Offset walk_index;  // of the epoch
  TileKind kind;
  bool both_ways;

  GS_DEV bool empty() const { return centres <= 0 || nodes < 2; }
};

GS_DEV Tile cut_tile(const TileBatch& batch, Offset index) {
  const TileShape& shape = batch.shape;
  const Offset walk = index / shape.tiles_per_walk;
  Tile tile;
  tile.walk = &batch.nodes[walk * shape.walk_length];
  tile.negatives = &batch.negatives[index * shape.shared_negatives];
  tile.nodes = shape.walk_length;
  while (tile.nodes > 0 && tile.walk[tile.nodes - 1] == kNoRow) --tile.nodes;
  tile.walk_index = batch.walks.walk(walk);
  tile.kind = shape.kind, tile.both_ways = shape.both_ways;
  tile.first_centre = int(index % shape.tiles_per_walk) * shape.centres();
  const int last_centre =
      tile.first_centre + shape.centres() < tile.nodes ? tile.first_centre + shape.centres() : tile.nodes;
  tile.centres = last_centre - tile.first_centre;
  tile.first_context = tile.first_centre > shape.window ? tile.first_centre - shape.window : 0;
  const int last_context = last_centre + shape.window < tile.nodes ? last_centre + shape.window : tile.nodes;
  tile.contexts = last_context - tile.first_context;
  return tile;
}

/// A tile's places are its centres, then its contexts, then its negatives; this is the table row at place p.
GS_DEV RowId row_at(const Tile& tile, int p) {
  if (p < tile.centres) return tile.walk[tile.first_centre + p];
  p -= tile.centres;
  return p < tile.contexts ? tile.walk[tile.first_context + p] : tile.negatives[p - tile.contexts];
}
GS_DEV float* table_row_at(const TileBatch& batch, const Tile& tile, int p) {
  return (p < tile.centres ? batch.centres : batch.contexts).row(row_at(tile, p));
}

/// Where place p's step is added: to its table row, or to the row's gradient.
GS_DEV float* stepped_row_at(const TileBatch& batch, const Tile& tile, int p) {
  if (batch.gradients.empty()) return table_row_at(batch, tile, p);
  return (p < tile.centres ? batch.gradients.centres : batch.gradients.contexts).row(row_at(tile, p));
}
GS_DEV float* curvature_at(const TileBatch& batch, const Tile& tile, int p) {
  return &(p < tile.centres ? batch.gradients.centre_curvature : batch.gradients.context_curvature)[row_at(tile, p)];
}

/// Whether centres and contexts are rows of one table.
GS_DEV bool has_one_table(const TileBatch& batch) { return batch.centres.data == batch.contexts.data; }

/// A step is the log likelihood's gradient times this: the learning rate, or -1 where the loss's gradients are summed.
GS_DEV float step_rate(const TileBatch& batch) { return batch.gradients.empty() ? batch.learning_rate : -1.0f; }

/// Contexts of the centre at `position` on either side: the window, or word2vec's uniform draw from 1..window.
GS_DEV int reach_of(const TileBatch& batch, const Tile& tile, int position) {
  if (!batch.shape.shrink_window) return batch.shape.window;
  const Philox4 random = draw(batch.walks.seed, batch.walks.epoch, std::uint64_t(tile.walk_index),
                              std::uint32_t(position / 4), Draw::window);
  const int place = position % 4;  // selected, not indexed: an indexed register array would live in memory on a GPU
  const std::uint64_t bits = place == 0   ? random.word[0]
                             : place == 1 ? random.word[1]
                             : place == 2 ? random.word[2]
                                          : random.word[3];
  return 1 + int(bits * std::uint32_t(batch.shape.window) >> 32);
}

/// Scores, then coefficients, of a tile.
/// band(i, j): centre i with the context at walk position j; kept as a diagonal band, one row a centre.
/// dense(i, s): centre i with negative s.
struct Coefficients {
  static constexpr int kEdge = 16;  // floats before and after the band, always 0: blocks may read one beyond a row

  float* band;
  float* dense;
  int* reach;  // [centres]
  int window, band_stride, dense_stride;

  static GS_HD int band_stride_of(const TileShape& shape) { return (2 * shape.window + 2 + 15) / 16 * 16; }
  static GS_HD int dense_stride_of(const TileShape& shape) { return (shape.shared_negatives + 15) / 16 * 16; }
  static GS_HD int reach_stride_of(const TileShape& shape) { return (shape.centres() + 15) / 16 * 16; }
  /// Floats of scratch; a multiple of 16.
  static GS_HD Offset floats(const TileShape& shape) {
    return 2 * kEdge + Offset(shape.centres() + 3) * (band_stride_of(shape) + dense_stride_of(shape)) +
           reach_stride_of(shape);
  }

  GS_DEV Coefficients(float* scratch, const TileShape& shape)
      : window(shape.window), band_stride(band_stride_of(shape)), dense_stride(dense_stride_of(shape)) {
    band = scratch + kEdge;
    dense = band + Offset(shape.centres() + 3) * band_stride + kEdge;
    reach = reinterpret_cast<int*>(dense + Offset(shape.centres() + 3) * dense_stride);
  }

  /// centre: index within the tile, standing at walk position `at`; j: a walk position within its window.
  GS_DEV float& band_at(int centre, int at, int j) const { return band[centre * band_stride + (j - at + window)]; }
  GS_DEV float& dense_at(int centre, int s) const { return dense[centre * dense_stride + s]; }
};

/// What shortens a tile's steps, one value a place.
struct RowBounds {
  float* norm;  // |row|^2, and once masses are known, the factor of the row's step
  float* mass;
  int* row;
  float* prefix;
  int centres, contexts;

  static GS_HD Offset places(const TileShape& shape) {
    return (shape.centres() + shape.contexts() + shape.shared_negatives + 31) / 16 * 16;  // and a vector to spare
  }
  static GS_HD Offset floats(const TileShape& shape) { return 4 * places(shape); }

  GS_DEV RowBounds(float* scratch, const TileShape& shape, const Tile& tile)
      : norm(scratch),
        mass(scratch + places(shape)),
        row(reinterpret_cast<int*>(scratch + 2 * places(shape))),
        prefix(scratch + 3 * places(shape)),
        centres(tile.centres),
        contexts(tile.contexts) {}

  GS_DEV int context(int j) const { return centres + j; }
  GS_DEV int negative(int s) const { return centres + contexts + s; }
};

/// What a row's step is multiplied by.
GS_DEV float shortening(float mass, float limit) { return mass > limit ? limit / mass : 1.0f; }

/// The walk positions of a centre's contexts, itself among them. Of edges: the other end.
GS_DEV int first_of_window(const Tile& tile, int at, int reach) {
  if (tile.kind == TileKind::edges) return at % 2 == 1 && tile.both_ways ? at - 1 : at;
  return at > reach ? at - reach : 0;
}
GS_DEV int last_of_window(const Tile& tile, int at, int reach) {
  if (tile.kind == TileKind::edges) return at % 2 == 0 ? at + 1 : at;
  return at + reach < tile.nodes ? at + reach : tile.nodes - 1;
}

}  // namespace gs::kernels::GS_BACKEND
