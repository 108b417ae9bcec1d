// nodes[i] = a random walk: each next node is an arc's target, drawn uniformly or in proportion to weight, of second
// order times a bias.
//
// A unit is a flock of walkers that take each step together. On CUDA a flock is one walker on one thread, and other
// warps hide its two dependent reads a step; on the CPU it is 64 walkers on one thread, whose reads are prefetched one
// stage ahead (draw, pick an arc, follow it). Every draw is keyed by (seed, epoch, walk, step): the order of work and
// the flock's size change nothing, nor does it matter which rank takes the step.
#include "kernels/second_order.hpp"

namespace gs::kernels::GS_BACKEND {

/// One step of a flock along the graph's arcs.
struct FlockStep {
  ArcDraw arcs;
  std::uint64_t seed;
  std::uint32_t epoch;

  /// at[f] <- where walker f goes from node at[f]: kNoRow where no arc leads on. step_of(f): its place in its walk.
  template <class StepOf>
  GS_DEV void operator()(int count, const std::uint64_t* walk, const StepOf& step_of, RowId* at) const {
    std::uint64_t bits[kFlock];
    std::uint32_t coin[kFlock];
#pragma omp simd
    for (int f = 0; f < count; ++f) {
      const Philox4 random = draw(seed, epoch, walk[f], step_of(f), Draw::walk);
      bits[f] = random.low();
      coin[f] = random.word[2];
    }
    Offset arc[kFlock];
    for (int f = 0; f < count; ++f) arc[f] = arcs.pick(at[f], bits[f]);
    if (!arcs.graph.arc_alias.empty())
      for (int f = 0; f < count; ++f) arc[f] = arcs.weigh(at[f], arc[f], coin[f]);
    for (int f = 0; f < count; ++f) at[f] = arc[f] < 0 ? kNoRow : arcs.graph.targets[arc[f]];
  }
};

struct MakeWalks {
  FlockStep move;
  WalkBatch batch;
  Span<RowId> nodes;  // [count, l]

  GS_DEV void operator()(Offset first, int count) const {
    const Span<const PackedArcs> arcs = move.arcs.graph.arcs;
    std::uint64_t walk[kFlock];
    RowId at[kFlock];
    for (int f = 0; f < count; ++f) {
      walk[f] = std::uint64_t(batch.walk(first + f));
      at[f] = start_of_walk(batch.seed, batch.epoch, walk[f], std::uint64_t(arcs.size));
      prefetch(&arcs[at[f]]);
      nodes[(first + f) * batch.length] = at[f];
    }
    for (int step = 1; step < batch.length; ++step) {
      move(
          count, walk, [step](int) { return std::uint32_t(step); }, at);
      for (int f = 0; f < count; ++f) {
        if (at[f] != kNoRow) prefetch(&arcs[at[f]]);
        nodes[(first + f) * batch.length + step] = at[f];
      }
    }
  }
};

/// Walks of second order. Every walker of a flock is at a step and a try of its own, so that the flock stays full
/// however many tries a step takes.
struct MakeSecondOrderWalks {
  SecondOrder order;
  WalkBatch batch;
  Span<RowId> nodes;  // [count, l]

  struct Traveller {
    Stand at;
    std::uint64_t walk;
    RowId* nodes;  // [l]
    int step;      // the place in the walk that it goes to
    int number;    // of the try
    Chances chances;
    Offset arc;  // that is tried, or -1
    std::uint64_t coin;
    RowId next;
    bool goes;
    Search search{{}, kNoRow};
  };

  GS_DEV void operator()(Offset first, int count) const {
    Traveller travellers[kFlock];
    int walking[kFlock], asking[kFlock];
    for (int f = 0; f < count; ++f) {
      Traveller& w = travellers[f];
      w.walk = std::uint64_t(batch.walk(first + f));
      w.nodes = &nodes[(first + f) * batch.length];
      w.at.node = kNoRow, w.step = 0;
      w.next = start_of_walk(batch.seed, batch.epoch, w.walk, std::uint64_t(order.arcs.graph.arcs.size));
      w.goes = true;
      walking[f] = f;
    }
    while (true) {
      int still = 0;
      for (int i = 0; i < count; ++i)
        if (arrive(travellers[walking[i]])) walking[still++] = walking[i];
      count = still;
      if (count == 0) return;
      draw_arcs(travellers, walking, count);
      int asks = 0;
      for (int i = 0; i < count; ++i)
        if (judge(travellers[walking[i]])) asking[asks++] = walking[i];
      for (int i = 0; i < asks; ++i) {
        Traveller& w = travellers[asking[i]];
        w.search = NearHere{order.arcs, w.at}.search(w.next);
      }
      finish(travellers, asking, asks,
             [&](Traveller& w) { w.goes = w.search.found() == order.arcs.graph.takes_near(); });
      for (int i = 0; i < count; ++i) choose(travellers[walking[i]]);
    }
  }

 private:
  /// Writes where the walker goes, if it does. False at the walk's end.
  GS_DEV bool arrive(Traveller& w) const {
    if (!w.goes) return true;
    if (w.next == kNoRow) {
      for (; w.step < batch.length; ++w.step) w.nodes[w.step] = kNoRow;
      return false;
    }
    w.nodes[w.step++] = w.next;
    w.at.from = w.at.node, w.at.node = w.next;
    w.number = 0;
    prefetch(&order.arcs.graph.arcs[w.next]);
    return w.step < batch.length;
  }

