// A tile of triples on a CPU: register blocks of whole vectors over entities where they stand in the table, queries and
// all gradients in scratch.
//
// The negatives' gradients and the queries' are two products of the coefficients where scores are dot products or
// |q - e|, whose gradient (q - e) / |q - e| is one as well. Of the other distances every pair's gradient is a vector of
// its own: it is found once and added to both.
#pragma once

#include <algorithm>

#include "kernels/triples_simd.hpp"
#include "kernels/triples_tile.hpp"

namespace gs::kernels::GS_BACKEND::simd {

/// The rows of the next tile, asked for one by one between the products of this one.
class TripleRowsAhead {
 public:
  GS_DEV TripleRowsAhead(const TripleBatch& batch, Offset index) : batch_(batch) {
    if (index == kNone) return;
    tile_ = triple_tile(batch, index);
    const int places = tile_.triples == 0 ? 0 : batch.shape.width() * tile_.triples + batch.shape.shared_negatives;
    if (places * batch.rows.stride * Offset(sizeof(float)) <= kMostBytes) left_ = places;
  }

  GS_DEV void ask_for_one() {
    if (left_ == 0) return;
    --left_;
    const int nodes = batch_.shape.width() * tile_.triples;
    const RowId row = left_ < nodes ? tile_.nodes[left_] : tile_.negatives[left_ - nodes];
    ask_for(batch_.rows.row(row));
    if (!batch_.in_place()) ask_for(batch_.gradients.contexts.row(row));
    if (!batch_.squares.empty()) prefetch(&batch_.squares[row]);
  }

 private:
  GS_DEV void ask_for(const float* row) const {
    for (Offset c = 0; c < batch_.rows.stride; c += 16) prefetch(row + c);
  }

  static constexpr Offset kMostBytes = 512 << 10;  // half of a second-level cache

  const TripleBatch& batch_;
  TripleTile tile_{};
  int left_ = 0;
};

template <Score S>
class TripleTileProducts {
 public:
  static Offset scratch_bytes(const TripleShape& shape, Offset) { return Layout(shape).bytes; }

  GS_DEV TripleTileProducts(const Team& team, const TripleBatch& batch, const TripleTile& tile, Offset)
      : batch_(batch),
        shape_(batch.shape),
        tile_(tile),
        queries_(2 * tile.triples),
        cells_(shape_.dim / kCellFloats<S>),
        stride_(padded_stride(shape_.dim)),
        dense_stride_(Layout::dense_stride(shape_)) {
    const Layout at(shape_);
    rows_ = reinterpret_cast<float**>(team.scratch);
    negatives_ = rows_ + Offset(shape_.width()) * shape_.triples;
    query_rows_ = rows_ + tile_places(shape_) + kSpare;
    float* const floats = reinterpret_cast<float*>(team.scratch + at.floats);
    query_ = floats + at.query, turned_ = floats + at.turned;
    query_step_ = floats + at.query_step, step_ = floats + at.step;
    dense_ = floats + at.dense, positive_ = floats + at.positive, total_ = floats + at.total;
  }

  /// next: the tile whose rows are asked for meanwhile, or kNone.
  GS_DEV TileResult train(Offset next) {
    TripleRowsAhead ahead(batch_, next);
    find_rows();
    make_queries();
    score(ahead);
    mask();
    TileResult result{0, std::uint32_t(queries_)};
    with_loss(shape_.loss, [&](auto loss) {
      for (int a = 0; a < queries_; ++a) result.loss += coefficients<loss>(a);
    });
    if constexpr (S == Score::transe_l1 || S == Score::rotate) {
      for (int a = 0; a < queries_; a += kGroup) a + kGroup <= queries_ ? pull_group<kGroup>(a) : pull_group<2>(a);
    } else {
      sum_query_steps();
      sum_negative_steps();
    }
    for (int i = 0; i < tile_.triples; ++i) result.loss += step_of_triple(i);
    take_steps();
    return result;
  }

 private:
  static constexpr int kSpare = 4;  // a block may read this many row pointers past the last
  static constexpr int kGroup = 4;  // queries

  /// Where things stand in the scratch: row pointers, then floats. It starts as zeros, and padding is left so.
  struct Layout {
    Offset floats, query, turned, query_step, step, dense, positive, total, bytes;

    /// One line more than there are negatives: the coefficients of one negative lie in different sets of the cache.
    static Offset dense_stride(const TripleShape& shape) { return padded_stride(shape.shared_negatives) + 16; }

