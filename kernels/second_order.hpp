// Steps of second-order walks (see WalkGraph), right for any biases and bounded by the lengths of two lists.
//
// From node v, come from t, let W be the weight of v's arcs and w that of its arcs to t. A try proposes t with weight
// max(0, return_bias - e) w, which is taken at once, or an arc as in the first order with weight e W, e = max(1,
// out_bias); that one is taken with chance bias / e. So a high return_bias costs nothing, and a neighbour of t need
// only be told from another node where the point drawn falls between their chances. Where no try succeeds, the exact
// draw weighs t, the common neighbours and the rest by walking the shorter of the lists of v and t.
//
// Where v is a hub to t and out_bias < 1, hardly an arc of v leads to a neighbour of t, and tries would fail with
// chance 1 - out_bias. There the biases are a sum instead: an arc as in the first order with weight out_bias W, t with
// max(0, return_bias - out_bias) w, and a neighbour of t with 1 - out_bias times its arcs' weight. The last part is at
// most all that t's few neighbours have; mostly that bound decides, else they are looked up in v's list.
#pragma once

#include "kernels/walk_step.hpp"

namespace gs::kernels::GS_BACKEND {

/// What a proposal is taken by: a point drawn in [0, total).
struct Chances {
  double total;
  double excess;     ///< a point below: back to t, whatever arc is proposed
  double back, low;  ///< a point below takes t; any other node
};

/// Uniform in [0, 1) with 53 bits.
GS_DEV double unit_double(std::uint64_t bits) { return double(bits >> 11) * 0x1p-53; }

inline constexpr double kUnknown = -1;

/// Where a walker stands.
struct Stand {
  RowId node;              ///< v, a row of the graph
  ArcRange arcs;           ///< v's
  RowId from;              ///< t, as targets name it; kNoRow: the walk starts here
  bool has_distinct_arcs;  ///< v, see kDistinctArcs
  Offset from_degree;      ///< t's arcs
  double back_weight;      ///< of v's arcs to t, or kUnknown; read where it matters, see SecondOrder::needs_back_weight

  /// One arc at most, or no t.
  GS_DEV bool is_certain() const { return (from == kNoRow) | (arcs.degree < 2); }
};

inline constexpr Offset kLine = 16;  // rows in a cache line

/// t and the neighbours of v are rows of the same graph. An undirected arc stands in two lists: the shorter is
/// searched.
struct NearHere {
  const ArcDraw& arcs;
  const Stand& at;

  /// Finds x where it is a neighbour of t.
  GS_DEV Search search(RowId x) const {
    const ArcRange own = arcs.arcs(at.from);
    if (arcs.graph.directed || own.degree <= kLine) return {arcs.targets(own), x};
    const ArcRange other = arcs.arcs(x);
    return other.degree < own.degree ? Search(arcs.targets(other), at.from) : Search(arcs.targets(own), x);
  }
  /// What the exact draw reads; the lists once the rows are there.
  GS_DEV void prefetch_rows() const {
    const Span<const RowId> rows = searched_rows();
    for (Offset i = 0; i < rows.size; ++i) prefetch(&arcs.graph.arcs[rows[i]]);
  }
  GS_DEV void prefetch_lists() const {
    const Span<const RowId> rows = searched_rows();
    for (Offset i = 0; i < rows.size; ++i) prefetch(&arcs.graph.targets[arcs.first_arc(rows[i])]);
  }
  /// Those whose own lists are searched by the exact draw, where they are few.
  GS_DEV Span<const RowId> searched_rows() const {
    if (arcs.graph.directed) return {};
    if (at.from_degree > kLine) return at.arcs.degree > kLine ? Span<const RowId>{} : arcs.targets(at.arcs);
    return at.from_degree < at.arcs.degree ? list() : Span<const RowId>{};
  }
  /// Finds v's arcs to x, or arcs of the same weight. Rows are numbered by degree: a hub's loops are among its first.
  GS_DEV Search search_between(RowId x) const {
    if (!arcs.graph.directed)
      if (const ArcRange other = arcs.arcs(x); other.degree < at.arcs.degree) return {arcs.targets(other), at.node};
    Search search(arcs.targets(at.arcs), x);
    if (x == at.node) search.leap();
    return search;
  }
  GS_DEV Span<const RowId> list() const { return arcs.targets(arcs.arcs(at.from)); }
};

/// t's targets came from elsewhere, and v's are rows of another graph.
struct NearListed {
  const ArcDraw& arcs;
  const Stand& at;
  Span<const RowId> targets;

