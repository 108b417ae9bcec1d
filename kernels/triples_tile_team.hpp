// A tile of triples by a team of threads: rows and queries staged in its scratch a slab of columns at a time, scores in
// scratch as well.
//
// Scores are summed over slabs; then a warp takes a query at a time through its loss; then slabs are staged a second
// time for the gradients, which need only their own columns (and a third time with Adagrad, which must know a row's
// whole gradient first). A thread sums the gradients of one triple's rows, or of a few negatives, in one pack of cells.
#pragma once

#include "kernels/lanes.hpp"
#include "kernels/triples_team.hpp"
#include "kernels/triples_tile.hpp"

namespace gs::kernels::GS_BACKEND::team {

/// A sum that other threads have added to.
GS_DEV float sum_now(float* sum) {
#if defined(__CUDACC__)
  return __ldcg(sum);  // adds are made in the second-level cache
#else
  return std::atomic_ref<float>(*sum).load(std::memory_order_relaxed);
#endif
}

/// Bits that order as floats do.
GS_DEV std::uint32_t ordered(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
GS_DEV float from_ordered(std::uint32_t bits) {
  return std::bit_cast<float>(bits & 0x80000000u ? bits & 0x7FFFFFFFu : ~bits);
}

template <Score S>
class TripleTileProducts {
 public:
  /// Bytes for the widest slab within `limit`. Throws usage where not even the narrowest fits.
  static Offset scratch_bytes(const TripleShape& shape, Offset limit) {
    const Offset fixed = fixed_floats(shape), rows = staged_rows(shape);
    const int cells = shape.dim / kCellFloats<S>, widest = (cells + kPack - 1) / kPack * kPack;
    int width = kNarrowest;
    const auto bytes = [&](int of) { return 4 * (fixed + rows * Slab<S>::stride(of)); };
    if (bytes(width) > limit)
      throw Error(Fault::usage, cat("a tile of ", shape.triples, " triples and ", shape.shared_negatives,
                                    " negatives needs ", bytes(width), " bytes of shared memory and there are ", limit,
                                    "; lower sampler.triples_per_tile or sampler.shared_negatives"));
    while (width < widest && bytes(width + kPack) <= limit) width += kPack;
    return bytes(width);
  }

  GS_DEV TripleTileProducts(const Team& team, const TripleBatch& batch, const TripleTile& tile, Offset scratch_bytes)
      : team_(team), batch_(batch), shape_(batch.shape), tile_(tile), queries_(2 * tile.triples) {
    const int queries = shape_.queries(), negatives = shape_.shared_negatives;
    dense_ = reinterpret_cast<float*>(team.scratch) + Lanes::kReserved / 4;
    positive_ = dense_ + queries * negatives;
    losses_ = positive_ + queries;
    factor_ = losses_ + kLossFloats;
    staged_ = reinterpret_cast<float*>(team.scratch) + fixed_floats(shape_);
    const int floats = int((scratch_bytes / 4 - fixed_floats(shape_)) / staged_rows(shape_));
    slab_ = {shape_.dim / kCellFloats<S>, kNotStaged, (floats - kPack) / kCellFloats<S>};
  }

  GS_DEV TileResult train(Offset) {
    float loss = 0;
    for (int k = team_.rank(); k < queries_ * shape_.shared_negatives; k += team_.size()) dense_[k] = 0;
    for (int a = team_.rank(); a < queries_; a += team_.size()) positive_[a] = 0;
    each_slab([&] { add_scores(); });
    team_.sync();
    with_loss(shape_.loss, [&](auto known) {
      const Lanes lanes(team_);
      for (Offset index = 0; index * Lanes::kGroup < queries_; ++index) {
        const RowGroup group = lanes.group(index, queries_);
        for (Offset a = group.first; a < group.last; a += group.step) {
          const float of_query = coefficients<known>(lanes, int(a));
          if (lanes.is_first()) loss += of_query;
        }
      }
    });
    find_factors();
    each_slab([&] {
      each_gradient([&](int place, int pack, Cell<S, Pack4> gradient, float regularization) {
        loss += regularization;
        const float factor = factor_[place];
        slab_.add(target(place), pack, scaled(factor, gradient));
      });
    });
    losses_[team_.rank()] = loss;
    team_.sync();
    TileResult result{0, std::uint32_t(queries_)};
    for (int t = 0; t < team_.size() && team_.rank() == 0; ++t) result.loss += losses_[t];
    return result;
  }

 private:
  static constexpr int kLossFloats = 1024;                // one a thread of the largest team
  static constexpr int kNarrowest = 16 / kCellFloats<S>;  // cells of the narrowest slab
  static constexpr int kNegatives = kPaired<S> ? 2 : 4;   // that a thread sums at once
  static constexpr int kNotStaged = -1;

  /// A multiple of a pack.
  static GS_HD Offset fixed_floats(const TripleShape& shape) {
    const Offset floats = Lanes::kReserved / 4 + Offset(shape.queries()) * (shape.shared_negatives + 1) + kLossFloats +
                          tile_places(shape);
    return (floats + kPack - 1) / kPack * kPack;
  }
  static GS_HD int staged_rows(const TripleShape& shape) { return tile_places(shape) + shape.queries(); }

  static GS_DEV Cell<S, Pack4> scaled(float a, Cell<S, Pack4> cell) { return all(a) * cell; }

  GS_DEV int place_of(int triple, int part) const { return shape_.width() * triple + part; }
  GS_DEV int first_negative() const { return place_of(shape_.triples, 0); }
  GS_DEV int packs() const {
    const int left = slab_.cells - slab_.first;
    return ((left < slab_.width ? left : slab_.width) + kPack - 1) / kPack;
  }
  GS_DEV float* staged(int place) const { return staged_ + place * Slab<S>::stride(slab_.width); }
  GS_DEV float* query(int a) const { return staged(tile_places(shape_) + a); }
  GS_DEV float* relation(int triple, const TripleSide& side) const { return staged(place_of(triple, side.relation)); }
  GS_DEV float* dense(int a) const { return dense_ + a * shape_.shared_negatives; }

  /// Places of triples that the tile lacks are those of its first: staged, but never stepped.
  GS_DEV RowId id(int place) const {
    if (place >= first_negative()) return tile_.negatives[place - first_negative()];
    const int parts = shape_.width(), triple = place / parts;
    return row_of(shape_, tile_, triple < tile_.triples ? triple : 0, Part(place % parts));
  }
  GS_DEV bool is_missing(int place) const {
    return place < first_negative() && place / shape_.width() >= tile_.triples;
  }
  GS_DEV float* target(int place) const {
    return (batch_.in_place() ? batch_.rows : batch_.gradients.contexts).row(id(place));
  }

  /// body() with every slab staged in turn.
  template <class Body>
  GS_DEV void each_slab(const Body& body) {
    for (int first = 0; first < slab_.cells; first += slab_.width) {
      if (slab_.first != first) {
        slab_.first = first;
        stage();
      }
      body();
    }
  }

  GS_DEV void stage() {
    team_.sync();
    slab_.stage(team_, staged_, tile_places(shape_), [&](int place) { return batch_.rows.row(id(place)); });
    team_.sync();
    if constexpr (S == Score::rotate) {
      const int relations = shape_.width() - 2, cells = packs() * kPack;  // of a triple
      for (int k = team_.rank(); k < relations * tile_.triples * cells; k += team_.size()) {
        const int i = k / cells, c = k % cells;
        float* const z = staged(place_of(i / relations, i % relations == 0 ? kRelation : kReciprocal));
        const Complex<float> turn = turned<S>({z[c], 0});
        z[c] = turn.re, z[slab_.width + c] = turn.im;
      }
      team_.sync();
    }
    for (int k = team_.rank(); k < queries_ * packs(); k += team_.size()) {
      const int a = k / packs(), pack = k % packs();
      const TripleSide side = side_of(shape_, a);
      slab_.write(query(a), pack,
                  query_of<S, Pack4>(slab_.read(staged(place_of(a / 2, side.entity)), pack),
                                     slab_.read(relation(a / 2, side), pack), side.asks_head));
    }
    team_.sync();
  }

  // ------------------------------------------------------------------------------------------------------- scores

  /// Adds the slab's share of every score; each has one thread.
  GS_DEV void add_scores() {
    const int negatives = shape_.shared_negatives, step = (negatives + 3) / 4, blocks = tile_.triples * step;
    for (int work = team_.rank(); work < blocks + queries_; work += team_.size()) {
      if (work < blocks) {
        slab_.sum_block(query(0), work / step * 2, queries_, staged(first_negative()), work % step, step, negatives,
                        packs(), [&](int a, int s, float sum) { dense(a)[s] += sum; });
      } else {
        const int a = work - blocks;
        const float* const answer = staged(place_of(a / 2, side_of(shape_, a).answer));
        Pack4 sum = {};
        for (int pack = 0; pack < packs(); ++pack)
          sum = add_cell<S>(sum, slab_.read(query(a), pack), slab_.read(answer, pack));
        positive_[a] += sum_of(sum);
      }
    }
  }

  GS_DEV bool is_masked(int a, int s, Span<const RowId> known) const {
    const RowId negative = tile_.negatives[s];
    return negative == tile_.nodes[shape_.width() * (a / 2) + side_of(shape_, a).answer] ||
           (!known.empty() && holds(known, entity_of(batch_, negative)));
  }

  /// Scores become d loss / d score, over the distance where `pull` wants that; returns the query's loss.
  template <TripleLoss L>
  GS_DEV float coefficients(const Lanes& lanes, int a) {
    float* const n = dense(a);
    const int count = shape_.shared_negatives;
    const float positive = score_of<S>(positive_[a]);
    const Span<const RowId> known = batch_.known.empty() ? Span<const RowId>() : known_answers(batch_, tile_, a);
    lanes.each(count, [&](int s) {
      n[s] = is_masked(a, s, known) ? -std::numeric_limits<float>::infinity() : score_of<S>(n[s]);
    });
    const float largest = from_ordered(lanes.most(count, [&](int s) { return ordered(n[s]); }));
    QueryLoss<L, float> loss(shape_, positive, largest);
    if (loss.weighs()) loss.weigh(lanes.sum(count, [&](float sum, int s) { return sum + loss.weight_term(n[s]); }));
    if (L == TripleLoss::softmax)
      loss.total(lanes.sum(count, [&](float sum, int s) { return sum + loss.share_term(n[s]); }));
    const float losses = lanes.sum(count, [&](float sum, int s) { return sum + loss.negative(n[s]).loss; });
    const float sum = lanes.sum(count, [&](float total, int s) {
      const float score = n[s], coefficient = loss.negative(score).coefficient;
      n[s] = over_distance(coefficient, score);
      return total + coefficient;
    });
    if (lanes.is_first()) positive_[a] = over_distance(loss.positive_coefficient(sum), positive);
    return loss.positive_loss() + losses;
  }
  static GS_DEV float over_distance(float coefficient, float score) {
    if (S != Score::transe_l2) return coefficient;
    return score == 0 ? 0.0f : coefficient / -score;
  }

  // -------------------------------------------------------------------------------------------------------- steps

  /// What every place's gradient is multiplied by.
  GS_DEV void find_factors() {
    const bool in_place = batch_.in_place(), adapts = in_place && !batch_.squares.empty();
    for (int p = team_.rank(); p < tile_places(shape_); p += team_.size())
      factor_[p] = adapts ? 0.0f : in_place ? -batch_.learning_rate : 1.0f;
    team_.sync();
    if (!adapts) return;
    each_slab([&] {
      each_gradient(
          [&](int place, int, Cell<S, Pack4> gradient, float) { add_to(&factor_[place], sum_of(squared(gradient))); });
    });
    team_.sync();
    for (int p = team_.rank(); p < tile_places(shape_); p += team_.size())
      if (!is_missing(p)) add_to(&batch_.squares[id(p)], factor_[p] / float(shape_.dim));
    team_.sync();
    for (int p = team_.rank(); p < tile_places(shape_); p += team_.size())
      factor_[p] = -batch_.learning_rate / (sqrtf(sum_now(&batch_.squares[id(p)])) + batch_.epsilon);
    team_.sync();
  }

  /// take(place, pack, gradient, regularization's loss) for every place and pack of the slab.
  template <class Take>
  GS_DEV void each_gradient(const Take& take) const {
    const int step = (shape_.shared_negatives + kNegatives - 1) / kNegatives;
    for (int work = team_.rank(); work < (tile_.triples + step) * packs(); work += team_.size()) {
      const int unit = work / packs(), pack = work % packs();
      if (unit < tile_.triples)
        gradients_of_triple(unit, pack, take);
      else
        gradients_of_negatives(unit - tile_.triples, step, pack, take);
    }
  }

  template <class Take>
  GS_DEV void gradients_of_negatives(int first, int step, int pack, const Take& take) const {
    Cell<S, Pack4> e[kNegatives], sum[kNegatives] = {};
    GS_UNROLL
    for (int b = 0; b < kNegatives; ++b) e[b] = slab_.read(staged(first_negative() + clamped(first + b * step)), pack);
    for (int a = 0; a < queries_; ++a) {
      const Cell<S, Pack4> q = slab_.read(query(a), pack);
      GS_UNROLL
      for (int b = 0; b < kNegatives; ++b)
        sum[b] = sum[b] + pull<S, Pack4>(q, e[b], all(dense(a)[clamped(first + b * step)]));
    }
    GS_UNROLL
    for (int b = 0; b < kNegatives; ++b)
      if (first + b * step < shape_.shared_negatives) take(first_negative() + first + b * step, pack, sum[b], 0.0f);
  }
  GS_DEV int clamped(int s) const { return s < shape_.shared_negatives ? s : shape_.shared_negatives - 1; }

  template <class Take>
  GS_DEV void gradients_of_triple(int i, int pack, const Take& take) const {
    Cell<S, Pack4> of_query[2] = {};
    const Cell<S, Pack4> q[2] = {slab_.read(query(2 * i), pack), slab_.read(query(2 * i + 1), pack)};
    for (int s = 0; s < shape_.shared_negatives; ++s) {
      const Cell<S, Pack4> e = slab_.read(staged(first_negative() + s), pack);
      GS_UNROLL
      for (int k = 0; k < 2; ++k) of_query[k] = of_query[k] + pull<S, Pack4>(e, q[k], all(dense(2 * i + k)[s]));
    }
    const auto row = [&](Part part) { return slab_.read(staged(place_of(i, part)), pack); };
    const auto give = [&](Part part, Cell<S, Pack4> gradient) {
      float loss = 0;
      if (S != Score::rotate || part == kHead || part == kTail)
        loss = sum_of(regularize<Pack4>(shape_, row(part), gradient));
      take(place_of(i, part), pack, gradient, loss);
    };
    const bool reciprocal = shape_.reciprocal > 0;
    const Pack4 c[2] = {all(positive_[2 * i]), all(positive_[2 * i + 1])};
    const Cell<S, Pack4> head = row(kHead), tail = row(kTail);
    const Cell<S, Pack4> z = row(kRelation), back = row(reciprocal ? kReciprocal : kRelation);
    const QueryParts<S, Pack4> of_tail_query =
        parted<S, Pack4>(of_query[0] + pull<S, Pack4>(tail, q[0], c[0]), head, z, false);
    const QueryParts<S, Pack4> of_head_query =
        parted<S, Pack4>(of_query[1] + pull<S, Pack4>(head, q[1], c[1]), tail, back, !reciprocal);
    give(kTail, of_head_query.entity + pull<S, Pack4>(q[0], tail, c[0]));
    Cell<S, Pack4> of_relation = unturned<S, Pack4>(of_tail_query.relation, z);
    const Cell<S, Pack4> of_back = unturned<S, Pack4>(of_head_query.relation, back);
    if (reciprocal)
      give(kReciprocal, of_back);
    else
      of_relation = of_relation + of_back;
    give(kRelation, of_relation);
    give(kHead, of_tail_query.entity + pull<S, Pack4>(q[1], head, c[1]));
  }

  const Team& team_;
  const TripleBatch& batch_;
  const TripleShape& shape_;
  const TripleTile& tile_;
  int queries_;
  float *dense_, *positive_;  // [queries, s], [queries]: scores, then coefficients
  float* losses_;             // [team]
  float* factor_;             // [places]
  float* staged_;             // [places + queries, slab]
  Slab<S> slab_;
};

}  // namespace gs::kernels::GS_BACKEND::team
