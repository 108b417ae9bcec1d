// The tile's products by a team of threads over rows staged in its scratch: shared memory on CUDA, plain memory under
// emulation.
//
// Rows are staged a slab of columns at a time (all of them where they fit, else scores are summed over slabs and each
// slab is staged a second time for the steps). A staged row is padded by one pack, so that threads on neighbouring rows
// hit different banks. A thread scores 2 centres against 4 rows at a stride, and steps 4 outputs on one pack of
// columns: about one shared-memory wavefront for each four-column multiply-add of a warp.
#pragma once

#include <cmath>

#include "kernels/tile.hpp"

namespace gs::kernels::GS_BACKEND::team {

GS_DEV Pack4 load(const float* p) { return *reinterpret_cast<const Pack4*>(p); }
GS_DEV float dot(Pack4 a, Pack4 b, float sum) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}
GS_DEV Pack4 scaled(float a, Pack4 v) { return {a * v.x, a * v.y, a * v.z, a * v.w}; }
GS_DEV void add_scaled(Pack4& sum, float a, Pack4 v) {
  sum = {fmaf(a, v.x, sum.x), fmaf(a, v.y, sum.y), fmaf(a, v.z, sum.z), fmaf(a, v.w, sum.w)};
}

class TileProducts {
 public:
  /// Bytes for the widest slab within `limit`. Throws usage where not even the narrowest fits.
  static Offset scratch_bytes(const TileShape& shape, Offset limit) {
    const Offset fixed = 4 * fixed_floats(shape), row_bytes = 4 * staged_rows(shape);
    const Offset widest = padded_stride(shape.dim) + kPack;
    Offset columns = (limit - fixed) / row_bytes / kPack * kPack;
    if (columns < kNarrowest + kPack)
      throw Error(Fault::usage, cat("a tile of ", shape.centres(), " centres, window ", shape.window, " and ",
                                    shape.shared_negatives, " negatives needs more than ", limit,
                                    " bytes of shared memory; lower model.window or sampler.shared_negatives"));
    columns = columns < widest ? columns / kNarrowest * kNarrowest + kPack : widest;
    return fixed + row_bytes * columns;
  }

  GS_DEV TileProducts(const Team& team, const TileBatch& batch, const Tile& tile, Offset scratch_bytes)
      : team_(team),
        batch_(batch),
        tile_(tile),
        coefficients_(reinterpret_cast<float*>(team.scratch), batch.shape),
        bounds_(reinterpret_cast<float*>(team.scratch) + Coefficients::floats(batch.shape), batch.shape, tile) {
    const TileShape& shape = batch.shape;
    losses_ = bounds_.norm + RowBounds::floats(shape);
    staged_ = reinterpret_cast<float*>(team.scratch) + fixed_floats(shape);
    stride_ = int((scratch_bytes / 4 - fixed_floats(shape)) / staged_rows(shape) / kPack * kPack);
    slab_ = stride_ - kPack;
    columns_ = int(batch.centres.stride);
  }

  GS_DEV TileResult train(Offset) {
    const Coefficients& k = coefficients_;
    const int floats = int(Coefficients::floats(batch_.shape)) - Coefficients::reach_stride_of(batch_.shape);
    for (int f = team_.rank(); f < floats; f += team_.size()) k.band[f - Coefficients::kEdge] = 0;
    for (int i = team_.rank(); i < tile_.centres; i += team_.size())
      k.reach[i] = reach_of(batch_, tile_, tile_.first_centre + i);
    for (int p = team_.rank(); p < places(); p += team_.size()) bounds_.norm[p] = 0;

    for (int column = 0; column < columns_; column += slab_) {
      team_.sync();  // the last slab's scores are done with the scratch
      stage(column);
      team_.sync();
      add_scores(column);
      add_norms(column);
    }
    team_.sync();
    bound_steps();
    const TileResult result = coefficients();
    for (int column = 0; column < columns_; column += slab_) {
      if (columns_ > slab_) {
        team_.sync();
        stage(column);
        team_.sync();
      }
      step(column);
    }
    return result;
  }

 private:
  static constexpr int kLossFloats = 1024;  // one a thread of the largest team
  static constexpr int kNarrowest = 16;     // columns of the narrowest slab