  GS_DEV Search search(RowId x) const { return {targets, x}; }
  GS_DEV Search search_between(RowId x) const { return {arcs.targets(at.arcs), x}; }
  GS_DEV Span<const RowId> list() const { return targets; }
};

template <class Near>
GS_DEV bool is_near(const Near& near, RowId x) {
  Search search = near.search(x);
  search.finish();
  return search.found();
}

struct SecondOrder {
  ArcDraw arcs;
  std::uint64_t seed;
  std::uint32_t epoch;
  double envelope, excess, back, low;  // see above; the last two: chances of t, and of the less likely of other nodes
  double hub_excess, hub_back;         // excess and chance of t where v is a hub to it
  Offset most_at_hub;                  // arcs of t

  SecondOrder(const WalkGraph& graph, const WalkBatch& batch) : arcs{graph}, seed(batch.seed), epoch(batch.epoch) {
    const double to_back = graph.return_bias, to_out = graph.out_bias;
    envelope = to_out > 1 ? to_out : 1;
    excess = to_back > envelope ? to_back - envelope : 0;
    back = to_back < envelope ? to_back / envelope : 1;
    low = (to_out < 1 ? to_out : 1) / envelope;
    hub_excess = to_back > to_out ? to_back - to_out : 0;
    hub_back = to_back < to_out ? to_back / to_out : 1;
    // Tries succeed after 1 / out_bias at most. Directed arcs are looked up in the hub's list alone, which takes
    // longer.
    most_at_hub = graph.directed || to_out >= 1 ? 0 : to_out * double(kLine) > 2 ? Offset(2 / to_out) : kLine;
  }

  static constexpr Chances kCertain{1, 0, 1, 1};

  /// Of draw(): a step's try; the exact draw has numbers from kWalkTries on. Try 0 is the draw of a first-order step.
  GS_DEV static std::uint32_t key(std::uint32_t step, int number) { return step | std::uint32_t(number) << 16; }
  GS_DEV Philox4 random(std::uint64_t walk, std::uint32_t step, int number) const {
    return draw(seed, epoch, walk, key(step, number), Draw::walk);
  }

  /// Uniform. Its low word is that of the arc's draw, too; the arc depends on it in degree of 2^32 draws.
  GS_DEV static std::uint64_t coin_of(const Philox4& random) {
    return std::uint64_t(random.word[3]) << 32 | random.word[0];
  }
  GS_DEV static double point_of(std::uint64_t coin, const Chances& chances) {
    return unit_double(coin) * chances.total;
  }
  /// The arc that is proposed.
  GS_DEV Offset arc_of(const Stand& at, const Philox4& random) const {
    const Offset arc = arcs.pick(at.arcs, random.low());
    return arcs.graph.arc_alias.empty() ? arc : arcs.weigh(at.node, arc, random.word[2]);
  }

  /// Whether v is a hub to t, of few arcs.
  GS_DEV bool is_at_hub(const Stand& at) const {
    return (at.from_degree > 0) & (at.from_degree <= most_at_hub) & (8 * at.from_degree <= at.arcs.degree);
  }
  GS_DEV bool needs_back_weight() const { return excess > 0 || (most_at_hub > 0 && hub_excess > 0); }

  /// The exact draw of short lists is soon done, so that few tries are worth their time.
  GS_DEV int tries(const Stand& at) const {
    if (is_at_hub(at)) return 1;
    const Offset shorter = at.arcs.degree < at.from_degree ? at.arcs.degree : at.from_degree;
    return shorter > kLine || (arcs.graph.directed && low >= 0.125) ? kWalkTries : 2;
  }

  GS_DEV Chances chances(const Stand& at) const {
    if (excess == 0) return {1, 0, back, low};
    const double to_excess = excess * at.back_weight, others = envelope * weight_of_all(at);
    return {to_excess + others, to_excess, to_excess + back * others, to_excess + low * others};
  }

  /// The same at a hub. near_weight: of v's arcs to neighbours of t, but t. Were it more, only `total` would be.
  GS_DEV Chances chances_at_hub(const Stand& at, double near_weight) const {
    const double rest = arcs.graph.out_bias * weight_of_all(at);
    const double to_near = (1 - double(arcs.graph.out_bias)) * near_weight;
    return {rest + to_back(at) + to_near, 0, hub_back * rest, rest};
  }

  /// No less than near_weight: what t's neighbours weigh, of v itself its loops.
  GS_DEV double near_bound(const Stand& at) const {
    if (at.has_distinct_arcs) return double(at.from_degree);
    const Span<const RowId> list = arcs.targets(arcs.arcs(at.from));
    double sum = 0;
    for (Offset i = 0; i < list.size; ++i) {
      const RowId x = list[i];
      if (x == at.from) continue;
      if (x == at.node) {
        sum += weight(between(NearHere{arcs, at}, x));
      } else {
        sum += arcs.graph.weights.empty() ? double(arcs.arcs(x).degree) : arcs.graph.weight_sums[x];
      }
    }
    return sum;
  }