    explicit GS_DEV Layout(const TripleShape& shape) {
      const Offset stride = padded_stride(shape.dim), queries = shape.queries();
      floats = padded_stride(2 * (tile_places(shape) + int(queries) + 2 * kSpare)) * Offset(sizeof(float));
      query = 0;
      turned = query + queries * stride;
      query_step = turned + (S == Score::rotate ? queries * stride : 0);
      step = query_step + queries * stride;
      dense = step + tile_places(shape) * stride;
      positive = dense + (queries + kSpare) * dense_stride(shape);
      total = positive + padded_stride(int(queries));
      bytes = floats + Offset(sizeof(float)) * (total + padded_stride(int(queries)));
    }
  };

  GS_DEV float* query(int a) const { return query_ + a * stride_; }
  GS_DEV float* query_step(int a) const { return query_step_ + a * stride_; }
  GS_DEV float* step(int place) const { return step_ + place * stride_; }
  GS_DEV float* step(int triple, int part) const { return step(shape_.width() * triple + part); }
  GS_DEV float* negative_step(int s) const { return step(shape_.width() * shape_.triples + s); }
  GS_DEV float* row(int triple, int part) const { return rows_[shape_.width() * triple + part]; }
  GS_DEV float* dense(int a) const { return dense_ + a * dense_stride_; }

  /// The row that stands for a query's relation: e^(i r) of phases.
  GS_DEV float* turned_relation(int a, const TripleSide& side) const {
    return S == Score::rotate ? turned_ + a * stride_ : row(a / 2, side.relation);
  }

  GS_DEV RowId id(int place) const {
    const int parts = shape_.width(), nodes = parts * shape_.triples;
    return place < nodes ? row_of(shape_, tile_, place / parts, Part(place % parts)) : tile_.negatives[place - nodes];
  }
  /// body(place) for all that this tile has.
  template <class Body>
  GS_DEV void each_place(const Body& body) const {
    const int parts = shape_.width();
    for (int p = 0; p < parts * tile_.triples; ++p) body(p);
    for (int p = parts * shape_.triples; p < tile_places(shape_); ++p) body(p);
  }

  GS_DEV void find_rows() {
    each_place([&](int place) { rows_[place] = batch_.rows.row(id(place)); });
    const int s = shape_.shared_negatives;
    std::fill_n(negatives_ + s, kSpare, negatives_[s - 1]);
    for (int a = 0; a < queries_ + kSpare; ++a) query_rows_[a] = query(std::min(a, queries_ - 1));
  }

  GS_DEV void make_queries() {
    for (int a = 0; a < queries_; ++a) {
      const TripleSide side = side_of(shape_, a);
      const float *const x = row(a / 2, side.entity), *const r = row(a / 2, side.relation);
      float* const z = turned_relation(a, side);
      if constexpr (S == Score::rotate) {
        for (int c = 0; c < cells_; ++c) z[c] = std::cos(r[c]), z[cells_ + c] = std::sin(r[c]);
      }
      each_vector(cells_, [&](auto columns) {
        columns.template write<S>(query(a), cells_,
                                  query_of<S, Wide>(columns.template read<S>(x, cells_),
                                                    columns.template read<S>(z, cells_), side.asks_head));
      });
    }
  }

  GS_DEV void score(TripleRowsAhead& ahead) {
    constexpr int X = kQueryBlock, Y = kEntityBlock;
    for (int a = 0; a < queries_; a += X)
      for (int s = 0; s < shape_.shared_negatives; s += Y) {
        ahead.ask_for_one();
        const Vec scores = score_block<S>(query_rows_ + a, negatives_ + s, shape_.dim);
        for (int i = 0; i < X; ++i)
          std::memcpy(dense(a + i) + s, reinterpret_cast<const float*>(&scores) + i * Y, Y * sizeof(float));
      }
    for (int a = 0; a < queries_; ++a) {
      Vec sum = {};
      const float* const answer = row(a / 2, side_of(shape_, a).answer);
      each_vector(cells_, [&](auto columns) {
        sum = add_cell<S, Wide>(sum, columns.template read<S>(query(a), cells_),
                                columns.template read<S>(answer, cells_));
      });
      positive_[a] = score_of<S>(sum_of(sum));
    }
  }

  // --------------------------------------------------------------------------------------------------- coefficients

  static constexpr float kMasked = -std::numeric_limits<float>::infinity();

