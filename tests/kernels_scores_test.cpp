// Queries' vectors and their scores with entities, against triples scored by definition.
#include "tests/support/stored_table.hpp"
#include "tests/support/triple_twin.hpp"

namespace gs {
namespace {

using kernels::Score;
using kernels::TripleQuery;

constexpr Score kScores[] = {Score::transe_l1, Score::transe_l2, Score::distmult, Score::complex, Score::rotate};
constexpr int kDims[] = {2, 10, 64, 200};
constexpr Offset kEntities = 83, kRelations = 6;
constexpr double kTolerance = 2e-5;  // of a sum's largest part: float32 adds of 200 terms near 1

std::vector<float> padded(const std::vector<float>& values, int dim, Offset stride) {
  std::vector<float> rows(std::size_t(Offset(values.size()) / dim * stride));
  for (std::size_t i = 0; i < values.size(); ++i)
    rows[i / std::size_t(dim) * std::size_t(stride) + i % std::size_t(dim)] = values[i];
  return rows;
}

twin::Row row_of(const std::vector<float>& values, int dim, Offset row) {
  return {values.begin() + row * dim, values.begin() + (row + 1) * dim};
}

/// Entities, relations (those from kRelations / 2 on are reciprocals), and queries of both sides.
struct Case {
  Case(TestDevice& on, Score score, int dim, int reciprocal, Offset query_count)
      : on(on),
        entity_values(normal_values(kEntities * dim, 5)),
        relation_values(normal_values(kRelations * dim, 6)),
        entities(on, padded(entity_values, dim, padded_stride(dim))),
        relations(on, padded(relation_values, dim, padded_stride(dim))),
        vectors(on, query_count * padded_stride(dim), 0.0f) {
    shape.score = score, shape.dim = dim, shape.reciprocal = reciprocal;
    for (Offset i = 0; i < query_count; ++i)
      queries.push_back(
          {RowId(shuffled(std::uint64_t(i % kEntities), kEntities, 9)), RowId(i % (kRelations / 2)), i % 2 == 1});
  }

  Rows<float> rows_of(const Values<float>& values) const {
    const Offset stride = padded_stride(shape.dim);
    return {values.span().data, values.span().size / stride, shape.dim, stride};
  }
  void make() {
    const Values<TripleQuery> asked(on, queries);
    on.ops.make_queries(shape, rows_of(entities), rows_of(relations), asked.span(), rows_of(vectors), on.exec);
  }
  /// [queries, entities]
  std::vector<float> score(Rows<const float> of) const {
    const Values<float> scores(on, Offset(queries.size()) * of.count, -77.0f);
    on.ops.score_rows(shape.score, rows_of(vectors), of,
                      {scores.span().data, Offset(queries.size()), int(of.count), of.count}, on.exec);
    return scores.host();
  }
  double expected(const TripleQuery& query, Offset entity) const {
    const bool reciprocal = query.asks_head && shape.reciprocal > 0;
    const auto known = row_of(entity_values, shape.dim, query.entity);
    const auto relation = row_of(relation_values, shape.dim, query.relation + RowId(reciprocal ? shape.reciprocal : 0));
    const auto other = row_of(entity_values, shape.dim, entity);
    return query.asks_head && !reciprocal ? twin::score_of(shape.score, other, relation, known)
                                          : twin::score_of(shape.score, known, relation, other);
  }

  TestDevice& on;
  kernels::TripleShape shape;
  std::vector<float> entity_values, relation_values;
  std::vector<TripleQuery> queries;
  Values<float> entities, relations, vectors;
};

class ScoredRows : public OnBackends {};

TEST_P(ScoredRows, AreTriplesScoredByDefinition) {
  TestDevice on(GetParam(), 2);
  for (const Score score : kScores)
    for (const int dim : kDims)
      for (const int reciprocal : {0, int(kRelations / 2)})
        for (const Offset count : {1, 3, 67}) {
          Case at(on, score, dim, reciprocal, count);

          at.make();
          const std::vector<float> got = at.score(at.rows_of(at.entities));

          for (Offset i = 0; i < count; ++i)
            for (Offset j = 0; j < kEntities; ++j)
              ASSERT_NEAR(double(got[std::size_t(i * kEntities + j)]), at.expected(at.queries[std::size_t(i)], j),
                          kTolerance * dim)
                  << "score " << int(score) << ", dim " << dim << ", query " << i << ", entity " << j;
          at.entities.host(), at.relations.host();  // guards
          const std::vector<float> vectors = at.vectors.host();
          const Offset stride = padded_stride(dim);
          for (std::size_t k = 0; k < vectors.size(); ++k) {
            if (Offset(k) % stride < dim) continue;
            ASSERT_EQ(vectors[k], 0.0f) << "padding was written";
          }
        }
}

TEST_P(ScoredRows, HaveTheSameBitsWhereverAPairStands) {
  TestDevice on(GetParam(), 2);
  for (const Score score : kScores)
    for (const int dim : kDims) {
      Case all(on, score, dim, 0, 67);
      all.make();
      const std::vector<float> whole = all.score(all.rows_of(all.entities));
      for (const Offset first : {0, 1, 31, 82}) {
        const Rows<const float> some{all.rows_of(all.entities).row(first), kEntities - first, dim, padded_stride(dim)};

        const std::vector<float> got = all.score(some);

        for (std::size_t i = 0; i < all.queries.size(); ++i)
          for (Offset j = 0; j < some.count; ++j)
            ASSERT_EQ(got[i * std::size_t(some.count) + std::size_t(j)], whole[i * kEntities + std::size_t(first + j)])
                << "score " << int(score) << ", dim " << dim << ", query " << i << ", entity " << first + j;
      }
    }
}

TEST_P(ScoredRows, OfEntitiesPackedWithoutPaddingAreTheSame) {
  TestDevice on(GetParam(), 2);
  for (const Score score : kScores)
    for (const int dim : kDims) {
      Case at(on, score, dim, 0, 5);
      at.make();
      const Values<float> packed(on, at.entity_values);

      EXPECT_EQ(at.score({packed.span().data, kEntities, dim, dim}), at.score(at.rows_of(at.entities)))
          << "score " << int(score) << ", dim " << dim;
    }
}

TEST_P(ScoredRows, KeepNanToTheirPairs) {
  TestDevice on(GetParam());
  for (const Score score : kScores) {
    constexpr int kDim = 10;
    Case at(on, score, kDim, 0, 5);
    at.make();
    std::vector<float> values = padded(at.entity_values, kDim, padded_stride(kDim));
    values[std::size_t(7 * padded_stride(kDim) + kDim - 1)] = std::nanf("");
    const Values<float> entities(on, values);

    const std::vector<float> got = at.score(at.rows_of(entities));

    for (std::size_t k = 0; k < got.size(); ++k) ASSERT_EQ(std::isnan(got[k]), k % kEntities == 7) << int(score);
  }
}

TEST_P(ScoredRows, OfNoneAreNone) {
  TestDevice on(GetParam());
  Case at(on, Score::rotate, 10, 0, 5);
  at.make();

  EXPECT_TRUE(at.score({at.entities.span().data, 0, 10, padded_stride(10)}).empty());
}

GS_ON_ALL_BACKENDS(ScoredRows);

}  // namespace
}  // namespace gs