  static GS_HD Offset fixed_floats(const TileShape& shape) {
    return Coefficients::floats(shape) + RowBounds::floats(shape) + kLossFloats;
  }
  static GS_HD Offset staged_rows(const TileShape& shape) {
    return shape.centres() + shape.contexts() + shape.shared_negatives;
  }
  GS_DEV float* centre(int i) const { return staged_ + Offset(i) * stride_; }
  GS_DEV float* context(int j) const { return centre(tile_.centres + j); }
  GS_DEV float* negative(int s) const { return context(tile_.contexts + s); }
  GS_DEV int places() const { return bounds_.negative(batch_.shape.shared_negatives); }
  GS_DEV int width(int column) const { return columns_ - column < slab_ ? columns_ - column : slab_; }

  GS_DEV void stage(int column) {
    const int packs = width(column) / kPack, rows = places();
    for (int p = team_.rank(); p < rows * packs; p += team_.size()) {
      const int row = p / packs, at = p % packs * kPack;
      *reinterpret_cast<Pack4*>(centre(row) + at) = load_row(table_row_at(batch_, tile_, row) + column + at);
    }
  }

#if defined(GS_EMULATED)  // other threads of the team may be adding to the same row of the table
  static Pack4 load_row(float* p) {
    const auto read = [](float& f) { return std::atomic_ref<float>(f).load(std::memory_order_relaxed); };
    return {read(p[0]), read(p[1]), read(p[2]), read(p[3])};
  }
#else
  static GS_DEV Pack4 load_row(const float* p) { return load(p); }
#endif

  // ------------------------------------------------------------------------------------------------------- scores

  /// Adds the slab's share of both blocks' scores; every score has one thread.
  GS_DEV void add_scores(int column) {
    const int negatives = batch_.shape.shared_negatives, span = 2 * coefficients_.window + 2;
    const int pairs = (tile_.centres + 1) / 2, dense_groups = (negatives + 3) / 4, band_groups = (span + 3) / 4;
    const int dense_work = pairs * dense_groups, packs = width(column) / kPack;
    for (int work = team_.rank(); work < dense_work + pairs * band_groups; work += team_.size()) {
      if (work < dense_work) {
        const int i = work / dense_groups * 2, s = work % dense_groups;
        score_block(i, negative(0), s, dense_groups, negatives, packs,
                    [&](int centre_index, int at) -> float* { return &coefficients_.dense_at(centre_index, at); });
      } else {
        const int i = (work - dense_work) / band_groups * 2, group = (work - dense_work) % band_groups;
        // Context rows from the first in either centre's widest window on; those outside the walk are left out.
        const int first = tile_.first_centre + i - coefficients_.window - tile_.first_context;
        score_block(i, context(0), first + group, band_groups, tile_.contexts, packs, [&](int centre_index, int row) {
          const int at = tile_.first_centre + centre_index, away = tile_.first_context + row - at;
          return away >= -coefficients_.window && away <= coefficients_.window
                     ? &coefficients_.band_at(centre_index, at, tile_.first_context + row)
                     : nullptr;
        });
      }
    }
  }

  /// Centres i and i + 1 against rows first, first + stride ... (4 of them, those within [0, count)).
  template <class Place>
  GS_DEV void score_block(int i, const float* rows, int first, int stride, int count, int packs, const Place& place) {
    const float* left0 = centre(i);
    const float* left1 = centre(i + 1 < tile_.centres ? i + 1 : i);
    const float* right[4];
    for (int b = 0; b < 4; ++b) {
      const int row = first + b * stride;
      right[b] = rows + Offset(row < 0 ? 0 : row < count ? row : count - 1) * stride_;
    }
    float sum0[4] = {}, sum1[4] = {};
    for (int p = 0; p < packs; ++p) {
      const Pack4 a0 = load(left0 + p * kPack), a1 = load(left1 + p * kPack);
      GS_UNROLL
      for (int b = 0; b < 4; ++b) {
        const Pack4 v = load(right[b] + p * kPack);
        sum0[b] = dot(a0, v, sum0[b]);
        sum1[b] = dot(a1, v, sum1[b]);
      }
    }
    GS_UNROLL
    for (int b = 0; b < 4; ++b) {
      const int row = first + b * stride;
      if (row < 0 || row >= count) continue;
      if (float* out = place(i, row)) *out += sum0[b];
      if (i + 1 < tile_.centres) {
        if (float* out = place(i + 1, row)) *out += sum1[b];
      }
    }
  }

  // ------------------------------------------------------------------------------------------------ shorter steps

  /// Adds the slab's share of |row|^2; every place has one thread.
  GS_DEV void add_norms(int column) {
    for (int p = team_.rank(); p < places(); p += team_.size())
      for (int c = 0; c < width(column); c += kPack) {
        const Pack4 v = load(centre(p) + c);
        bounds_.norm[p] = dot(v, v, bounds_.norm[p]);
      }
  }

