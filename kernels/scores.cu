// vectors(i) = the query (entity, relation, ?) or (?, relation, entity);  scores(i, j) = score of vectors(i) with
// entities(j).
//
// Queries: a unit is a row. Scores: a unit is a block of kQueries x kEntities of them. A team stages a slab of columns
// of both sides at a time, and a thread sums 2 x 4 scores at once (CUDA); a thread sums a block of scores in registers
// over rows where they stand (CPU). The order of a score's adds does not depend on its place: the same bits for a pair
// wherever it stands.
//
// A block reads (kQueries + kEntities) rows of 4 dim bytes and does kQueries kEntities scores of 2 dim FLOP (dot
// products), 3 dim (distances over columns), 3 dim and dim / 2 roots (over moduli).
#include "kernels/lanes.hpp"
#include "kernels/ops.hpp"
#if defined(__CUDACC__) || defined(GS_EMULATED)
#include "kernels/triples_team.hpp"
#else
#include "kernels/triples_simd.hpp"
#endif

namespace gs::kernels::GS_BACKEND {

template <Score S>
struct MakeQueries {
  Rows<const float> entities, relations;
  Span<const TripleQuery> queries;
  Rows<float> vectors;
  RowId reciprocal;

  GS_DEV void operator()(const Team& team, Offset index, Offset) const {
    const Lanes lanes(team);
    const RowGroup group = lanes.group(index, queries.size);
    for (Offset i = group.first; i < group.last; i += group.step) make(lanes, queries[i], vectors.row(i));
  }

 private:
  GS_DEV void make(const Lanes& lanes, TripleQuery query, float* out) const {
    const bool asks_reciprocal = query.asks_head && reciprocal > 0, asks_head = query.asks_head && !asks_reciprocal;
    const float* const x = entities.row(query.entity);
    const float* const r = relations.row(query.relation + (asks_reciprocal ? reciprocal : 0));
    const int cells = vectors.dim / kCellFloats<S>;
    lanes.each(cells, [=](int c) {
      if constexpr (kPaired<S>) {
        const Complex<float> q = query_of<S, float>({x[c], x[cells + c]}, turned<S>({r[c], r[cells + c]}), asks_head);
        out[c] = q.re, out[cells + c] = q.im;
      } else {
        out[c] = query_of<S, float>(x[c], turned<S>(r[c]), asks_head);
      }
    });
  }
};

void make_queries(const TripleShape& shape, Rows<const float> entities, Rows<const float> relations,
                  Span<const TripleQuery> queries, Rows<float> vectors, const Exec& exec) {
  GS_EXPECT(vectors.count == queries.size, "make_queries: ", vectors.count, " vectors for ", queries.size, " queries");
  GS_EXPECT(entities.dim == shape.dim && relations.dim == shape.dim && vectors.dim == shape.dim,
            "make_queries: rows of ", entities.dim, ", ", relations.dim, " and ", vectors.dim, " columns for dim ",
            shape.dim);
  with_score(shape.score, [&](auto score) {
    GS_EXPECT(shape.dim % kCellFloats<score> == 0, "make_queries: dim ", shape.dim, " of complex vectors");
    const MakeQueries<score> body{entities, relations, queries, vectors, RowId(shape.reciprocal)};
    for_each_row_group("make_queries", queries.size, 0, body, exec);
  });
}

/// A block of scores: queries [first_query, last_query) and entities [first_entity, last_entity).
template <Score S>
struct ScoreRows {
  static constexpr int kQueries = 64;  // with a CPU's entities in its first cache, queries stay in the second
  Rows<const float> vectors, entities;
  Rows<float> scores;

#if defined(__CUDACC__) || defined(GS_EMULATED)
  static constexpr int kEntities = 32;                // 256 blocks of 2 x 4: one a thread
  static constexpr int kWidth = 64 / kCellFloats<S>;  // cells of a slab: 26 KB for both sides
  static Offset scratch_bytes() {
    return 4 * (Offset(kQueries) * kEntities + (kQueries + kEntities) * team::Slab<S>::stride(kWidth));
  }

