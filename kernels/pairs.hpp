// The pairs of one tile, written out: what the pair-at-a-time kernel trains. Shared by every backend.
#pragma once

#include "kernels/tile.hpp"

namespace gs::kernels::GS_BACKEND {

/// Pair p is the row centres[p] of the centre table against rows[p * width ..] of the context table: its context, then
/// its k negatives, kNoRow where one is left out.
struct PairList {
  RowId* centres;  // [pairs]
  RowId* rows;     // [pairs, width]
  int* first;      // [centres of the tile + 1]: a centre's first pair
  int width;       // 1 + k
  int count = 0;

  static GS_HD Offset most(const TileShape& shape) { return Offset(shape.centres()) * 2 * shape.window; }
  static GS_HD Offset bytes(const TileShape& shape) {
    return (4 * (most(shape) * (2 + Offset(shape.negatives)) + shape.centres() + 1) + 63) / 64 * 64;
  }

  GS_DEV PairList(char* scratch, const TileShape& shape)
      : centres(reinterpret_cast<RowId*>(scratch)), rows(centres + most(shape)), width(1 + int(shape.negatives)) {
    first = reinterpret_cast<int*>(rows + most(shape) * width);
  }

  /// Centres and contexts; the negatives are still to be drawn.
  GS_DEV void find(const Team& team, const TileBatch& batch, const Tile& tile) {
    for (int i = team.rank(); i < tile.centres; i += team.size()) {
      const int at = tile.first_centre + i, reach = reach_of(batch, tile, at);
      first[i + 1] = last_of_window(tile, at, reach) - first_of_window(tile, at, reach);
    }
    team.sync();
    if (team.rank() == 0) {
      first[0] = 0;
      for (int i = 0; i < tile.centres; ++i) first[i + 1] += first[i];
    }
    team.sync();
    count = first[tile.centres];
    for (int i = team.rank(); i < tile.centres; i += team.size()) {
      const int at = tile.first_centre + i, begin = first_of_window(tile, at, reach_of(batch, tile, at));
      for (int p = first[i]; p < first[i + 1]; ++p) {
        const int j = begin + p - first[i];
        centres[p] = tile.walk[at];
        rows[p * width] = tile.walk[j < at ? j : j + 1];
      }
    }
    team.sync();
  }
};

}  // namespace gs::kernels::GS_BACKEND