  /// The factor of every place's step into bounds_.norm; beside gradients, which are never shortened, the curvatures.
  GS_DEV void bound_steps() {
    const bool in_place = batch_.gradients.empty();
    const float limit = in_place ? batch_.curvature_limit : 0, quarter = fabsf(step_rate(batch_)) / 4;
    if (limit > 0 || !in_place) {
      for (int p = team_.rank(); p < places(); p += team_.size()) {
        bounds_.mass[p] = quarter * mass_of(p);
        if (!in_place) add_to(curvature_at(batch_, tile_, p), bounds_.mass[p]);
      }
      team_.sync();
    }
    for (int p = team_.rank(); p < places(); p += team_.size()) {
      const RowId row = row_at(tile_, p);
      const bool one_table = has_one_table(batch_), is_centre = p < tile_.centres;
      const int last = one_table || !is_centre ? places() : tile_.centres;
      float mass = 0;
      for (int q = one_table || is_centre ? 0 : tile_.centres; limit > 0 && q < last; ++q)
        mass += row_at(tile_, q) == row ? bounds_.mass[q] : 0.0f;
      bounds_.norm[p] = limit > 0 ? shortening(mass, limit) : 1.0f;
    }
  }

  /// Place p's share of its row's m, but for the common factor.
  GS_DEV float mass_of(int p) const {
    float mass = 0;
    if (p < tile_.centres) {
      const int at = tile_.first_centre + p, reach = coefficients_.reach[p];
      for (int j = first_of_window(tile_, at, reach); j <= last_of_window(tile_, at, reach); ++j)
        if (j != at) mass += bounds_.norm[bounds_.context(j - tile_.first_context)];
      float negatives = 0;
      for (int s = 0; s < batch_.shape.shared_negatives; ++s) negatives += bounds_.norm[bounds_.negative(s)];
      return mass + share_of(p) * negatives;
    }
    const int j = tile_.first_context + p - tile_.centres;  // a walk position, or past the contexts a negative
    for (int i = 0; i < tile_.centres; ++i) {
      const int at = tile_.first_centre + i, reach = coefficients_.reach[i];
      if (p >= bounds_.negative(0)) {
        mass += share_of(i) * bounds_.norm[i];
      } else if (j != at && j >= first_of_window(tile_, at, reach) && j <= last_of_window(tile_, at, reach)) {
        mass += bounds_.norm[i];
      }
    }
    return mass;
  }

  // ------------------------------------------------------------------------------------------------- coefficients

  GS_DEV int pairs_of(int i) const {
    const int at = tile_.first_centre + i, reach = coefficients_.reach[i];
    return last_of_window(tile_, at, reach) - first_of_window(tile_, at, reach);
  }

  /// The weight of one shared negative for centre i.
  GS_DEV float share_of(int i) const {
    return batch_.shape.negatives * float(pairs_of(i)) / float(batch_.shape.shared_negatives);
  }

  GS_DEV bool is_masked(int i, RowId negative) const {
    const int at = tile_.first_centre + i, reach = coefficients_.reach[i];
    for (int j = first_of_window(tile_, at, reach); j <= last_of_window(tile_, at, reach); ++j)
      if (tile_.walk[j] == negative) return true;
    return false;
  }

  /// x <- rate * sigma(sign * x); returns -log sigma(-sign * x).
  static GS_DEV float sigma(float& x, float sign, float rate) {
    const float y = sign * x, e = expf(-fabsf(y));
    x = rate * (y > 0 ? 1.0f : e) / (1.0f + e);
    return (y < 0 ? 0.0f : y) + log1pf(e);
  }

  /// Scores become gradients of the log likelihood, times the step's rate; outside windows and masks they become 0.
  GS_DEV TileResult coefficients() {
    const Coefficients& k = coefficients_;
    const int span = 2 * k.window + 1, negatives = batch_.shape.shared_negatives;
    const float rate = step_rate(batch_);
    float loss = 0;
    for (int cell = team_.rank(); cell < tile_.centres * (span + negatives); cell += team_.size()) {
      const int i = cell / (span + negatives), c = cell % (span + negatives), at = tile_.first_centre + i;
      if (c < span) {
        const int j = at + c - k.window;
        float& score = k.band[i * k.band_stride + c];
        const bool inside =
            j != at && j >= first_of_window(tile_, at, k.reach[i]) && j <= last_of_window(tile_, at, k.reach[i]);
        if (inside) {
          loss += sigma(score, -1, rate);
        } else {
          score = 0;
        }
      } else {
        const float share = share_of(i);
        float& score = k.dense_at(i, c - span);
        if (is_masked(i, tile_.negatives[c - span])) {
          score = 0;
        } else {
          loss += share * sigma(score, 1, -rate * share);
        }
      }
    }
    losses_[team_.rank()] = loss;
    team_.sync();
    TileResult result;
    if (team_.rank() == 0) {
      for (int i = 0; i < tile_.centres; ++i) result.pairs += std::uint32_t(pairs_of(i));
      for (int t = 0; t < team_.size(); ++t) result.loss += losses_[t];
    }
    return result;
  }