  GS_DEV void mask() {
    constexpr RowId kBits = 4096;  // a small set of the negatives: few answers pass it that are none
    std::uint64_t maybe[kBits / 64] = {};
    const bool knows = !batch_.known.empty();
    for (int s = 0; s < shape_.shared_negatives && knows; ++s) {
      const RowId bit = entity_of(batch_, tile_.negatives[s]) % kBits;
      maybe[bit / 64] |= std::uint64_t(1) << bit % 64;
    }
    for (int a = 0; a < queries_; ++a) {
      const RowId answer = tile_.nodes[shape_.width() * (a / 2) + side_of(shape_, a).answer];
      for (int s = 0; s < shape_.shared_negatives; ++s)
        dense(a)[s] = tile_.negatives[s] == answer ? kMasked : dense(a)[s];
      for (Offset s = shape_.shared_negatives; s < dense_stride_; ++s) dense(a)[s] = kMasked;
      if (knows) mask_known(a, maybe, kBits);
    }
  }

  GS_DEV void mask_known(int a, const std::uint64_t* maybe, RowId bits) {
    const Span<const RowId> answers = known_answers(batch_, tile_, a);
    if (answers.size > shape_.shared_negatives) {
      for (int s = 0; s < shape_.shared_negatives; ++s)
        if (holds(answers, entity_of(batch_, tile_.negatives[s]))) dense(a)[s] = kMasked;
      return;
    }
    for (const RowId answer : answers) {
      if (!(maybe[answer % bits / 64] >> answer % 64 & 1)) continue;
      for (int s = 0; s < shape_.shared_negatives; ++s)
        if (entity_of(batch_, tile_.negatives[s]) == answer) dense(a)[s] = kMasked;
    }
  }

  /// Scores become d loss / d score, over the distance where `pull` wants that; returns the query's loss.
  template <TripleLoss L>
  GS_DEV float coefficients(int a) {
    float* const n = dense(a);
    const int count = int(padded_stride(shape_.shared_negatives));
    Vec most = all(kMasked);
    for (int s = 0; s < count; s += kLanes) most = load(n + s) > most ? load(n + s) : most;
    float largest = most[0];
    for (int i = 1; i < kLanes; ++i) largest = std::max(largest, most[i]);

    QueryLoss<L, Wide> loss(shape_, positive_[a], largest);
    const auto sum = [&](auto term) {
      Vec sums = {};
      for (int s = 0; s < count; s += kLanes) sums += term(load(n + s));
      return sum_of(sums);
    };
    if (loss.weighs()) loss.weigh(sum([&](Vec v) -> Vec { return loss.weight_term(v); }));
    if (L == TripleLoss::softmax) loss.total(sum([&](Vec v) -> Vec { return loss.share_term(v); }));

    Vec losses = {}, sums = {}, totals = {};
    for (int s = 0; s < count; s += kLanes) {
      const Vec score = load(n + s);
      const auto term = loss.negative(score);
      const Vec pulling = over_distance(term.coefficient, score);
      losses += term.loss, sums += term.coefficient, totals += pulling;
      store(n + s, pulling);
    }
    total_[a] = sum_of(totals);
    const float coefficient = loss.positive_coefficient(sum_of(sums)), score = positive_[a];
    positive_[a] = S != Score::transe_l2 ? coefficient : score == 0 ? 0 : coefficient / -score;
    return loss.positive_loss() + sum_of(losses);
  }
  static GS_DEV Vec over_distance(Vec coefficient, Vec score) {
    if (S != Score::transe_l2) return coefficient;
    return score == 0.0f ? Vec{} : coefficient / -score;
  }

  // ---------------------------------------------------------------------------------------------------------- steps

  GS_DEV void sum_query_steps() {
    for (int a = 0; a < queries_; a += 2) {
      const WeightedRows parts[1] = {{negatives_, dense(a), 1, dense_stride_, shape_.shared_negatives}};
      weighted_sums(parts, int(stride_), [&](int output, int column, Vec sum) {
        if (S == Score::transe_l2) sum -= total_[a + output] * load(query(a + output) + column);
        store(query_step(a + output) + column, sum);
      });
    }
  }

  GS_DEV void sum_negative_steps() {
    const int count = shape_.shared_negatives;
    for (int s = 0; s < count; s += 2) {
      float total[2] = {};
      for (int a = 0; a < queries_; ++a) total[0] += dense(a)[s], total[1] += dense(a)[s + 1];
      const WeightedRows parts[1] = {{query_rows_, dense_ + s, dense_stride_, 1, queries_}};
      weighted_sums(parts, int(stride_), [&](int output, int column, Vec sum) {
        if (s + output == count) return;
        if (S == Score::transe_l2) sum -= total[output] * load(negatives_[s + output] + column);
        store(negative_step(s + output) + column, sum);
      });
    }
  }