  GS_DEV void operator()(const Team& team, Offset index, Offset) const {
    const Offset blocks = (entities.count + kEntities - 1) / kEntities;
    const Offset first_query = index / blocks * kQueries, first_entity = index % blocks * kEntities;
    const int q = below(vectors.count - first_query, kQueries), e = below(entities.count - first_entity, kEntities);
    float* const sums = reinterpret_cast<float*>(team.scratch);
    float* const staged_queries = sums + kQueries * kEntities;
    float* const staged_entities = staged_queries + kQueries * team::Slab<S>::stride(kWidth);

    const int cells = vectors.dim / kCellFloats<S>, pairs = (q + 1) / 2, step = (e + 3) / 4;
    for (int first = 0; first < cells; first += kWidth) {
      const team::Slab<S> slab{cells, first, kWidth};
      team.sync();
      slab.stage(team, staged_queries, q, [&](int i) { return vectors.row(first_query + i); });
      slab.stage(team, staged_entities, e, [&](int j) { return entities.row(first_entity + j); });
      team.sync();
      for (int unit = team.rank(); unit < pairs * step; unit += team.size())
        slab.sum_block(staged_queries, unit / step * 2, q, staged_entities, unit % step, step, e, kWidth / kPack,
                       [&](int i, int j, float sum) {
                         float& total = sums[i * kEntities + j];
                         total = first == 0 ? sum : total + sum;
                       });
    }
    team.sync();
    for (int k = team.rank(); k < q * e; k += team.size())
      scores.row(first_query + k / e)[first_entity + k % e] = score_of<S>(sums[k / e * kEntities + k % e]);
  }
#else
  static constexpr int kEntities = 16;  // a cache line of scores
  static Offset scratch_bytes() { return 0; }

  GS_DEV void operator()(const Team&, Offset index, Offset) const {
    constexpr int X = simd::kQueryBlock, Y = simd::kEntityBlock;
    const Offset blocks = (entities.count + kEntities - 1) / kEntities;
    const Offset first_query = index / blocks * kQueries, first_entity = index % blocks * kEntities;
    const int q = below(vectors.count - first_query, kQueries), e = below(entities.count - first_entity, kEntities);
    const float *query_rows[kQueries], *entity_rows[kEntities];
    for (int i = 0; i < kQueries; ++i) query_rows[i] = vectors.row(first_query + (i < q ? i : 0));
    for (int j = 0; j < kEntities; ++j) entity_rows[j] = entities.row(first_entity + (j < e ? j : 0));

    for (int i = 0; i < q; i += X)
      for (int j = 0; j < e; j += Y) {
        const simd::Vec block = simd::score_block<S>(query_rows + i, entity_rows + j, vectors.dim);
        for (int a = 0; a < X && i + a < q; ++a)
          std::copy_n(reinterpret_cast<const float*>(&block) + a * Y, j + Y <= e ? Y : e - j,
                      scores.row(first_query + i + a) + first_entity + j);
      }
  }
#endif

  static GS_DEV int below(Offset left, int most) { return left < most ? int(left) : most; }
};

void score_rows(Score score, Rows<const float> vectors, Rows<const float> entities, Rows<float> scores,
                const Exec& exec) {
  GS_EXPECT(scores.count == vectors.count && scores.dim == entities.count && vectors.dim == entities.dim,
            "score_rows: [", scores.count, ", ", scores.dim, "] scores for ", vectors.count, " vectors of ",
            vectors.dim, " and ", entities.count, " entities of ", entities.dim, " columns");
  with_score(score, [&](auto known) {
    GS_EXPECT(vectors.dim % kCellFloats<known> == 0, "score_rows: dim ", vectors.dim, " of complex vectors");
    using Body = ScoreRows<known>;
    const Offset items = (vectors.count + Body::kQueries - 1) / Body::kQueries *
                         ((entities.count + Body::kEntities - 1) / Body::kEntities);
    for_each_team("score_rows", items, Body::scratch_bytes(), Body{vectors, entities, scores}, exec);
  });
}

}  // namespace gs::kernels::GS_BACKEND
