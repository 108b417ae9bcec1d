// A pair's products on a CPU: k + 1 dot products, one vector of sigmas, and one pass over the columns that steps all
// k + 2 rows. The next pairs' rows are on their way from memory meanwhile.
#pragma once

#include <cstring>
#include <limits>

#include "kernels/pairs.hpp"
#include "kernels/simd.hpp"

namespace gs::kernels::GS_BACKEND::simd {

class PairProducts {
 public:
  static Offset scratch_bytes(const TileShape& shape) {
    return 4 * coefficients_of(shape) + 8 * (Offset(shape.negatives) + 1 + kSpare);
  }

  GS_DEV PairProducts(const Team& team, const TileBatch& batch, const PairList& pairs)
      : batch_(batch),
        pairs_(pairs),
        columns_(int(batch.centres.stride)),
        padded_width_(int(coefficients_of(batch.shape))),
        coefficients_(reinterpret_cast<float*>(team.scratch + PairList::bytes(batch.shape))),
        rows_(reinterpret_cast<float**>(coefficients_ + padded_width_)) {}

  GS_DEV TileResult train() {
    SoftplusSum loss;
    TileResult result;
    result.pairs = std::uint32_t(pairs_.count);
    for (int p = 0; p < kAhead && p < pairs_.count; ++p) ask_for(p);
    for (int p = 0; p < pairs_.count; ++p) {
      if (p + kAhead < pairs_.count) ask_for(p + kAhead);
      float* centre = batch_.centres.row(pairs_.centres[p]);
      const int count = find_rows(p);
      score(centre, count, loss);
      int column = 0;
      constexpr int kWide = kLanes == 16 ? 8 : 4;
      for (; column + kWide * kLanes <= columns_; column += kWide * kLanes) step<kWide>(centre, count, column);
      for (; column < columns_; column += kLanes) step<1>(centre, count, column);
    }
    result.loss = sum_of(loss.lanes());
    return result;
  }

 private:
  static constexpr int kAhead = 3;  // pairs: 18 rows of 5 negatives
  static constexpr int kSpare = 4;  // a block of scores may read this many row pointers past the last
  static Offset coefficients_of(const TileShape& shape) {
    return (Offset(shape.negatives) + 1 + kSpare + 15) / 16 * 16;
  }

  GS_DEV void ask_for(int p) const {
    for (int r = 0; r < pairs_.width; ++r) {
      const RowId id = pairs_.rows[p * pairs_.width + r];
      if (id == kNoRow) continue;
      const float* row = batch_.contexts.row(id);
      for (int c = 0; c < columns_; c += 16) prefetch(row + c);
    }
  }

  /// The pair's rows of the context table, its context first; returns how many there are.
  GS_DEV int find_rows(int p) {
    int count = 0;
    for (int r = 0; r < pairs_.width; ++r) {
      const RowId id = pairs_.rows[p * pairs_.width + r];
      if (id != kNoRow) rows_[count++] = batch_.contexts.row(id);
    }
    for (int r = 0; r < kSpare; ++r) rows_[count + r] = rows_[0];
    return count;
  }

  /// Scores become learning-rate-scaled gradients.
  GS_DEV void score(const float* centre, int count, SoftplusSum& loss) {
    for (int r = 0; r < count;) {
      const bool four = count - r > 2;
      const Vec scores =
          four ? dot_block<1, 4>(&centre, rows_ + r, columns_) : dot_block<1, 2>(&centre, rows_ + r, columns_);
      std::memcpy(coefficients_ + r, &scores, 4 * sizeof(float));
      r += four ? 4 : 2;
    }
    for (int r = count; r < padded_width_; ++r) coefficients_[r] = -std::numeric_limits<float>::infinity();
    coefficients_[0] = -coefficients_[0];  // the context's sign is the other one
    sigmas(coefficients_, padded_width_, 1, -batch_.learning_rate, loss);
    coefficients_[0] = -coefficients_[0];
  }

  template <int V>
  GS_DEV void step(float* centre, int count, int column) const {
    Vec old[V], sum[V] = {};
    for (int v = 0; v < V; ++v) old[v] = held(load(centre + column + v * kLanes));
    for (int r = 0; r < count; ++r) {
      const Vec coefficient = all(coefficients_[r]);
      float* row = rows_[r] + column;
      for (int v = 0; v < V; ++v) {
        const Vec values = held(load(row + v * kLanes));
        sum[v] += coefficient * values;
        store(row + v * kLanes, values + coefficient * old[v]);
      }
    }
    for (int v = 0; v < V; ++v) store(centre + column + v * kLanes, old[v] + sum[v]);
  }

  const TileBatch& batch_;
  const PairList& pairs_;
  int columns_, padded_width_;
  float* coefficients_;  // [width], padded to 16
  float** rows_;         // [width]
};

}  // namespace gs::kernels::GS_BACKEND::simd
