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

GS_DEV bool is_among(Span<const RowId> rows, RowId x) {
  const Offset place = lower_bound_of(rows.data, rows.size, x);
  return place < rows.size && rows[place] == x;
}

/// Uniform in [0, 1) with 53 bits.
GS_DEV double unit_double(std::uint64_t bits) { return double(bits >> 11) * 0x1p-53; }

/// `chance` of 2^64 coins.
GS_DEV std::uint64_t coins(double chance) { return chance >= 1 ? ~std::uint64_t(0) : std::uint64_t(chance * 0x1p64); }

/// A walker's place.
struct Stand {
  RowId node;     ///< v, a row of the graph
  ArcRange arcs;  ///< v's
  RowId from;     ///< t, as targets name it
};

/// t's arcs lie in the same graph, whose rows are its targets.
struct NearHere {
  const ArcDraw& arcs;
  RowId from;

  /// t's arcs to v weigh what v's to t do where the graph is undirected.
  GS_DEV ArcRange arcs_back(const Stand& at) const {
    const ArcRange own = arcs.arcs(from);
    return arcs.graph.directed || at.arcs.degree <= own.degree ? arcs.arcs_to(at.arcs, from)
                                                               : arcs.arcs_to(own, at.node);
  }
  GS_DEV Span<const RowId> list() const { return targets(arcs.arcs(from)); }
  /// An undirected arc stands in both lists: the shorter is searched.
  GS_DEV bool operator()(RowId x) const {
    const ArcRange own = arcs.arcs(from);
    if (arcs.graph.directed) return is_among(targets(own), x);
    const ArcRange other = arcs.arcs(x);
    return other.degree < own.degree ? is_among(targets(other), from) : is_among(targets(own), x);
  }

 private:
  GS_DEV Span<const RowId> targets(const ArcRange& range) const {
    return {&arcs.graph.targets[range.first], range.degree};
  }
};

/// t's sorted targets came from elsewhere.
struct NearListed {
  Span<const RowId> targets;
  GS_DEV Span<const RowId> list() const { return targets; }
  GS_DEV bool operator()(RowId x) const { return is_among(targets, x); }
};

struct SecondOrder {
  ArcDraw arcs;
  std::uint64_t seed;
  std::uint32_t epoch;
  double envelope, excess, back, low;  // see above; the last two: chances of t, and of the less likely of other nodes
  bool takes_near;                     // a coin above `low` takes neighbours of t, else the others

  SecondOrder(const WalkGraph& graph, const WalkBatch& batch) : arcs{graph}, seed(batch.seed), epoch(batch.epoch) {
    const double to_back = graph.return_bias, to_out = graph.out_bias;
    envelope = to_out > 1 ? to_out : 1;
    excess = to_back > envelope ? to_back - envelope : 0;
    back = to_back < envelope ? to_back / envelope : 1;
    low = (to_out < 1 ? to_out : 1) / envelope;
    takes_near = to_out <= 1;
  }

  static constexpr Chances kCertain{0, ~std::uint64_t(0), ~std::uint64_t(0)};

  /// Of draw(): a step's try; the exact draw has numbers from kWalkTries on. Try 0 is the draw of a first-order step.
  GS_DEV static std::uint32_t key(std::uint32_t step, int number) { return step | std::uint32_t(number) << 16; }
  GS_DEV Philox4 random(std::uint64_t walk, std::uint32_t step, int number) const {
    return draw(seed, epoch, walk, key(step, number), Draw::walk);
  }

  /// The coin shares 32 bits with the draw of the arc: those on which the arc does not depend but by 1 in 2^32 /
  /// degree.
  GS_DEV static std::uint64_t coin_of(const Philox4& random) {
    return std::uint64_t(random.word[3]) << 32 | random.word[0];
  }

  /// Few arcs are soon weighed exactly.
  GS_DEV static int tries(const ArcRange& range) {
    return range.degree < kWalkTries / 2 ? int(2 * range.degree) : kWalkTries;
  }

  template <class Near>
  GS_DEV Chances chances(const Stand& at, const Near& near) const {
    if (excess == 0) return {0, coins(back), coins(low)};
    const double to_excess = excess * weight(near.arcs_back(at));
    const double share = to_excess / (to_excess + envelope * weight_of_all(at));
    return {coins(share), coins(share + (1 - share) * back), coins(share + (1 - share) * low)};
  }

