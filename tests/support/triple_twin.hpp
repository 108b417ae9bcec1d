// The slow twin of a knowledge graph's models: a triple at a time, in double, by the formulas of kernels::Score and
// kernels::TripleLoss, with no queries, blocks or masks by infinity.
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <set>
#include <vector>

#include "kernels/views.hpp"

namespace gs::twin {

using Row = std::vector<double>;
using Triple = std::array<RowId, 3>;  ///< head, relation, tail

inline constexpr bool is_complex(kernels::Score score) {
  return score == kernels::Score::complex || score == kernels::Score::rotate;
}

/// Column c and the one half a row after it, as one number.
inline std::complex<double> number_at(const Row& row, std::size_t c) { return {row[c], row[row.size() / 2 + c]}; }
inline void add_number(Row& row, std::size_t c, std::complex<double> x) {
  row[c] += x.real(), row[row.size() / 2 + c] += x.imag();
}

/// A triple's score by its definition.
inline double score_of(kernels::Score score, const Row& h, const Row& r, const Row& t) {
  double sum = 0;
  for (std::size_t c = 0; c < (is_complex(score) ? h.size() / 2 : h.size()); ++c) {
    if (score == kernels::Score::transe_l1) sum -= std::abs(h[c] + r[c] - t[c]);
    if (score == kernels::Score::transe_l2) sum += (h[c] + r[c] - t[c]) * (h[c] + r[c] - t[c]);
    if (score == kernels::Score::distmult) sum += h[c] * r[c] * t[c];
    if (score == kernels::Score::complex)
      sum += std::real(number_at(h, c) * number_at(r, c) * std::conj(number_at(t, c)));
    if (score == kernels::Score::rotate) sum -= std::abs(number_at(h, c) * std::polar(1.0, r[c]) - number_at(t, c));
  }
  return score == kernels::Score::transe_l2 ? -std::sqrt(sum) : sum;
}

/// Adds w times the score's gradient by the three rows; distances have none at 0.
inline void add_gradient(kernels::Score score, double w, const Row& h, const Row& r, const Row& t, Row& of_h, Row& of_r,
                         Row& of_t) {
  const double distance = score == kernels::Score::transe_l2 ? -score_of(score, h, r, t) : 0;
  for (std::size_t c = 0; c < (is_complex(score) ? h.size() / 2 : h.size()); ++c) {
    if (score == kernels::Score::transe_l1 || score == kernels::Score::transe_l2) {
      const double away = h[c] + r[c] - t[c];
      const double step = score == kernels::Score::transe_l1 ? double((away > 0) - (away < 0))
                          : distance > 0                     ? away / distance
                                                             : 0;
      of_h[c] -= w * step, of_r[c] -= w * step, of_t[c] += w * step;
    }
    if (score == kernels::Score::distmult)
      of_h[c] += w * r[c] * t[c], of_r[c] += w * h[c] * t[c], of_t[c] += w * h[c] * r[c];
    if (score == kernels::Score::complex) {
      const auto x = number_at(h, c), y = number_at(r, c), z = number_at(t, c);
      add_number(of_h, c, w * std::conj(y) * z);
      add_number(of_r, c, w * std::conj(x) * z);
      add_number(of_t, c, w * x * y);
    }
    if (score == kernels::Score::rotate) {
      const auto turn = std::polar(1.0, r[c]), turned = number_at(h, c) * turn, away = turned - number_at(t, c);
      const std::complex<double> step = std::abs(away) > 0 ? away / std::abs(away) : 0;
      add_number(of_h, c, -w * step * std::conj(turn));
      of_r[c] -= w * std::real(std::conj(step) * std::complex<double>(0, 1) * turned);
      add_number(of_t, c, w * step);
    }
  }
}

/// The gradient that one place of a tile gives a row.
struct Place {
  RowId row;
  Row gradient;
};
struct TripleTileTwin {
  double loss = 0;
  Offset queries = 0;
  std::vector<Place> places;
};

inline double softplus_of(double x) { return std::log1p(std::exp(-std::abs(x))) + (x < 0 ? 0 : x); }

/// One query of a tile: its positive and the triples that its negatives make, numbers of places each.
struct TripleQueryTwin {
  Triple positive;
  std::vector<Triple> negatives;
};

/// Loss and gradients of one query; the negatives' scores that weigh them are those of `weighing`.
inline void add_query(const kernels::TripleShape& shape, const TripleQueryTwin& query, const std::vector<Row>& table,
                      const std::vector<Row>& weighing, TripleTileTwin& tile) {
  const auto row = [&](const std::vector<Row>& of, RowId place) -> const Row& { return of[tile.places[place].row]; };
  const auto score = [&](const std::vector<Row>& of, const Triple& t) {
    return score_of(shape.score, row(of, t[0]), row(of, t[1]), row(of, t[2]));
  };
  const auto add = [&](const Triple& t, double w) {
    add_gradient(shape.score, w, row(table, t[0]), row(table, t[1]), row(table, t[2]), tile.places[t[0]].gradient,
                 tile.places[t[1]].gradient, tile.places[t[2]].gradient);
  };
  const double k = double(shape.negatives), adversarial = double(shape.adversarial);
  std::vector<double> scores, weights;
  double largest = -INFINITY, sum = 0;
  for (const Triple& t : query.negatives) {
    scores.push_back(score(table, t)), weights.push_back(adversarial * score(weighing, t));
    largest = std::max(largest, weights.back());
  }
  for (double& w : weights) w = std::exp(w - largest), sum += w;
  for (double& w : weights) w = adversarial > 0 ? k * w / sum : k / shape.shared_negatives;

  const double p = score(table, query.positive);
  if (shape.loss == kernels::TripleLoss::logistic) {
    const double margin = kernels::is_distance(shape.score) ? double(shape.margin) : 0;
    tile.loss += softplus_of(-margin - p);
    add(query.positive, -1 / (1 + std::exp(margin + p)));
    for (std::size_t s = 0; s < scores.size(); ++s) {
      tile.loss += weights[s] * softplus_of(margin + scores[s]);
      add(query.negatives[s], weights[s] / (1 + std::exp(-margin - scores[s])));
    }
  } else if (shape.loss == kernels::TripleLoss::margin) {
    for (std::size_t s = 0; s < scores.size(); ++s) {
      const double x = double(shape.margin) - p + scores[s];
      if (x <= 0) continue;
      tile.loss += weights[s] * x;
      add(query.negatives[s], weights[s]), add(query.positive, -weights[s]);
    }
  } else {
    double top = p, total = 0;
    for (const double n : scores) top = std::max(top, n);
    total = std::exp(p - top);
    for (std::size_t s = 0; s < scores.size(); ++s) total += weights[s] * std::exp(scores[s] - top);
    tile.loss += -p + top + std::log(total);
    add(query.positive, std::exp(p - top) / total - 1);
    for (std::size_t s = 0; s < scores.size(); ++s)
      add(query.negatives[s], weights[s] * std::exp(scores[s] - top) / total);
  }
}

inline void regularize(const kernels::TripleShape& shape, const Row& row, TripleTileTwin& tile, Row& gradient) {
  const double l2 = double(shape.l2), n3 = double(shape.n3);
  for (std::size_t c = 0; c < row.size(); ++c) {
    const std::size_t half = row.size() / 2;
    const double size = is_complex(shape.score) ? std::abs(number_at(row, c % half)) : std::abs(row[c]);
    tile.loss += l2 / 2 * row[c] * row[c] + n3 / 3 * size * row[c] * row[c];
    gradient[c] += l2 * row[c] + n3 * size * row[c];
  }
}

/// A tile of a batch whose arrays are in host memory. known: triples of global rows, or none.
inline TripleTileTwin triple_tile(const kernels::TripleBatch& batch, Offset index, const std::set<Triple>& known,
                                  const std::vector<Row>& table, const std::vector<Row>& weighing) {
  const kernels::TripleShape& shape = batch.shape;
  const int parts = shape.width();
  const auto global = [&](RowId row) { return batch.global_rows.empty() ? row : batch.global_rows[row]; };
  TripleTileTwin tile;
  const auto add_place = [&](RowId row) { tile.places.push_back({row, Row(std::size_t(shape.dim))}); };
  int count = 0;
  for (; count < shape.triples && batch.nodes[(index * shape.triples + count) * parts] != kNoRow; ++count) {
    const Offset at = index * shape.triples + count;
    for (int part = 0; part < parts; ++part) add_place(batch.nodes[parts * at + part]);
  }
  if (count == 0) return tile;
  for (int s = 0; s < shape.shared_negatives; ++s) add_place(batch.negatives[index * shape.shared_negatives + s]);

  for (int i = 0; i < count; ++i) {
    const RowId h = RowId(parts * i), r = h + 1, t = h + 2, back = h + 3;
    const auto id = [&](RowId place) { return tile.places[place].row; };
    TripleQueryTwin tail{{h, r, t}, {}}, head{{h, r, t}, {}};
    if (parts == 4) head.positive = {t, back, h};
    for (int s = 0; s < shape.shared_negatives; ++s) {
      const RowId n = RowId(parts * count + s);
      if (id(n) != id(t) && !known.count({global(id(h)), global(id(r)), global(id(n))}))
        tail.negatives.push_back({h, r, n});
      if (id(n) != id(h) && !known.count({global(id(n)), global(id(r)), global(id(t))}))
        head.negatives.push_back(parts == 4 ? Triple{t, back, n} : Triple{n, r, t});
    }
    add_query(shape, tail, table, weighing, tile);
    add_query(shape, head, table, weighing, tile);
    tile.queries += 2;
    for (int part = 0; part < parts; ++part)
      if (shape.score != kernels::Score::rotate || part == 0 || part == 2)
        regularize(shape, table[id(h + RowId(part))], tile, tile.places[h + RowId(part)].gradient);
  }
  return tile;
}

}  // namespace gs::twin
