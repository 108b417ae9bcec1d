// One tile of triples: its queries, places and masks, and a query's loss. Shared by every backend.
//
// Query 2 i of a tile asks for triple i's tail, query 2 i + 1 for its head. A tile's places are the rows that it
// steps: of every triple head, relation, tail and, where there are such, the reciprocal relation; then the negatives.
#pragma once

#include <limits>

#include "kernels/triples.hpp"

namespace gs::kernels::GS_BACKEND {

struct TripleTile {
  const RowId* nodes;      // [t, width]
  const RowId* negatives;  // [s]
  int triples;             // before the first that is missing
};

GS_DEV TripleTile triple_tile(const TripleBatch& batch, Offset index) {
  const TripleShape& shape = batch.shape;
  TripleTile tile;
  tile.nodes = &batch.nodes[index * shape.width() * shape.triples];
  tile.negatives = &batch.negatives[index * shape.shared_negatives];
  tile.triples = 0;
  while (tile.triples < shape.triples && tile.nodes[shape.width() * tile.triples] != kNoRow) ++tile.triples;
  return tile;
}

// -------------------------------------------------------------------------------------------------------------- places

enum Part : int { kHead, kRelation, kTail, kReciprocal };

/// Places of a tile.
GS_HD inline int tile_places(const TripleShape& shape) {
  return shape.width() * shape.triples + shape.shared_negatives;
}

GS_DEV RowId row_of(const TripleShape& shape, const TripleTile& tile, int triple, Part part) {
  return tile.nodes[shape.width() * triple + part];
}

/// The parts of its triple that a query is made of and asks for. asks_head: how it is made, false of reciprocals.
struct TripleSide {
  Part entity, relation, answer;
  bool asks_head;
};
GS_DEV TripleSide side_of(const TripleShape& shape, int query) {
  if (query % 2 == 0) return {kHead, kRelation, kTail, false};
  if (shape.reciprocal > 0) return {kTail, kReciprocal, kHead, false};
  return {kTail, kRelation, kHead, true};
}

// --------------------------------------------------------------------------------------------------------------- masks

GS_DEV RowId entity_of(const TripleBatch& batch, RowId row) {
  return (batch.global_rows.empty() ? row : batch.global_rows[row]) - batch.first_entity;
}

/// The first of sorted values [first, last) that is not below `value`.
GS_DEV Offset first_not_below(Span<const RowId> values, Offset first, Offset last, RowId value) {
  while (first < last) {
    const Offset middle = first + (last - first) / 2;
    if (values[middle] < value)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

/// All known answers to a query, sorted, in the numbers of entities.
GS_DEV Span<const RowId> known_answers(const TripleBatch& batch, const TripleTile& tile, int query) {
  const KnownTriples& known = batch.known;
  const RowId* nodes = tile.nodes + batch.shape.width() * (query / 2);
  const bool asks_head = query % 2 == 1;
  const Span<const Offset> offsets = asks_head ? known.head_offsets : known.tail_offsets;
  const Span<const RowId> relations = asks_head ? known.head_relations : known.tail_relations;
  const RowId entity = entity_of(batch, nodes[asks_head ? kTail : kHead]);
  const RowId relation = batch.global_rows.empty() ? nodes[kRelation] : batch.global_rows[nodes[kRelation]];
  const Offset first = first_not_below(relations, offsets[entity], offsets[entity + 1], relation);
  const Offset last = first_not_below(relations, first, offsets[entity + 1], relation + 1);
  return (asks_head ? known.heads : known.tails).subspan(first, last - first);
}

GS_DEV bool holds(Span<const RowId> sorted, RowId value) {
  const Offset at = first_not_below(sorted, 0, sorted.size, value);
  return at < sorted.size && sorted[at] == value;
}

// ---------------------------------------------------------------------------------------------------------------- loss

GS_DEV float margin_of(const TripleShape& shape) {
  return shape.loss == TripleLoss::margin || (shape.loss == TripleLoss::logistic && is_distance(shape.score))
             ? shape.margin
             : 0.0f;
}

GS_DEV float softplus(float x) { return (x < 0 ? 0.0f : x) + log1pf(expf(-fabsf(x))); }  // so written that NaN stays

/// The loss of one query, whose positive scores p and whose largest negative scores `largest` (-infinity where all are
/// masked), a T of negatives' scores n at a time. A masked negative scores -infinity. First, in this order, where they
/// are asked for: `weigh` with the sum of weight_term, `total` with the sum of share_term.
template <TripleLoss L, class T>
class QueryLoss {
 public:
  GS_DEV QueryLoss(const TripleShape& shape, float positive, float largest)
      : margin_(L == TripleLoss::margin ? shape.margin - positive : margin_of(shape)),
        adversarial_(shape.adversarial),
        factor_(shape.adversarial > 0 ? shape.negatives : shape.negatives / float(shape.shared_negatives)),
        log_factor_(logf(factor_)),
        positive_(positive),
        largest_(largest) {}

  GS_DEV bool weighs() const { return adversarial_ > 0; }
  GS_DEV T weight_term(T n) const { return exp_of_negative(below_largest(n)); }
  GS_DEV void weigh(float sum) { log_sum_ = sum == 0 ? 0 : logf(sum); }

  /// e^(log w + n) over the largest such term, or over e^p: of the softmax loss.
  GS_DEV T share_term(T n) const { return exp_of_negative(log_term(n) - top()); }
  GS_DEV void total(float sum) { total_ = sum + expf(positive_ - top()); }

  struct Term {
    T loss, coefficient;  // of the sum; d loss / d n
  };
  GS_DEV Term negative(T n) const {
    const T one = T{} + 1.0f;
    if constexpr (L == TripleLoss::softmax) {
      return {T{}, share_term(n) / total_};
    } else if constexpr (L == TripleLoss::margin) {
      const T x = n + margin_, w = weight(n);
      return {x <= 0.0f ? T{} : w * x, x > 0.0f ? w : T{}};
    } else {
      const T x = n + margin_, w = weight(n), e = exp_of_negative(x < 0.0f ? x : -x);
      return {w * ((x < 0.0f ? T{} : x) + log_of(one + e)), w * (x > 0.0f ? one : e) / (one + e)};
    }
  }

  /// Of the positive; sum: of the negatives' coefficients.
  GS_DEV float positive_loss() const {
    if constexpr (L == TripleLoss::softmax) return top() - positive_ + logf(total_);
    return L == TripleLoss::logistic ? softplus(-(margin_ + positive_)) : 0.0f;
  }
  GS_DEV float positive_coefficient(float sum) const {
    if constexpr (L == TripleLoss::logistic) return -1 / (1 + expf(margin_ + positive_));
    return -sum;
  }

 private:
  GS_DEV T weight(T n) const {
    if (!weighs()) return T{} + factor_;
    return factor_ * exp_of_negative(below_largest(n) - log_sum_);
  }
  GS_DEV T below_largest(T n) const {
    return adversarial_ * (n - (largest_ == -std::numeric_limits<float>::infinity() ? 0.0f : largest_));
  }
  GS_DEV T log_term(T n) const { return n + log_factor_ + (weighs() ? below_largest(n) - log_sum_ : T{}); }
  GS_DEV float top() const {
    const float negative = largest_ + log_factor_ - log_sum_;
    return negative > positive_ ? negative : positive_;
  }

  float margin_, adversarial_, factor_, log_factor_, positive_, largest_, log_sum_ = 0, total_ = 0;
};

/// body(std::integral_constant<TripleLoss, loss>).
template <class Body>
GS_DEV void with_loss(TripleLoss loss, const Body& body) {
  switch (loss) {
    case TripleLoss::logistic:
      return body(std::integral_constant<TripleLoss, TripleLoss::logistic>());
    case TripleLoss::margin:
      return body(std::integral_constant<TripleLoss, TripleLoss::margin>());
    case TripleLoss::softmax:
      return body(std::integral_constant<TripleLoss, TripleLoss::softmax>());
  }
}

/// Adds the gradient of l2 / 2 |x|^2 + n3 / 3 |x|^3 and returns the loss.
template <class T, class C>
GS_DEV T regularize(const TripleShape& shape, C x, C& gradient) {
  const T square = squared(x), size = root(square);
  gradient = gradient + (T{} + shape.l2 + shape.n3 * size) * x;
  return square * (shape.l2 / 2 + shape.n3 / 3 * size);
}

}  // namespace gs::kernels::GS_BACKEND