  /// The exact draw.
  template <class Near>
  GS_DEV RowId choose(std::uint64_t walk, std::uint32_t step, const Stand& at, const Near& near) const {
    const ArcRange run_back = arcs.arcs_to(at.arcs, at.from);
    double near_weight = 0;
    Offset near_arcs = 0;
    for_each_near(at, near, [&](const ArcRange& run) {
      near_weight += weight(run), near_arcs += run.degree;
      return true;
    });
    const double back_weight = weight(run_back);
    const Offset rest_arcs = at.arcs.degree - run_back.degree - near_arcs;
    const double rest_weight = rest_arcs == 0 ? 0 : weight_of_rest(at, near, back_weight + near_weight, rest_arcs);

    const Philox4 bits = random(walk, step, kWalkTries);
    const double to_back = arcs.graph.return_bias * back_weight, to_rest = arcs.graph.out_bias * rest_weight;
    const double chosen = unit_double(bits.low()) * (to_back + near_weight + to_rest);
    if (chosen < to_back || near_weight + rest_weight == 0) return at.from;
    if (chosen < to_back + near_weight || rest_weight == 0) {
      Picked picked{unit_double(bits.high()) * near_weight};
      for_each_near(at, near, [&](const ArcRange& run) { return pick(run, picked); });
      return picked.row;
    }
    return arcs.graph.weights.empty()
               ? uniform_rest(at, near, run_back, Offset(below(bits.high(), std::uint64_t(rest_arcs))))
               : weighted_rest(walk, step, at, near, unit_double(bits.high()) * rest_weight);
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

  /// Returns whether to go on.
  GS_DEV bool pick(const ArcRange& run, Picked& picked) const {
    const double here = weight(run);
    if (here > 0) picked.row = target(run.first);
    picked.left -= here;
    return picked.left >= 0;
  }

  /// The arcs from `first` on that lead where it does.
  GS_DEV ArcRange run_at(Offset first, Offset end) const {
    Offset last = first + 1;
    while (last < end && target(last) == target(first)) ++last;
    return {first, last - first};
  }

  /// Calls visit(run) for v's arcs to each neighbour of t but t, in order, until it returns false.
  template <class Near, class Visit>
  GS_DEV void for_each_near(const Stand& at, const Near& near, const Visit& visit) const {
    const Span<const RowId> list = near.list();
    const Offset end = at.arcs.first + at.arcs.degree;
    Offset arc = at.arcs.first;
    if (at.arcs.degree <= list.size) {
      while (arc < end) {
        const ArcRange run = run_at(arc, end);
        const RowId x = target(arc);
        if (x != at.from && near(x) && !visit(run)) return;
        arc += run.degree;
      }
      return;
    }
    for (Offset i = 0; i < list.size && arc < end; ++i) {
      const RowId x = list[i];
      if (x == at.from || (i > 0 && list[i - 1] == x)) continue;
      const ArcRange run = arcs.arcs_to({arc, end - arc}, x);
      arc = run.first + run.degree;
      if (run.degree > 0 && !visit(run)) return;
    }
  }

  /// The same of every other arc of v that does not lead to t.
  template <class Near, class Visit>
  GS_DEV void for_each_rest(const Stand& at, const Near& near, const Visit& visit) const {
    const Offset end = at.arcs.first + at.arcs.degree;
    for (Offset arc = at.arcs.first; arc < end;) {
      const ArcRange run = run_at(arc, end);
      const RowId x = target(arc);
      if (x != at.from && !near(x) && !visit(run)) return;
      arc += run.degree;
    }
  }

  /// Adds up what a difference of sums would lose.
  template <class Near>
  GS_DEV double weight_of_rest(const Stand& at, const Near& near, double others, Offset rest_arcs) const {
    if (arcs.graph.weights.empty()) return double(rest_arcs);
    constexpr double kLeastShare = 0x1p-20;  // of all: right within 2^-32
    const double all = weight_of_all(at);
    if (all - others > kLeastShare * all) return all - others;
    double sum = 0;
    for_each_rest(at, near, [&](const ArcRange& run) {
      sum += weight(run);
      return true;
    });
    return sum;
  }

  /// The target of arc `number` of the rest.
  template <class Near>
  GS_DEV RowId uniform_rest(const Stand& at, const Near& near, const ArcRange& run_back, Offset number) const {
    Offset arc = at.arcs.first + number;  // as if there were no arcs back to t
    for_each_near(at, near, [&](const ArcRange& run) {
      const bool is_before = run.first - (run.first > run_back.first ? run_back.degree : 0) <= arc;
      if (is_before) arc += run.degree;
      return is_before;
    });
    return target(arc < run_back.first ? arc : arc + run_back.degree);
  }

  template <class Near>
  GS_DEV RowId weighted_rest(std::uint64_t walk, std::uint32_t step, const Stand& at, const Near& near,
                             double chosen) const {
    for (int number = kWalkTries + 1; number <= 2 * kWalkTries; ++number) {
      const Philox4 bits = random(walk, step, number);
      const RowId x = target(arcs.weigh(at.node, arcs.pick(at.node, bits.low()), bits.word[2]));
      if (x != at.from && !near(x)) return x;
    }
    Picked picked{chosen};
    for_each_rest(at, near, [&](const ArcRange& run) { return pick(run, picked); });
    return picked.row;
  }
};

}  // namespace gs::kernels::GS_BACKEND
