// The tile's products on a CPU: register blocks of whole vectors over rows used where they stand in the tables.
//
// Floating-point operations a tile of c centres, p pairs, s negatives: 6 dim (p + c s) in useful products.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/simd.hpp"
#include "kernels/tile.hpp"

namespace gs::kernels::GS_BACKEND::simd {

/// The rows of the next tile, asked for one by one between the products of this one: all at once they would overrun the
/// few misses that a core can have in flight.
class RowsAhead {
 public:
  RowsAhead() = default;
  GS_DEV RowsAhead(const TileBatch& batch, Offset index) : batch_(&batch) {
    if (index == kNone) return;
    tile_ = cut_tile(batch, index);
    line_count_ = int(batch.centres.stride * Offset(sizeof(float)) / 64);
    rows_ = tile_.empty() ? 0 : tile_.centres + tile_.contexts + batch.shape.shared_negatives;
    if (rows_ * line_count_ > (batch.gradients.empty() ? kMostLines : kMostLines / 2)) rows_ = 0;
  }

  GS_DEV void ask_for_one() {
    if (next_ >= rows_) return;
    ask_for(table_row_at(*batch_, tile_, next_));
    if (!batch_->gradients.empty()) ask_for(stepped_row_at(*batch_, tile_, next_));
    ++next_;
  }
  GS_DEV void ask_for_all() {
    while (next_ < rows_) ask_for_one();
  }

 private:
  GS_DEV void ask_for(const float* row) const {
    for (int line = 0; line < line_count_; ++line) prefetch(row + 16 * line);
  }

  static constexpr int kMostLines = 4096;  // 256 KiB: this and the tile at work fit a second-level cache

  const TileBatch* batch_ = nullptr;
  Tile tile_{};
  int rows_ = 0, next_ = 0, line_count_ = 0;
};

/// Where a tile's rows stand in two tables; a tile may hold a row several times.
struct RowPointers {
  static constexpr int kSpare = 4;  // a block may read this many row pointers past the last

  float **centres, **contexts, **negatives;

  static Offset count(const TileShape& shape) {
    return shape.centres() + shape.contexts() + shape.shared_negatives + 3 * kSpare;
  }

  GS_DEV RowPointers(float** memory, const TileShape& shape, const Tile& tile, const Rows<float>& centre_table,
                     const Rows<float>& context_table)
      : centres(memory), contexts(centres + shape.centres() + kSpare), negatives(contexts + shape.contexts() + kSpare) {
    find(centre_table, tile.walk + tile.first_centre, tile.centres, centres);
    find(context_table, tile.walk + tile.first_context, tile.contexts, contexts);
    find(context_table, tile.negatives, shape.shared_negatives, negatives);
  }

 private:
  static GS_DEV void find(const Rows<float>& table, const RowId* ids, int count, float** out) {
    for (int r = 0; r < count + kSpare; ++r) out[r] = table.row(ids[r < count ? r : count - 1]);
  }
};

/// The work of one tile on one thread.
class TileProducts {
 public:
  static Offset scratch_bytes(const TileShape& shape, Offset) {
    return 4 * (Coefficients::floats(shape) + RowBounds::floats(shape)) + 16 * RowPointers::count(shape) +
           2 * 4 * padded_stride(shape.dim) * shape.centres() + 256;
  }

  GS_DEV TileProducts(const Team& team, const TileBatch& batch, const Tile& tile, Offset)
      : batch_(batch),
        tile_(tile),
        coefficients_(reinterpret_cast<float*>(team.scratch), batch.shape),
        bounds_(reinterpret_cast<float*>(team.scratch) + Coefficients::floats(batch.shape), batch.shape, tile),
        columns_(int(batch.centres.stride)),
        centre_step_(bounds_.norm + RowBounds::floats(batch.shape)),
        rows_(reinterpret_cast<float**>(centre_step_ + 2 * padded_stride(batch.shape.dim) * batch.shape.centres()),
              batch.shape, tile, batch.centres, batch.contexts),
        stepped_(rows_) {
    const bool in_place = batch.gradients.empty();
    if (in_place && !has_one_table(batch)) return;
    stepped_ = RowPointers(rows_.centres + RowPointers::count(batch.shape), batch.shape, tile,
                           in_place ? batch.centres : batch.gradients.centres,
                           in_place ? batch.contexts : batch.gradients.contexts);
  }