  /// The exact draw at a hub; kNoRow where it is not done after all tries.
  template <class Near>
  GS_DEV RowId choose_at_hub(std::uint64_t walk, std::uint32_t step, const Stand& at, const Near& near) const {
    double near_weight = 0;
    for_each_near(at, near, [&](RowId, const ArcRange& run) {
      near_weight += weight(run);
      return true;
    });
    const Chances chances = chances_at_hub(at, near_weight);
    for (int number = 0; number < kWalkTries; ++number) {
      const Philox4 bits = random(walk, step, number);
      const double point = point_of(coin_of(bits), chances);
      if (point >= chances.low) {
        const double beyond = point - chances.low - to_back(at);
        if (beyond < 0 || near_weight == 0) return at.from;
        Picked picked{beyond / (1 - double(arcs.graph.out_bias))};
        for_each_near(at, near, [&](RowId x, const ArcRange& run) { return pick_run(x, run, picked); });
        return picked.row;
      }
      const RowId x = target(arc_of(at, bits));
      if (x != at.from || point < chances.back) return x;
    }
    return kNoRow;
  }

  /// The exact draw where v has few arcs: a weight for each.
  template <class Near>
  GS_DEV RowId choose_by_arc(std::uint64_t walk, std::uint32_t step, const Stand& at, const Near& near) const {
    std::uint32_t near_arcs = 0;  // a bit each
    const auto biased_weight = [&](int i) {
      const Offset arc = at.arcs.first + i;
      const double bias = target(arc) == at.from ? arcs.graph.return_bias
                          : near_arcs >> i & 1   ? 1
                                                 : arcs.graph.out_bias;
      return bias * weight({arc, 1});
    };
    double total = 0;
    for (int i = 0; i < at.arcs.degree; ++i) {
      const RowId x = target(at.arcs.first + i);
      const bool is_parallel = i > 0 && target(at.arcs.first + i - 1) == x;
      near_arcs |= std::uint32_t(is_parallel ? near_arcs >> (i - 1) & 1 : x != at.from && is_near(near, x)) << i;
      total += biased_weight(i);
    }
    Picked picked{unit_double(random(walk, step, kWalkTries).low()) * total};
    for (int i = 0; i < at.arcs.degree; ++i)
      if (!pick(target(at.arcs.first + i), biased_weight(i), picked)) break;
    return picked.row;
  }

  /// The exact draw.
  template <class Near>
  GS_DEV RowId choose(std::uint64_t walk, std::uint32_t step, const Stand& at, const Near& near) const {
    if (is_at_hub(at))
      if (const RowId x = choose_at_hub(walk, step, at, near); x != kNoRow) return x;
    if (at.arcs.degree <= kLine && at.arcs.degree <= at.from_degree) return choose_by_arc(walk, step, at, near);
    const ArcRange to_from = between(near, at.from);
    double near_weight = 0;
    Offset near_arcs = 0;
    for_each_near(at, near, [&](RowId, const ArcRange& run) {
      near_weight += weight(run), near_arcs += run.degree;
      return true;
    });
    const double back_weight = weight(to_from);
    const Offset rest_arcs = at.arcs.degree - to_from.degree - near_arcs;
    const double rest_weight = rest_arcs == 0 ? 0 : weight_of_rest(at, near, back_weight + near_weight, rest_arcs);

    const Philox4 bits = random(walk, step, kWalkTries);
    const double to_back = arcs.graph.return_bias * back_weight, to_rest = arcs.graph.out_bias * rest_weight;
    const double chosen = unit_double(bits.low()) * (to_back + near_weight + to_rest);
    if (chosen < to_back || near_weight + rest_weight == 0) return at.from;
    const bool is_rest = chosen >= to_back + near_weight && rest_weight > 0;
    if (is_rest)
      if (const RowId x = try_rest(walk, step, at, near); x != kNoRow) return x;
    Picked picked{unit_double(bits.high()) * (is_rest ? rest_weight : near_weight)};
    const auto pick = [&](RowId x, const ArcRange& run) { return pick_run(x, run, picked); };
    if (is_rest) {
      for_each_rest(at, near, pick);
    } else {
      for_each_near(at, near, pick);
    }
    return picked.row;
  }

  GS_DEV double weight(const ArcRange& run) const {
    if (arcs.graph.weights.empty()) return double(run.degree);
    double sum = 0;
    for (Offset i = 0; i < run.degree; ++i) sum += double(arcs.graph.weights[run.first + i]);
    return sum;
  }
  GS_DEV double weight_of_all(const Stand& at) const {
    return arcs.graph.weights.empty() ? double(at.arcs.degree) : arcs.graph.weight_sums[at.node];
  }

