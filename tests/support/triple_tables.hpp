// Random tables of a knowledge graph's model, its score in double as the definitions have it, and ranks by counting.
#pragma once

#include <cmath>
#include <complex>
#include <random>
#include <set>

#include "graphscale/eval.hpp"

namespace gs {

using kernels::Score;
using kernels::TripleQuery;

inline const char* name_of(Score score) {
  constexpr const char* kNames[] = {"transe_l1", "transe_l2", "distmult", "complex", "rotate"};
  return kNames[int(score)];
}

/// A model over tables of its own.
struct TripleTables {
  TripleTables(Score score, Offset entity_count, int relation_count, int dim, bool reciprocal, bool whole,
               unsigned seed)
      : entities(std::size_t(entity_count * dim)), relations(std::size_t(relation_count * (reciprocal ? 2 : 1) * dim)) {
    std::mt19937 random(seed);
    // Whole numbers in a small range give many ties.
    const auto value = [&] {
      return whole ? float(int(random() % 5) - 2) : std::uniform_real_distribution<float>(-1, 1)(random);
    };
    for (float& x : entities) x = value();
    for (float& x : relations) x = value();
    model.shape.score = score, model.shape.dim = dim, model.shape.reciprocal = reciprocal ? relation_count : 0;
    model.entities = {entities.data(), entity_count, dim, dim};
    model.relations = {relations.data(), relation_count * (reciprocal ? 2 : 1), dim, dim};
  }
  TripleTables(const TripleTables&) = delete;

  /// The score of one entity as the query's answer.
  double slow_score(const TripleQuery& query, RowId answer) const {
    const bool by_reciprocal = query.asks_head && model.shape.reciprocal > 0;
    const bool asks_head = query.asks_head && !by_reciprocal;
    const float* const h = model.entities.row(asks_head ? answer : query.entity);
    const float* const t = model.entities.row(asks_head ? query.entity : answer);
    const float* const r = model.relations.row(Offset(query.relation) + (by_reciprocal ? model.shape.reciprocal : 0));
    const int dim = model.shape.dim, half = dim / 2;
    double sum = 0;
    switch (model.shape.score) {
      case Score::transe_l1:
        for (int c = 0; c < dim; ++c) sum -= std::abs(double(h[c]) + r[c] - t[c]);
        return sum;
      case Score::transe_l2:
        for (int c = 0; c < dim; ++c) sum += std::pow(double(h[c]) + r[c] - t[c], 2);
        return -std::sqrt(sum);
      case Score::distmult:
        for (int c = 0; c < dim; ++c) sum += double(h[c]) * r[c] * t[c];
        return sum;
      case Score::complex:
        for (int c = 0; c < half; ++c) {
          const std::complex<double> a(h[c], h[half + c]), b(r[c], r[half + c]), z(t[c], t[half + c]);
          sum += (a * b * std::conj(z)).real();
        }
        return sum;
      case Score::rotate:
        for (int c = 0; c < half; ++c) {
          const std::complex<double> a(h[c], h[half + c]), z(t[c], t[half + c]);
          sum -= std::abs(a * std::polar(1.0, double(r[c])) - z);
        }
        return sum;
    }
    return NAN;
  }

  std::vector<float> entities, relations;
  AnswerModel model;
};

/// count triples at random, some of them twice.
inline Triples random_triples(Offset count, Offset entities, int relations, unsigned seed) {
  std::mt19937 random(seed);
  Triples triples;
  for (Offset i = 0; i < count; ++i) {
    const bool again = i % 7 == 6;
    triples.heads.push_back(again ? triples.heads.back() : RowId(random() % unsigned(entities)));
    triples.relations.push_back(again ? triples.relations.back() : RowId(random() % unsigned(relations)));
    triples.tails.push_back(again ? triples.tails.back() : RowId(random() % unsigned(entities)));
  }
  return triples;
}

inline TripleQuery query_of(const Triples& triples, std::size_t i, bool asks_head) {
  return {asks_head ? triples.tails[i] : triples.heads[i], triples.relations[i], asks_head};
}
inline RowId answer_of(const Triples& triples, std::size_t i, bool asks_head) {
  return asks_head ? triples.heads[i] : triples.tails[i];
}

/// The entities that some triples have as answers to a query.
inline std::set<RowId> slow_known(const std::vector<const Triples*>& lists, const TripleQuery& query) {
  std::set<RowId> known;
  for (const Triples* triples : lists)
    for (std::size_t i = 0; i < triples->heads.size(); ++i)
      if (query_of(*triples, i, query.asks_head).entity == query.entity && triples->relations[i] == query.relation)
        known.insert(answer_of(*triples, i, query.asks_head));
  return known;
}

/// The answer's rank among all entities but those left out, ties at the mean: the place of the answer in the middle of
/// its equals. NaN stands below every number, an answer that is NaN behind all.
inline double slow_rank(const std::vector<float>& scores, RowId answer, const std::set<RowId>& left_out) {
  double above = 0, equal = 0, others = 0;
  for (RowId row = 0; row < RowId(scores.size()); ++row) {
    if (row == answer || left_out.count(row)) continue;
    ++others, above += scores[row] > scores[answer], equal += scores[row] == scores[answer];
  }
  return 1 + (std::isnan(scores[answer]) ? others : above + equal / 2);
}

}  // namespace gs
