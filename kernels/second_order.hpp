// Steps of second-order walks (see WalkGraph), right for any biases and bounded by the lengths of two lists.
//
// From node v, come from t, let W be the weight of v's arcs and w that of its arcs to t. A try proposes t with weight
// max(0, return_bias - e) w, which is taken at once, or an arc as in the first order with weight e W, e = max(1,
// out_bias); that one is taken with chance bias / e. So a high return_bias costs nothing, and a neighbour of t need
// only be told from another node where the coin falls between their chances. Where no try succeeds, the exact draw
// weighs t, the common neighbours and the rest by walking the shorter of the lists of v and t.
#pragma once

#include "kernels/walk_step.hpp"

namespace gs::kernels::GS_BACKEND {

/// Chances of a proposal, as 64-bit coins.
struct Chances {
  std::uint64_t excess;     ///< a coin below: back to t, whatever arc is proposed
  std::uint64_t back, low;  ///< a coin up to here takes t; any other node
};

/// Uniform in [0, 1) with 53 bits.
GS_DEV double unit_double(std::uint64_t bits) { return double(bits >> 11) * 0x1p-53; }

/// `chance` of 2^64 coins.
GS_DEV std::uint64_t coins(double chance) { return chance >= 1 ? ~std::uint64_t(0) : std::uint64_t(chance * 0x1p64); }

/// Where a walker stands.
struct Stand {
  RowId node;          ///< v, a row of the graph
  ArcRange arcs;       ///< v's
  RowId from;          ///< t, as targets name it; kNoRow: the walk starts here
  Offset from_degree;  ///< t's arcs
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
    if (is_short(own.degree)) return {arcs.targets(own), x};
    const ArcRange other = arcs.arcs(x);
    return other.degree < own.degree ? Search(arcs.targets(other), at.from) : Search(arcs.targets(own), x);
  }
  /// Whether to search t's list whatever x's length.
  GS_DEV bool is_short(Offset degree) const { return arcs.graph.directed || degree <= kLine; }
  GS_DEV void prefetch_row(RowId x) const { prefetch(&arcs.graph.arcs[x]); }
  /// Finds v's arcs to x, or arcs of the same weight.
  GS_DEV Search search_between(RowId x) const {
    if (!arcs.graph.directed)
      if (const ArcRange other = arcs.arcs(x); other.degree < at.arcs.degree) return {arcs.targets(other), at.node};
    return {arcs.targets(at.arcs), x};
  }
  GS_DEV Span<const RowId> list() const { return arcs.targets(arcs.arcs(at.from)); }
};

/// t's targets came from elsewhere, and v's are rows of another graph.
struct NearListed {
  const ArcDraw& arcs;
  const Stand& at;
  Span<const RowId> targets;

  GS_DEV Search search(RowId x) const { return {targets, x}; }
  GS_DEV void prefetch_row(RowId) const {}
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

  SecondOrder(const WalkGraph& graph, const WalkBatch& batch) : arcs{graph}, seed(batch.seed), epoch(batch.epoch) {
    const double to_back = graph.return_bias, to_out = graph.out_bias;
    envelope = to_out > 1 ? to_out : 1;
    excess = to_back > envelope ? to_back - envelope : 0;
    back = to_back < envelope ? to_back / envelope : 1;
    low = (to_out < 1 ? to_out : 1) / envelope;
  }

  static constexpr Chances kCertain{0, ~std::uint64_t(0), ~std::uint64_t(0)};

  /// Of draw(): a step's try; the exact draw has numbers from kWalkTries on. Try 0 is the draw of a first-order step.
  GS_DEV static std::uint32_t key(std::uint32_t step, int number) { return step | std::uint32_t(number) << 16; }
  GS_DEV Philox4 random(std::uint64_t walk, std::uint32_t step, int number) const {
    return draw(seed, epoch, walk, key(step, number), Draw::walk);
  }

  /// The coin's low word is that of the arc's draw, too; the arc depends on it in degree of 2^32 draws.
  GS_DEV static std::uint64_t coin_of(const Philox4& random) {
    return std::uint64_t(random.word[3]) << 32 | random.word[0];
  }

  /// The exact draw of short lists is soon done, so that few tries are worth their time.
  GS_DEV static int tries(const Stand& at) {
    const Offset shorter = at.arcs.degree < at.from_degree ? at.arcs.degree : at.from_degree;
    const Offset tries = 8 + 2 * shorter;
    return tries < kWalkTries ? int(tries) : kWalkTries;
  }

  /// between: v's arcs to t; not read where `excess` is 0.
  GS_DEV Chances chances(const Stand& at, const ArcRange& between) const {
    if (excess == 0) return {0, coins(back), coins(low)};
    const double to_excess = excess * weight(between);
    const double share = to_excess / (to_excess + envelope * weight_of_all(at));
    return {coins(share), coins(share + (1 - share) * back), coins(share + (1 - share) * low)};
  }

  /// The exact draw.
  template <class Near>
  GS_DEV RowId choose(std::uint64_t walk, std::uint32_t step, const Stand& at, const Near& near) const {
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

 private:
  /// What a walk over weights finds: the row at which `left` is used up, or the last of positive weight.
  struct Picked {
    double left;
    RowId row = kNoRow;
  };

  GS_DEV RowId target(Offset arc) const { return arcs.graph.targets[arc]; }

  GS_DEV double weight(const ArcRange& run) const {
    if (arcs.graph.weights.empty()) return double(run.degree);
    double sum = 0;
    for (Offset i = 0; i < run.degree; ++i) sum += double(arcs.graph.weights[run.first + i]);
    return sum;
  }
  GS_DEV double weight_of_all(const Stand& at) const {
    return arcs.graph.weights.empty() ? double(at.arcs.degree) : arcs.graph.weight_sums[at.node];
  }

  template <class Near>
  GS_DEV ArcRange between(const Near& near, RowId x) const {
    Search search = near.search_between(x);
    search.finish();
    return arcs.found(search);
  }

  /// Returns whether to go on.
  GS_DEV bool pick_run(RowId x, const ArcRange& run, Picked& picked) const {
    const double here = weight(run);
    if (here > 0) picked.row = x;
    picked.left -= here;
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
    if (at.arcs.degree > kLine && list.size > kLine) {
      merge(at, list, visit);
    } else if (at.arcs.degree <= list.size) {
      for (Offset i = 0; i < at.arcs.degree; ++i) near.prefetch_row(target(at.arcs.first + i));
      for_each_run(at,
                   [&](RowId x, const ArcRange& run) { return x == at.from || !is_near(near, x) || visit(x, run); });
    } else {
      for (Offset i = 0; i < list.size; ++i) near.prefetch_row(list[i]);
      for (Offset i = 0; i < list.size; ++i) {
        const RowId x = list[i];
        if (x == at.from || (i > 0 && list[i - 1] == x)) continue;
        const ArcRange run = between(near, x);
        if (run.degree > 0 && !visit(x, run)) return;
      }
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
    Offset leap = 1;
    while (place + leap < rows.size && rows[place + leap] < x) place += leap, leap *= 2;
    Search search(rows.subspan(place, place + leap < rows.size ? leap : rows.size - place), x);
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
      const Philox4 bits = random(walk, step, number);
      Offset arc = arcs.pick(at.node, bits.low());
      if (!arcs.graph.arc_alias.empty()) arc = arcs.weigh(at.node, arc, bits.word[2]);
      const RowId x = target(arc);
      if (x != at.from && !is_near(near, x)) return x;
    }
    return kNoRow;
  }
};

}  // namespace gs::kernels::GS_BACKEND