  /// next: the tile whose rows are asked for meanwhile, or kNone.
  GS_DEV TileResult train(Offset next) {
    ahead_ = RowsAhead(batch_, next);
    keep_centres();
    draw_reaches();
    score_band();
    score_dense();
    mask_negatives();
    const TileResult result = coefficients();
    bound_steps();
    step_centres();
    step_contexts();
    step_negatives();
    ahead_.ask_for_all();
    for (int i = 0; i < tile_.centres; ++i) {
      float* row = stepped_.centres[i];
      const float* step = centre_step_ + Offset(i) * columns_;
      const float factor = bounds_.norm[i];
      for (int c = 0; c < columns_; c += kLanes) store(row + c, load(row + c) + factor * load(step + c));
    }
    return result;
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  /// Where one table is both and trained in place, the contexts' steps would change centres that are still read.
  GS_DEV void keep_centres() {
    if (!has_one_table(batch_) || !batch_.gradients.empty()) return;
    float* const kept = centre_step_ + Offset(batch_.shape.centres()) * columns_;
    for (int i = 0; i < tile_.centres; ++i) {
      std::memcpy(kept + Offset(i) * columns_, rows_.centres[i], std::size_t(columns_) * sizeof(float));
      rows_.centres[i] = kept + Offset(i) * columns_;
    }
    for (int spare = tile_.centres; spare < tile_.centres + RowPointers::kSpare; ++spare)
      rows_.centres[spare] = rows_.centres[tile_.centres - 1];
  }

  GS_DEV void draw_reaches() {
#pragma omp simd
    for (int i = 0; i < tile_.centres; ++i) coefficients_.reach[i] = reach_of(batch_, tile_, tile_.first_centre + i);
  }

  GS_DEV void score_band() {
    constexpr int kBlock = 4;
    const Coefficients& k = coefficients_;
    for (int f = 0; f < Coefficients::kEdge; ++f) k.band[-1 - f] = 0;
    const int rows = tile_.centres + 1;  // one more of zeros: a block of two may read it
    for (int f = 0; f < rows * k.band_stride; ++f) k.band[f] = kInfinity;
    for (int i = 0; i < tile_.centres; ++i) {
      ahead_.ask_for_one();
      const int at = tile_.first_centre + i, reach = k.reach[i];
      const int first = first_of_window(tile_, at, reach), last = last_of_window(tile_, at, reach);
      for (int j = first; j <= last; j += kBlock) {
        const Vec scores =
            dot_block<1, kBlock>(rows_.centres + i, rows_.contexts + (j - tile_.first_context), columns_);
        std::memcpy(&k.band_at(i, at, j), &scores, kBlock * sizeof(float));
      }
      for (int b = 1; b < kBlock; ++b) k.band_at(i, at, last + b) = kInfinity;  // what the last block wrote beyond
      k.band_at(i, at, at) = kInfinity;
    }
  }

  GS_DEV void score_dense() {
    constexpr int X = kLanes == 4 ? 2 : kLanes / 4, Y = kLanes == 4 ? 2 : 4;
    const Coefficients& k = coefficients_;
    const int negatives = batch_.shape.shared_negatives;
    for (int i = 0; i < tile_.centres; i += X) {
      ahead_.ask_for_one();
      for (int s = 0; s < negatives; s += Y) {
        const Vec scores = dot_block<X, Y>(rows_.centres + i, rows_.negatives + s, columns_);
        for (int a = 0; a < X; ++a)
          std::memcpy(&k.dense_at(i + a, s), reinterpret_cast<const float*>(&scores) + a * Y, Y * sizeof(float));
      }
      for (int a = 0; a < X; ++a)
        for (int s = negatives; s < k.dense_stride; ++s) k.dense_at(i + a, s) = -kInfinity;
    }
  }

  GS_DEV void mask_negatives() {
    constexpr RowId kBits = 1024;  // a small set of what may be a negative: few contexts pass it that are none
    std::uint64_t maybe[kBits / 64] = {};
    for (int s = 0; s < batch_.shape.shared_negatives; ++s) {
      const RowId bit = tile_.negatives[s] % kBits;
      maybe[bit / 64] |= std::uint64_t(1) << bit % 64;
    }
    for (int j = tile_.first_context; j < tile_.first_context + tile_.contexts; ++j) {
      const RowId bit = tile_.walk[j] % kBits;
      if (!(maybe[bit / 64] >> bit % 64 & 1)) continue;
      for (int s = 0; s < batch_.shape.shared_negatives; ++s)
        if (tile_.negatives[s] == tile_.walk[j]) mask(j, s);
    }
  }

  /// Negative s is the node at walk position j: no negative for the centres that reach it.
  GS_DEV void mask(int j, int s) {
    for (int i = 0; i < tile_.centres; ++i) {
      const int at = tile_.first_centre + i, reach = coefficients_.reach[i];
      if (j >= first_of_window(tile_, at, reach) && j <= last_of_window(tile_, at, reach))
        coefficients_.dense_at(i, s) = -kInfinity;
    }
  }

  /// Scores become gradients of the log likelihood, times the step's rate.
  GS_DEV TileResult coefficients() {
    const Coefficients& k = coefficients_;
    const float rate = step_rate(batch_);
    TileResult result;
    SoftplusSum positive;
    Vec negative = {};
    for (int i = 0; i < tile_.centres; ++i) {
      const int at = tile_.first_centre + i;
      const int pairs = last_of_window(tile_, at, k.reach[i]) - first_of_window(tile_, at, k.reach[i]);
      const float share = batch_.shape.negatives * float(pairs) / float(batch_.shape.shared_negatives);
      SoftplusSum of_centre;
      sigmas(k.band + Offset(i) * k.band_stride, k.band_stride, -1, rate, positive);
      sigmas(k.dense + Offset(i) * k.dense_stride, k.dense_stride, 1, -rate * share, of_centre);
      negative += share * of_centre.lanes();
      result.pairs += std::uint32_t(pairs);
    }
    result.loss = sum_of(positive.lanes() + negative);
    for (int f = 0; f < k.band_stride; ++f) k.band[Offset(tile_.centres) * k.band_stride + f] = 0;
    for (int f = 0; f < k.dense_stride; ++f) k.dense[Offset(tile_.centres) * k.dense_stride + f] = 0;
    return result;
  }

  GS_DEV void squared_norms(const float* const* rows, int count, float* out) const {
    for (int r = 0; r < count; r += 4) {  // RowPointers has spare ones
      Vec acc[4] = {};
      for (int c = 0; c < columns_; c += kLanes)
        for (int b = 0; b < 4; ++b) {
          const Vec v = load(rows[r + b] + c);
          acc[b] += v * v;
        }
      const Vec sums = lane_sums<4>(acc);
      for (int b = 0; b < 4 && r + b < count; ++b) out[r + b] = sums[b];
    }
  }

  /// The factor of every place's step into bounds_.norm; beside gradients, which are never shortened, the curvatures.
  GS_DEV void bound_steps() {
    const int negatives = batch_.shape.shared_negatives, places = bounds_.negative(negatives);
    const bool in_place = batch_.gradients.empty();
    if (!in_place || batch_.curvature_limit > 0) {
      squared_norms(rows_.centres, tile_.centres, bounds_.norm);
      squared_norms(rows_.contexts, tile_.contexts, bounds_.norm + bounds_.context(0));
      squared_norms(rows_.negatives, negatives, bounds_.norm + bounds_.negative(0));
      sum_masses();
    }
    if (!in_place)
      for (int p = 0; p < places; ++p) add_to(curvature_at(batch_, tile_, p), bounds_.mass[p]);
    if (!in_place || batch_.curvature_limit <= 0) {
      for (int p = 0; p < places; ++p) bounds_.norm[p] = 1;
      return;
    }
    for (int p = 0; p < places; ++p) bounds_.row[p] = int(row_at(tile_, p));
    if (has_one_table(batch_)) return shorten(0, places);
    shorten(0, tile_.centres);
    shorten(bounds_.context(0), places);
  }

  /// Places [first, last) are of one table: each gets the factor of its row's whole mass. A vector of places at a time.
  GS_DEV void shorten(int first, int last) {
    const Vec limit = all(batch_.curvature_limit);
    for (int p = first; p < last; p += kLanes) {
      IVec rows;
      std::memcpy(&rows, bounds_.row + p, sizeof rows);
      Vec mass = {};
      for (int q = first; q < last; ++q) mass += rows == bounds_.row[q] ? all(bounds_.mass[q]) : Vec{};
      const Vec factors = mass > limit ? limit / mass : all(1.0f);
      std::memcpy(bounds_.norm + p, &factors, std::size_t(last - p < kLanes ? last - p : kLanes) * sizeof(float));
    }
  }

  /// Every place's share of its row's m, by running sums over the windows.
  GS_DEV void sum_masses() {
    const Coefficients& k = coefficients_;
    const int negatives = batch_.shape.shared_negatives;
    const float quarter = std::abs(step_rate(batch_)) / 4;
    const float* context_norm = bounds_.norm + bounds_.context(0);
    float* context_mass = bounds_.mass + bounds_.context(0);
    float* up_to = bounds_.prefix;  // [contexts + 1], sums of context_norm before each
    float all_negatives = 0, one_negative = 0;
    for (int s = 0; s < negatives; ++s) all_negatives += bounds_.norm[bounds_.negative(s)];
    up_to[0] = 0;
    for (int j = 0; j < tile_.contexts; ++j) up_to[j + 1] = up_to[j] + context_norm[j], context_mass[j] = 0;

    float last_change = 0;  // context_mass holds changes first: a window adds a constant from its first to its last
    for (int i = 0; i < tile_.centres; ++i) {
      const int at = tile_.first_centre + i, self = at - tile_.first_context;
      const int first = first_of_window(tile_, at, k.reach[i]) - tile_.first_context;
      const int last = last_of_window(tile_, at, k.reach[i]) - tile_.first_context;
      const float share = batch_.shape.negatives * float(last - first) / float(negatives),
                  norm = quarter * bounds_.norm[i];
      bounds_.mass[i] = quarter * (up_to[last + 1] - up_to[first] - context_norm[self] + share * all_negatives);
      context_mass[first] += norm;
      (last + 1 < tile_.contexts ? context_mass[last + 1] : last_change) -= norm;
      one_negative += share * norm;
    }
    for (int j = 1; j < tile_.contexts; ++j) context_mass[j] += context_mass[j - 1];
    for (int i = 0; i < tile_.centres; ++i)
      context_mass[tile_.first_centre + i - tile_.first_context] -= quarter * bounds_.norm[i];
    for (int s = 0; s < negatives; ++s) bounds_.mass[bounds_.negative(s)] = one_negative;
  }

  GS_DEV void step_centres() {
    const Coefficients& k = coefficients_;
    for (int i = 0; i < tile_.centres; i += 2) {
      ahead_.ask_for_one();
      const int at = tile_.first_centre + i;
      const int one_more = i + 1 < tile_.centres ? 1 : 0;
      int first = first_of_window(tile_, at, k.reach[i]), last = last_of_window(tile_, at, k.reach[i]);
      if (one_more) {
        const int first2 = first_of_window(tile_, at + 1, k.reach[i + 1]);
        const int last2 = last_of_window(tile_, at + 1, k.reach[i + 1]);
        first = first2 < first ? first2 : first;
        last = last2 > last ? last2 : last;
      }
      const WeightedRows parts[2] = {
          {rows_.negatives, &k.dense_at(i, 0), 1, k.dense_stride, batch_.shape.shared_negatives},
          {rows_.contexts + (first - tile_.first_context), &k.band_at(i, at, first), 1, k.band_stride - 1,
           last - first + 1}};
      weighted_sums(parts, columns_, [&](int output, int column, Vec sum) {
        if (output <= one_more) store(centre_step_ + Offset(i + output) * columns_ + column, sum);
      });
    }
  }

  GS_DEV void step_contexts() {
    const Coefficients& k = coefficients_;
    const int last_centre = tile_.first_centre + tile_.centres - 1;
    for (int j = 0; j < tile_.contexts; j += 2) {
      ahead_.ask_for_one();
      const int at = tile_.first_context + j, one_more = j + 1 < tile_.contexts ? 1 : 0;
      const int first = at - k.window > tile_.first_centre ? at - k.window : tile_.first_centre;
      const int last = at + 1 + k.window < last_centre ? at + 1 + k.window : last_centre;
      const int centre = first - tile_.first_centre;
      const float* factor = bounds_.norm + bounds_.context(j);
      const WeightedRows parts[1] = {
          {rows_.centres + centre, &k.band_at(centre, first, at), k.band_stride - 1, 1, last - first + 1}};
      weighted_sums(parts, columns_, [&](int output, int column, Vec sum) {
        float* row = stepped_.contexts[j + output] + column;
        if (output <= one_more) store(row, load(row) + factor[output] * sum);
      });
    }
  }

  GS_DEV void step_negatives() {
    const Coefficients& k = coefficients_;
    for (int s = 0; s < batch_.shape.shared_negatives; s += 2) {
      ahead_.ask_for_one();
      const bool one_more = s + 1 < batch_.shape.shared_negatives;
      const float* factor = bounds_.norm + bounds_.negative(s);
      const WeightedRows parts[1] = {{rows_.centres, &k.dense_at(0, s), k.dense_stride, 1, tile_.centres}};
      weighted_sums(parts, columns_, [&](int output, int column, Vec sum) {
        float* row = stepped_.negatives[s + output] + column;
        if (output == 0 || one_more) store(row, load(row) + factor[output] * sum);
      });
    }
  }

  const TileBatch& batch_;
  const Tile& tile_;
  Coefficients coefficients_;
  RowBounds bounds_;
  int columns_;
  float* centre_step_;          // [centres, columns], and as many for kept centres
  RowPointers rows_, stepped_;  // what is read, and what steps are added to: the same rows in place
  RowsAhead ahead_;
};

}  // namespace gs::kernels::GS_BACKEND::simd