  // -------------------------------------------------------------------------------------------------------- steps

  /// Adds the slab's columns of every row's step to where it goes.
  GS_DEV void step(int column) {
    const int packs = width(column) / kPack, groups_c = (tile_.centres + 3) / 4, groups_x = (tile_.contexts + 3) / 4,
              groups_n = (batch_.shape.shared_negatives + 3) / 4;
    for (int work = team_.rank(); work < (groups_c + groups_x + groups_n) * packs; work += team_.size()) {
      const int group = work / packs, at = work % packs * kPack;
      Pack4 sum[4] = {};
      int first, rows;  // staged rows that this unit steps
      if (group < groups_c) {
        first = group * 4, rows = tile_.centres;
        sum_for_centres(first, at, sum);
      } else if (group < groups_c + groups_x) {
        first = tile_.centres + (group - groups_c) * 4, rows = tile_.centres + tile_.contexts;
        sum_for_contexts(first - tile_.centres, at, sum);
      } else {
        first = tile_.centres + tile_.contexts + (group - groups_c - groups_x) * 4;
        rows = places();
        sum_for_negatives(first - tile_.centres - tile_.contexts, at, sum);
      }
      GS_UNROLL
      for (int o = 0; o < 4; ++o)
        if (first + o < rows)
          add_to(stepped_row_at(batch_, tile_, first + o) + column + at, scaled(bounds_.norm[first + o], sum[o]));
    }
  }

  GS_DEV void sum_for_centres(int i, int at, Pack4 (&sum)[4]) const {
    const Coefficients& k = coefficients_;
    for (int s = 0; s < batch_.shape.shared_negatives; ++s) {
      const Pack4 v = load(negative(s) + at);
      GS_UNROLL
      for (int o = 0; o < 4; ++o) add_scaled(sum[o], k.dense_at(i + o, s), v);
    }
    const int position = tile_.first_centre + i - tile_.first_context;  // among the contexts
    const int first = position > k.window ? position - k.window : 0;
    const int last = position + 3 + k.window < tile_.contexts ? position + 3 + k.window : tile_.contexts - 1;
    for (int j = first; j <= last; ++j) {
      const Pack4 v = load(context(j) + at);
      GS_UNROLL
      for (int o = 0; o < 4; ++o) add_scaled(sum[o], band_or_zero(i + o, j - position - o), v);
    }
  }

  GS_DEV void sum_for_contexts(int j, int at, Pack4 (&sum)[4]) const {
    const Coefficients& k = coefficients_;
    const int position = tile_.first_context + j - tile_.first_centre;  // among the centres
    const int first = position > k.window ? position - k.window : 0;
    const int last = position + 3 + k.window < tile_.centres ? position + 3 + k.window : tile_.centres - 1;
    for (int i = first; i <= last; ++i) {
      const Pack4 v = load(centre(i) + at);
      GS_UNROLL
      for (int o = 0; o < 4; ++o) add_scaled(sum[o], band_or_zero(i, position + o - i), v);
    }
  }

  GS_DEV void sum_for_negatives(int s, int at, Pack4 (&sum)[4]) const {
    for (int i = 0; i < tile_.centres; ++i) {
      const Pack4 v = load(centre(i) + at);
      GS_UNROLL
      for (int o = 0; o < 4; ++o) add_scaled(sum[o], coefficients_.dense_at(i, s + o), v);
    }
  }

  /// The coefficient of centre i with the context `away` positions after it.
  GS_DEV float band_or_zero(int i, int away) const {
    const Coefficients& k = coefficients_;
    return away >= -k.window && away <= k.window ? k.band[i * k.band_stride + away + k.window] : 0.0f;
  }

  const Team& team_;
  const TileBatch& batch_;
  const Tile& tile_;
  Coefficients coefficients_;
  RowBounds bounds_;
  float* losses_;  // [team]
  float* staged_;  // [rows, stride]
  int stride_, slab_, columns_;
};

}  // namespace gs::kernels::GS_BACKEND::team