  /// The gradients of queries [a, a + A) by all negatives, and their share of the negatives'. What the loop reads is
  /// in locals: a store of a vector may change any member.
  template <int A>
  GS_DEV void pull_group(int a) const {
    const int cells = cells_, count = shape_.shared_negatives;
    const float* const* const negatives = negatives_;
    const float* coefficient[A];
    for (int i = 0; i < A; ++i) coefficient[i] = dense(a + i);
    each_vector(cells, [&](auto columns) {
      Cell<S, Wide> q[A], sum[A] = {};
      for (int i = 0; i < A; ++i) q[i] = columns.template read<S>(query(a + i), cells);
      float* step = negative_step(0);
      for (int s = 0; s < count; ++s, step += stride_) {
        const Cell<S, Wide> e = columns.template read<S>(negatives[s], cells);
        Cell<S, Wide> of_negative = {};
        if (a > 0) of_negative = columns.template read<S>(step, cells);
        for (int i = 0; i < A; ++i) {
          const Cell<S, Wide> pulled = pull<S, Wide>(q[i], e, all(coefficient[i][s]));
          of_negative = of_negative + pulled;
          sum[i] = sum[i] - pulled;
        }
        columns.template write<S>(step, cells, of_negative);
      }
      for (int i = 0; i < A; ++i) columns.template write<S>(query_step(a + i), cells, sum[i]);
    });
  }

  /// The gradients of a triple's rows; returns the loss of its regularization.
  GS_DEV float step_of_triple(int i) {
    Vec losses = {};
    each_vector(cells_, [&](auto columns) {
      const auto read = [&](const float* row) { return columns.template read<S>(row, cells_); };
      Cell<S, Wide> sums[4] = {};
      for (int a = 2 * i; a < 2 * i + 2; ++a) {
        const TripleSide side = side_of(shape_, a);
        const Cell<S, Wide> q = read(query(a)), answer = read(row(i, side.answer));
        const Wide coefficient = all(positive_[a]);
        const Cell<S, Wide> x = read(row(i, side.entity)), z = read(turned_relation(a, side));
        const QueryParts<S, Wide> parts =
            parted<S, Wide>(read(query_step(a)) + pull<S, Wide>(answer, q, coefficient), x, z, side.asks_head);
        sums[side.answer] = sums[side.answer] + pull<S, Wide>(q, answer, coefficient);
        sums[side.entity] = sums[side.entity] + parts.entity;
        sums[side.relation] = sums[side.relation] + unturned<S, Wide>(parts.relation, z);
      }
      for (int part = 0; part < shape_.width(); ++part) {
        if (S != Score::rotate || part == kHead || part == kTail)
          losses += regularize<Wide>(shape_, read(row(i, part)), sums[part]);
        columns.template write<S>(step(i, part), cells_, sums[part]);
      }
    });
    return sum_of(losses);
  }

  GS_DEV void take_steps() {
    const bool in_place = batch_.in_place(), adapts = in_place && !batch_.squares.empty();
    if (adapts) {
      each_place([&](int place) {
        Vec sum = {};
        for (Offset c = 0; c < stride_; c += kLanes) sum += load(step(place) + c) * load(step(place) + c);
        add_to(&batch_.squares[id(place)], sum_of(sum) / float(shape_.dim));
      });
    }
    each_place([&](int place) {
      float rate = in_place ? -batch_.learning_rate : 1.0f;
      if (adapts) rate /= std::sqrt(batch_.squares[id(place)]) + batch_.epsilon;
      float* const row = in_place ? rows_[place] : batch_.gradients.contexts.row(id(place));
      each_vector(shape_.dim,
                  [&](auto columns) { columns.write(row, columns.read(row) + rate * columns.read(step(place))); });
    });
  }

  const TripleBatch& batch_;
  const TripleShape& shape_;
  const TripleTile& tile_;
  int queries_, cells_;
  Offset stride_, dense_stride_;
  float **rows_, **negatives_, **query_rows_;  // [places], [s + spare], [queries + spare]
  float *query_, *turned_, *query_step_;       // [queries, dim]
  float* step_;                                // [places, dim]: gradients
  float *dense_, *positive_;                   // [queries, s], [queries]: scores, then coefficients
  float* total_;                               // [queries]: sums of coefficients
};

}  // namespace gs::kernels::GS_BACKEND::simd
