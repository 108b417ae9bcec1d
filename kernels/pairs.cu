// Skip-gram a pair at a time: each (centre, context) pair with k negatives of its own, as word2vec's inner loop does it
// (Mikolov et al. 2013). The comparator of the walk tile: same walks, same windows, same expected loss.
//
// A unit is a tile's worth of pairs: a thread on the CPU (vector loops), a team on CUDA whose threads share the
// columns. Reads and writes k + 2 rows of 4 dim bytes a pair, and does 6 dim (k + 1) floating-point operations.
#include <cmath>

#include "kernels/ops.hpp"
#include "kernels/tile.hpp"

namespace gs::kernels::GS_BACKEND {

struct TrainPairs {
  TileBatch batch;
  Span<const AliasSlot> table;

  GS_DEV void operator()(const Team& team, Offset index, Offset) const {
    const Tile tile = cut_tile(batch, index);
    TileResult result;
    float* step = reinterpret_cast<float*>(team.scratch);  // [columns], then one partial dot a thread
    const int negatives = int(batch.shape.negatives);
    for (int i = 0; i < tile.centres && !tile.empty(); ++i) {
      const int at = tile.first_centre + i, reach = reach_of(batch, tile, at);
      float* centre = batch.centres.row(tile.walk[at]);
      for (int j = first_of_window(at, reach); j <= last_of_window(tile, at, reach); ++j) {
        if (j == at) continue;
        ++result.pairs;
        clear(team, step);
        result.loss += against(team, centre, tile.walk[j], 1, step);
        for (int n = 0; n < negatives; ++n) {
          const Philox4 random = draw(batch.walks.seed, batch.walks.epoch, std::uint64_t(index),
                                      std::uint32_t((at * 128 + j - at + 64) * negatives + n), Draw::negative);
          const auto slot = Offset(below(random.low(), std::uint64_t(table.size)));
          const RowId row = random.word[2] < table[slot].threshold ? RowId(slot) : table[slot].alias;
          if (row != tile.walk[j] && row != tile.walk[at]) result.loss += against(team, centre, row, 0, step);
        }
        add(team, centre, step);
      }
    }
    if (team.rank() == 0) batch.results[index] = result;
  }

 private:
  GS_DEV int columns() const { return int(batch.centres.stride); }

  GS_DEV void clear(const Team& team, float* step) const {
    for (int c = team.rank(); c < columns(); c += team.size()) step[c] = 0;
    team.sync();
  }

  GS_DEV void add(const Team& team, float* row, const float* step) const {
    if (team.size() == 1) {
#pragma omp simd
      for (int c = 0; c < columns(); ++c) row[c] += step[c];
    } else {
      for (int c = team.rank(); c < columns(); c += team.size()) add_to(row + c, step[c]);
    }
    team.sync();
  }

  GS_DEV float dot(const Team& team, const float* a, const float* b, float* partial) const {
    float sum = 0;
    if (team.size() == 1) {
#pragma omp simd reduction(+ : sum)
      for (int c = 0; c < columns(); ++c) sum += a[c] * b[c];
      return sum;
    }
    for (int c = team.rank(); c < columns(); c += team.size()) sum += a[c] * b[c];
    partial[team.rank()] = sum;
    team.sync();
    sum = 0;
    for (int t = 0; t < team.size(); ++t) sum += partial[t];
    team.sync();
    return sum;
  }

  /// One logistic step of a centre against a row of the context table; returns its loss.
  GS_DEV float against(const Team& team, const float* centre, RowId other, float label, float* step) const {
    float* row = batch.contexts.row(other);
    const float score = dot(team, centre, row, step + columns());
    const float sigma = 1 / (1 + expf(-score)), slope = batch.learning_rate * (label - sigma);
    if (team.size() == 1) {
#pragma omp simd
      for (int c = 0; c < columns(); ++c) {
        step[c] += slope * row[c];
        row[c] += slope * centre[c];
      }
    } else {
      for (int c = team.rank(); c < columns(); c += team.size()) {
        step[c] += slope * row[c];
        add_to(row + c, slope * centre[c]);
      }
    }
    const float toward = label > 0 ? score : -score;
    return (toward < 0 ? -toward : 0.0f) + log1pf(expf(-fabsf(score)));
  }
};

void train_pairs(const TileBatch& batch, Span<const AliasSlot> table, const Exec& exec) {
  const Offset tiles = batch.walks.count * batch.shape.tiles_per_walk;
  GS_EXPECT(batch.results.size == tiles, "train_pairs: ", batch.results.size, " results for ", tiles, " tiles");
  for_each_team("train_pairs", tiles, 4 * (batch.centres.stride + 1024), TrainPairs{batch, table}, exec);
}

}  // namespace gs::kernels::GS_BACKEND
