// What skip-gram has to move and compute, by formula, for the walks that a batch really has.
#pragma once

#include "kernels/views.hpp"

#include "bench/support/measure.hpp"

namespace gs::bench {

/// Counts over a batch of walks.
struct WalkCounts {
  Offset steps = 0;      ///< nodes after a walk's first
  Offset tile_rows = 0;  ///< centres + contexts + negatives of every tile with a pair
  Offset dense = 0;      ///< centres x shared negatives of the same tiles
};

/// nodes [walks, l] in host memory; kNoRow after an early end.
inline WalkCounts count_walks(Span<const RowId> nodes, const kernels::TileShape& shape) {
  WalkCounts counts;
  for (Offset start = 0; start < nodes.size; start += shape.walk_length) {
    int length = shape.walk_length;
    while (nodes[start + length - 1] == kNoRow) --length;
    counts.steps += length - 1;
    if (length < 2) continue;
    for (int first = 0; first < length; first += shape.centres()) {
      const int last = std::min(first + shape.centres(), length);
      const int contexts = std::min(last + shape.window, length) - std::max(first - shape.window, 0);
      counts.tile_rows += last - first + contexts + shape.shared_negatives;
      counts.dense += Offset(last - first) * shape.shared_negatives;
    }
  }
  return counts;
}

/// A tile of c centres, x contexts, s negatives: (c + x + s) rows read and written, 6 dim (pairs + c s) FLOP.
inline Work tile_work(Offset pairs, const WalkCounts& counts, int dim) {
  return {double(pairs), 8.0 * dim * double(counts.tile_rows), 6.0 * dim * double(pairs + counts.dense)};
}

/// A pair with k negatives of its own: k + 2 rows read and written, 6 dim (k + 1) FLOP.
inline Work pair_work(Offset pairs, double negatives, int dim) {
  return {double(pairs), 8.0 * dim * (negatives + 2) * double(pairs), 6.0 * dim * (negatives + 1) * double(pairs)};
}

}  // namespace gs::bench