  GS_DEV void draw_arcs(Traveller* travellers, const int* walking, int count) const {
    const ArcDraw& arcs = order.arcs;
    begin(travellers, walking, count);
    std::uint64_t walk[kFlock], bits[kFlock];
    std::uint32_t key[kFlock], arc_coin[kFlock];
    for (int i = 0; i < count; ++i) {
      const Traveller& w = travellers[walking[i]];
      walk[i] = w.walk, key[i] = SecondOrder::key(std::uint32_t(w.step), w.number);
    }
    std::uint64_t coin[kFlock];
#pragma omp simd
    for (int i = 0; i < count; ++i) {
      const Philox4 random = draw(batch.seed, batch.epoch, walk[i], key[i], Draw::walk);
      bits[i] = random.low(), arc_coin[i] = random.word[2], coin[i] = SecondOrder::coin_of(random);
    }
    for (int i = 0; i < count; ++i) {
      Traveller& w = travellers[walking[i]];
      w.coin = coin[i];
      w.arc = arcs.pick(w.at.node, bits[i]);
    }
    if (arcs.graph.arc_alias.empty()) return;
    for (int i = 0; i < count; ++i) {
      Traveller& w = travellers[walking[i]];
      w.arc = arcs.weigh(w.at.node, w.arc, arc_coin[i]);
    }
  }

  /// What the tries of a step depend on.
  GS_DEV void begin(Traveller* travellers, const int* walking, int count) const {
    int searching[kFlock], searches = 0;
    for (int i = 0; i < count; ++i) {
      Traveller& w = travellers[walking[i]];
      if (w.number > 0) continue;
      w.at.from_degree = w.at.arcs.degree;
      w.at.arcs = order.arcs.arcs(w.at.node);
      w.chances = SecondOrder::kCertain;
      if (w.at.from == kNoRow || w.at.arcs.degree < 2) continue;
      if (order.excess > 0) {
        w.search = NearHere{order.arcs, w.at}.search_between(w.at.from);
        searching[searches++] = walking[i];
      } else {
        w.chances = order.chances(w.at, {});
      }
    }
    finish(travellers, searching, searches,
           [&](Traveller& w) { w.chances = order.chances(w.at, order.arcs.found(w.search)); });
  }

  /// Every search takes a step in turn; done(w) once w's ends.
  template <class Done>
  GS_DEV static void finish(Traveller* travellers, int* searching, int count, const Done& done) {
    while (count > 0) {
      int still = 0;
      for (int i = 0; i < count; ++i) {
        Traveller& w = travellers[searching[i]];
        if (w.search.left > 0) w.search.step();
        if (w.search.left > 0) {
          searching[still++] = searching[i];
        } else {
          done(w);
        }
      }
      count = still;
    }
  }

  /// Whether the walker goes; true where that takes a test of whether t knows the target, which is then underway.
  GS_DEV bool judge(Traveller& w) const {
    const WalkGraph& graph = order.arcs.graph;
    w.next = w.arc < 0 ? kNoRow : w.coin < w.chances.excess ? w.at.from : graph.targets[w.arc];
    w.goes = w.arc < 0 || w.coin < w.chances.excess || w.coin <= (w.next == w.at.from ? w.chances.back : w.chances.low);
    if (w.goes || w.next == w.at.from) return false;
    if (!NearHere{order.arcs, w.at}.is_short(w.at.from_degree)) prefetch(&graph.arcs[w.next]);
    return true;
  }

  /// After the last try.
  GS_DEV void choose(Traveller& w) const {
    if (w.goes || ++w.number < SecondOrder::tries(w.at)) return;
    w.next = order.choose(w.walk, std::uint32_t(w.step), w.at, NearHere{order.arcs, w.at});
    w.goes = true;
  }
};

struct MoveWalkers {
  FlockStep move;
  Span<const Walker> walkers;
  Span<RowId> next;

  GS_DEV void operator()(Offset first, int count) const {
    std::uint64_t walk[kFlock];
    std::uint32_t step[kFlock];
    RowId at[kFlock];
    for (int f = 0; f < count; ++f) {
      const Walker walker = walkers[first + f];
      walk[f] = std::uint64_t(walker.walk), step[f] = walker.step, at[f] = walker.local_row;
      prefetch(&move.arcs.graph.arcs[at[f]]);
    }
    move(
        count, walk, [&step](int f) { return step[f]; }, at);
    for (int f = 0; f < count; ++f) next[first + f] = at[f];
  }
};

void make_walks(const WalkGraph& graph, const WalkBatch& batch, Span<RowId> nodes, const Exec& exec) {
  GS_EXPECT(nodes.size == batch.count * batch.length, "make_walks: ", nodes.size, " places for ", batch.count,
            " walks of ", batch.length);
  GS_EXPECT(graph.arcs.size > 0 || batch.count == 0, "make_walks: a graph without nodes");
  GS_EXPECT(batch.chosen.empty() || batch.chosen.size == batch.count, "make_walks: ", batch.chosen.size,
            " chosen walks for a batch of ", batch.count);
  GS_EXPECT(batch.length <= 1 << 16, "make_walks: walks of ", batch.length, " nodes: at most 2^16");
  if (graph.second_order()) {
    for_each_flock("make_walks", batch.count, MakeSecondOrderWalks{{graph, batch}, batch, nodes}, exec);
    return;
  }
  for_each_flock("make_walks", batch.count, MakeWalks{{{graph}, batch.seed, batch.epoch}, batch, nodes}, exec);
}

void move_walkers(const WalkGraph& graph, const WalkBatch& batch, Span<const Walker> walkers, Span<RowId> next,
                  const Exec& exec) {
  GS_EXPECT(next.size == walkers.size, "move_walkers: ", next.size, " places for ", walkers.size, " walkers");
  for_each_flock("move_walkers", walkers.size, MoveWalkers{{{graph}, batch.seed, batch.epoch}, walkers, next}, exec);
}

}  // namespace gs::kernels::GS_BACKEND
