// Models of a knowledge graph trained a query at a time with k fresh negatives of its own, by SGD and the logistic
// loss: what tiles are compared with. Loops are vectorized, and rows prefetched.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/views.hpp"

namespace gs::bench {

class SingleTriples {
 public:
  SingleTriples(const kernels::TripleBatch& batch, Offset entities, int negatives)
      : batch_(batch), entities_(entities), negatives_(negatives), q_(std::size_t(batch.shape.dim)), step_(q_.size()) {}

  /// Triples [first, last) of the batch, both sides of each.
  void train(Offset first, Offset last) {
    state_ = std::uint64_t(first);
    for (Offset i = first; i < last; ++i) {
      const RowId *nodes = &batch_.nodes[3 * i], h = nodes[0], r = nodes[1], t = nodes[2];
      query(h, r, t, 1);
      query(t, r, h, -1);
    }
  }

 private:
  using Score = kernels::Score;
  static constexpr std::size_t kAhead = 6;  // rows on their way: 4 to 8 measure alike

  void ask_for(std::size_t k) const {
    if (k >= rows_.size()) return;
    for (Offset c = 0; c < batch_.rows.stride; c += 16) __builtin_prefetch(batch_.rows.row(rows_[k]) + c);
  }

  void query(RowId x, RowId r, RowId answer, float direction) {
    rows_.assign(1, answer);
    for (int k = 0; k < negatives_; ++k) {
      state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
      rows_.push_back(batch_.first_entity + RowId((state_ >> 32) * std::uint64_t(entities_) >> 32));
    }
    for (std::size_t k = 0; k < kAhead; ++k) ask_for(k);
    make(batch_.rows.row(x), batch_.rows.row(r), direction);
    std::fill(step_.begin(), step_.end(), 0.0f);
    const float rate = batch_.learning_rate, margin = is_distance(batch_.shape.score) ? batch_.shape.margin : 0;
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      ask_for(k + kAhead);
      float* const e = batch_.rows.row(rows_[k]);
      const float score = score_of(e), sigma = 1 / (1 + std::exp(-margin - score));
      pull(e, k == 0 ? sigma - 1 : rows_[k] == answer ? 0 : sigma, score, rate);
    }
    take(batch_.rows.row(x), batch_.rows.row(r), direction, rate);
  }

  void make(const float* x, const float* r, float direction) {
    const int dim = batch_.shape.dim, half = dim / 2;
    float* const q = q_.data();
    switch (batch_.shape.score) {
      case Score::transe_l1:
      case Score::transe_l2:
#pragma omp simd
        for (int c = 0; c < dim; ++c) q[c] = x[c] + direction * r[c];
        return;
      case Score::distmult:
#pragma omp simd
        for (int c = 0; c < dim; ++c) q[c] = x[c] * r[c];
        return;
      case Score::rotate:
        turn_.resize(std::size_t(dim));
        for (int c = 0; c < half; ++c)
          turn_[std::size_t(c)] = std::cos(r[c]), turn_[std::size_t(half + c)] = std::sin(r[c]);
        r = turn_.data();
        [[fallthrough]];
      case Score::complex:
#pragma omp simd
        for (int c = 0; c < half; ++c) {
          q[c] = x[c] * r[c] - direction * x[half + c] * r[half + c];
          q[half + c] = x[half + c] * r[c] + direction * x[c] * r[half + c];
        }
    }
  }

  float score_of(const float* e) const {
    const int dim = batch_.shape.dim, half = dim / 2;
    const float* const q = q_.data();
    float sum = 0;
    switch (batch_.shape.score) {
      case Score::transe_l1:
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < dim; ++c) sum += std::abs(q[c] - e[c]);
        return -sum;
      case Score::transe_l2:
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < dim; ++c) sum += (q[c] - e[c]) * (q[c] - e[c]);
        return -std::sqrt(sum);
      case Score::rotate:
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < half; ++c) {
          const float re = q[c] - e[c], im = q[half + c] - e[half + c];
          sum += std::sqrt(re * re + im * im);
        }
        return -sum;
      default:
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < dim; ++c) sum += q[c] * e[c];
        return sum;
    }
  }

  /// Adds the query's gradient by e, and steps e.
  void pull(float* e, float coefficient, float score, float rate) {
    const int dim = batch_.shape.dim, half = dim / 2;
    const float* const q = q_.data();
    float* const step = step_.data();
    switch (batch_.shape.score) {
      case Score::transe_l1:
#pragma omp simd
        for (int c = 0; c < dim; ++c) {
          const float away = q[c] - e[c], g = away > 0 ? coefficient : away < 0 ? -coefficient : 0;
          step[c] -= g, e[c] -= rate * g;
        }
        return;
      case Score::transe_l2:
        coefficient = score < 0 ? coefficient / -score : 0;
#pragma omp simd
        for (int c = 0; c < dim; ++c) {
          const float g = coefficient * (q[c] - e[c]);
          step[c] -= g, e[c] -= rate * g;
        }
        return;
      case Score::rotate:
#pragma omp simd
        for (int c = 0; c < half; ++c) {
          const float re = q[c] - e[c], im = q[half + c] - e[half + c], size = std::sqrt(re * re + im * im);
          const float g = size > 0 ? coefficient / size : 0;
          step[c] -= g * re, step[half + c] -= g * im;
          e[c] -= rate * g * re, e[half + c] -= rate * g * im;
        }
        return;
      default:
#pragma omp simd
        for (int c = 0; c < dim; ++c) step[c] += coefficient * e[c], e[c] -= rate * coefficient * q[c];
    }
  }

  /// Steps the entity and the relation that the query was made of.
  void take(float* x, float* r, float direction, float rate) {
    const int dim = batch_.shape.dim, half = dim / 2;
    const float* const g = step_.data();
    switch (batch_.shape.score) {
      case Score::transe_l1:
      case Score::transe_l2:
#pragma omp simd
        for (int c = 0; c < dim; ++c) x[c] -= rate * g[c], r[c] -= rate * direction * g[c];
        return;
      case Score::distmult:
#pragma omp simd
        for (int c = 0; c < dim; ++c) {
          const float of_x = g[c] * r[c], of_r = g[c] * x[c];
          x[c] -= rate * of_x, r[c] -= rate * of_r;
        }
        return;
      default:
        const bool turns = batch_.shape.score == Score::rotate;
        const float* const z = turns ? turn_.data() : r;
#pragma omp simd
        for (int c = 0; c < half; ++c) {
          const float re = g[c], im = g[half + c], x_re = x[c], x_im = x[half + c];
          const float z_re = z[c], z_im = z[half + c];
          const float of_re = re * x_re + im * x_im, of_im = direction * (im * x_re - re * x_im);
          x[c] -= rate * (re * z_re + direction * im * z_im);
          x[half + c] -= rate * (im * z_re - direction * re * z_im);
          if (turns) {
            r[c] -= rate * (of_im * z_re - of_re * z_im);
          } else {
            r[c] -= rate * of_re, r[half + c] -= rate * of_im;
          }
        }
    }
  }

  const kernels::TripleBatch& batch_;
  Offset entities_;
  int negatives_;
  std::uint64_t state_ = 0;
  std::vector<RowId> rows_;  // the answer, then the negatives
  std::vector<float> q_, step_, turn_;
};

}  // namespace gs::bench