 private:
  /// What a walk over weights finds: the row at which `left` is used up, or the last of positive weight.
  struct Picked {
    double left;
    RowId row = kNoRow;
  };

  GS_DEV RowId target(Offset arc) const { return arcs.graph.targets[arc]; }

  GS_DEV double to_back(const Stand& at) const { return hub_excess > 0 ? hub_excess * at.back_weight : 0; }

  template <class Near>
  GS_DEV ArcRange between(const Near& near, RowId x) const {
    Search search = near.search_between(x);
    search.finish();
    return arcs.found(search);
  }

  /// Returns whether to go on.
  GS_DEV bool pick_run(RowId x, const ArcRange& run, Picked& picked) const { return pick(x, weight(run), picked); }
  GS_DEV static bool pick(RowId x, double weight, Picked& picked) {
    if (weight > 0) picked.row = x;
    picked.left -= weight;
    return picked.left >= 0;
  }

  /// Calls visit(x, arcs) for v's neighbours in order, each with the arcs to it, until it returns false.
  template <class Visit>
  GS_DEV void for_each_run(const Stand& at, const Visit& visit) const {
    const Offset end = at.arcs.first + at.arcs.degree;
    for (Offset first = at.arcs.first, last = first; first < end; first = last) {
      const RowId x = target(first);
      while (last < end && target(last) == x) ++last;
      if (!visit(x, ArcRange{first, last - first})) return;
    }
  }

  /// Calls visit(x, arcs) for the neighbours x of t among v's, but t, in order, until it returns false; the arcs are
  /// v's to x or of the same weight.
  template <class Near, class Visit>
  GS_DEV void for_each_near(const Stand& at, const Near& near, const Visit& visit) const {
    const Span<const RowId> list = near.list();
    if (list.size > kLine) {
      merge(at, list, visit);
      return;
    }
    for (Offset i = 0; i < list.size; ++i) {
      const RowId x = list[i];
      if (x == at.from || (i > 0 && list[i - 1] == x)) continue;
      const ArcRange run = between(near, x);
      if (run.degree > 0 && !visit(x, run)) return;
    }
  }

  /// The same by both lists in turn, each skipping what the other lacks.
  template <class Visit>
  GS_DEV void merge(const Stand& at, Span<const RowId> list, const Visit& visit) const {
    const Span<const RowId> own = arcs.targets(at.arcs);
    for (Offset i = 0, j = 0; i < own.size && j < list.size;) {
      const RowId x = own[i];
      if (x < list[j]) {
        i = skip(own, i, list[j]);
      } else if (x > list[j]) {
        j = skip(list, j, x);
      } else {
        const Offset first = i;
        while (i < own.size && own[i] == x) ++i;
        ++j;
        if (x != at.from && !visit(x, ArcRange{at.arcs.first + first, i - first})) return;
        while (j < list.size && list[j] == x) ++j;
      }
    }
  }

  /// The first place after `place` whose row is not below x, by leaps that double.
  GS_DEV static Offset skip(Span<const RowId> rows, Offset place, RowId x) {
    Search search(rows.subspan(place, rows.size - place), x);
    search.leap();
    search.finish();
    return search.at - rows.data;
  }

  /// The same of v's other neighbours, but t.
  template <class Near, class Visit>
  GS_DEV void for_each_rest(const Stand& at, const Near& near, const Visit& visit) const {
    for_each_run(at, [&](RowId x, const ArcRange& run) { return x == at.from || is_near(near, x) || visit(x, run); });
  }

  /// Adds up what a difference of sums would lose.
  template <class Near>
  GS_DEV double weight_of_rest(const Stand& at, const Near& near, double others, Offset rest_arcs) const {
    if (arcs.graph.weights.empty()) return double(rest_arcs);
    constexpr double kLeastShare = 0x1p-20;  // of all: right within 2^-32
    const double all = weight_of_all(at);
    if (all - others > kLeastShare * all) return all - others;
    double sum = 0;
    for_each_rest(at, near, [&](RowId, const ArcRange& run) {
      sum += weight(run);
      return true;
    });
    return sum;
  }

  /// A draw from the rest by the first order's, or kNoRow where that misses too often.
  template <class Near>
  GS_DEV RowId try_rest(std::uint64_t walk, std::uint32_t step, const Stand& at, const Near& near) const {
    for (int number = kWalkTries + 1; number <= 2 * kWalkTries; ++number) {
      const RowId x = target(arc_of(at, random(walk, step, number)));
      if (x != at.from && !is_near(near, x)) return x;
    }
    return kNoRow;
  }
};

}  // namespace gs::kernels::GS_BACKEND
