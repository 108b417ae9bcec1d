// Batches of tiles made by hand, the same on every backend.
#pragma once

#include <cstring>

#include "tests/support/backends.hpp"
#include "tests/support/skip_gram_twin.hpp"

namespace gs {

/// A batch of hand-made walks over a few rows, with repeats, early ends and negatives that are contexts.
struct TileCase {
  TileCase(TestDevice& on, kernels::TileShape with, Offset walks, Offset rows, std::uint64_t seed)
      : shape(with),
        row_count(rows),
        nodes(on, made_walks(walks, seed)),
        negatives(on, drawn(walks * with.tiles_per_walk * with.shared_negatives, seed + 1)),
        centres(on, values(seed + 2)),
        contexts(on, values(seed + 3)),
        results(on, walks * with.tiles_per_walk, kernels::TileResult{-1, 77}) {
    batch.shape = shape;
    batch.walks = {seed, 3, 11, walks, shape.walk_length};
    batch.nodes = nodes.span();
    batch.negatives = negatives.span();
    batch.centres = rows_of(centres), batch.contexts = rows_of(contexts);
    batch.results = results.span();
    batch.learning_rate = 1;  // a step is then minus the gradient
  }

  Rows<float> rows_of(const Values<float>& table) const {
    return {table.span().data, row_count, shape.dim, padded_stride(shape.dim)};
  }

  /// The table as the twin wants it; padding must be zero.
  twin::Table table_of(const std::vector<float>& flat) const {
    twin::Table table(std::size_t(row_count), std::vector<double>(std::size_t(shape.dim)));
    const Offset stride = padded_stride(shape.dim);
    for (Offset i = 0; i < row_count; ++i)
      for (Offset c = 0; c < stride; ++c) {
        const float value = flat[std::size_t(i * stride + c)];
        if (c < shape.dim)
          table[std::size_t(i)][std::size_t(c)] = double(value);
        else
          EXPECT_EQ(value, 0.0f) << "padding of row " << i << " was written";
      }
    return table;
  }

  std::vector<RowId> drawn(Offset count, std::uint64_t seed) const {
    std::vector<RowId> rows(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = RowId(below(draw(seed, 0, i, 0, Draw::negative).low(), std::uint64_t(row_count)));
    return rows;
  }

  std::vector<RowId> made_walks(Offset walks, std::uint64_t seed) const {
    std::vector<RowId> all = drawn(walks * shape.walk_length, seed);
    for (Offset w = 0; w < walks; ++w) {  // every third walk ends early; one has a single node
      const int length = w % 3 != 1 ? shape.walk_length : w == 1 ? 1 : 1 + int(w) % shape.walk_length;
      for (int i = length; i < shape.walk_length; ++i) all[std::size_t(w * shape.walk_length + i)] = kNoRow;
    }
    return all;
  }

  std::vector<float> values(std::uint64_t seed) const {
    const Offset stride = padded_stride(shape.dim);
    std::vector<float> flat(std::size_t(row_count * stride), 0);
    for (Offset i = 0; i < row_count; ++i)
      for (int c = 0; c < shape.dim; ++c)
        flat[std::size_t(i * stride + c)] =
            (unit_float(draw(seed, 0, std::uint64_t(i), std::uint32_t(c), Draw::initial).word[0]) - 0.5f) * 2 /
            std::sqrt(float(shape.dim));
    return flat;
  }

  kernels::TileShape shape;
  Offset row_count;
  Values<RowId> nodes, negatives;
  Values<float> centres, contexts;
  Values<kernels::TileResult> results;
  kernels::TileBatch batch;
};

inline kernels::TileShape shape_of(int length, int tiles, int window, bool shrink, int negatives, int dim) {
  kernels::TileShape shape;
  shape.walk_length = length, shape.tiles_per_walk = tiles, shape.window = window, shape.shrink_window = shrink;
  shape.shared_negatives = negatives, shape.negatives = 5, shape.dim = dim;
  return shape;
}

}  // namespace gs
