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
/// however many tries a step takes. Walkers are sorted into lists by what they wait for; on the CPU a branch that falls
/// either way costs more than a read.
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
    Offset arc;    // that is tried, or -1
    std::uint64_t coin;
    RowId next;
    bool is_by_arc;  // goes to next
    Search search{{}, kNoRow};
  };

  /// Some of a flock's places. A flock of one has place 0 alone, and no array of it is indexed by what nvcc cannot
  /// know: it stays in registers.
  struct Places {
    int place[kFlock];
    int count = 0;
    GS_DEV int operator[](int i) const { return kFlock == 1 ? 0 : place[i]; }
    GS_DEV void add_if(bool is_in, int f) { place[kFlock == 1 ? 0 : count] = f, count += is_in; }
  };

  GS_DEV void operator()(Offset first, int count) const {
    Traveller travellers[kFlock];
    Places walking;
    for (int f = 0; f < count; ++f) {
      start(travellers[f], first + f);
      walking.add_if(batch.length > 1, f);
    }
    while (walking.count > 0) {
      Places at_hub, others, going, asking, failed, choosing, decided;
      propose(travellers, walking, at_hub, others);
      judge(travellers, others, going, asking, failed);
      judge_at_hub(travellers, at_hub, going, choosing);
      start_asking(travellers, asking);
      walking.count = 0;
      arrive(travellers, going, walking);  // while lists are on their way
      finish_asking(travellers, asking, decided, failed);
      retry(travellers, failed, walking, choosing);
      choose(travellers, choosing, decided);
      arrive(travellers, decided, walking);
    }
  }

 private:
  GS_DEV void start(Traveller& w, Offset i) const {
    w.walk = std::uint64_t(batch.walk(i));
    const RowId row = start_of_walk(batch.seed, batch.epoch, w.walk, std::uint64_t(order.arcs.graph.arcs.size));
    w.at = {row, {0, 0}, kNoRow, false, 0, kUnknown};
    w.nodes = &nodes[i * batch.length];
    w.nodes[0] = row;
    w.step = 1, w.number = 0;
    prefetch(&order.arcs.graph.arcs[row]);
  }

  /// Draws an arc for everyone, and sorts them by how it is judged.
  GS_DEV void propose(Traveller* travellers, const Places& walking, Places& at_hub, Places& others) const {
    const ArcDraw& arcs = order.arcs;
    std::uint64_t walk[kFlock], bits[kFlock], coin[kFlock];
    std::uint32_t key[kFlock], arc_coin[kFlock];
    for (int i = 0; i < walking.count; ++i) {
      const Traveller& w = travellers[walking[i]];
      walk[i] = w.walk, key[i] = SecondOrder::key(std::uint32_t(w.step), w.number);
    }
    for (int i = 0; i < walking.count; ++i) {
      const Philox4 random = draw(batch.seed, batch.epoch, walk[i], key[i], Draw::walk);
      bits[i] = random.low(), arc_coin[i] = random.word[2], coin[i] = SecondOrder::coin_of(random);
    }
    Places searching;
    for (int i = 0; i < walking.count; ++i) {
      const int f = walking[i];
      Traveller& w = travellers[f];
      if (w.number == 0) {
        w.at.from_degree = w.at.arcs.degree, w.at.arcs = arcs.arcs(w.at.node);
        w.at.has_distinct_arcs = arcs.has_distinct_arcs(w.at.node);
      }
      if (order.needs_back_weight() && w.at.back_weight == kUnknown) {
        if (w.at.is_certain()) {
          w.at.back_weight = 0;
        } else {
          w.search = NearHere{arcs, w.at}.search_between(w.at.from);
          searching.add_if(true, f);
        }
      }
      w.coin = coin[i];
      w.arc = arcs.pick(w.at.arcs, bits[i]);
      const bool is_at_hub = order.is_at_hub(w.at);
      at_hub.add_if(is_at_hub, f), others.add_if(!is_at_hub, f);
    }
    for (int i = 0; i < at_hub.count; ++i)
      if (const Stand& at = travellers[at_hub[i]].at; !at.has_distinct_arcs) NearHere{arcs, at}.prefetch_rows();
    if (!arcs.graph.arc_alias.empty())
      for (int i = 0; i < walking.count; ++i) {
        Traveller& w = travellers[walking[i]];
        w.arc = arcs.weigh(w.at.node, w.arc, arc_coin[i]);
        if (order.needs_back_weight() && w.arc >= 0) prefetch(&arcs.graph.weights[w.arc]);
      }
    finish(travellers, searching,
           [&](int f) { travellers[f].at.back_weight = order.weight(order.arcs.found(travellers[f].search)); });
  }

  /// Every search takes a step in turn; done(f) once f's ends.
  template <class Done>
  GS_DEV static void finish(Traveller* travellers, Places& searching, const Done& done) {
    while (searching.count > 0) {
      Places still;
      for (int i = 0; i < searching.count; ++i) {
        Traveller& w = travellers[searching[i]];
        if (w.search.left > 0) w.search.step();
        if (w.search.left == 0) done(searching[i]);
        still.add_if(w.search.left > 0, searching[i]);
      }
      searching = still;
    }
  }

  /// Who goes, and where that takes a test of whether t knows the target.
  GS_DEV void judge(Traveller* travellers, const Places& others, Places& going, Places& asking, Places& failed) const {
    const WalkGraph& graph = order.arcs.graph;
    for (int i = 0; i < others.count; ++i) {
      const int f = others[i];
      Traveller& w = travellers[f];
      if (w.arc < 0) {
        w.next = kNoRow;
        going.add_if(true, f);
        continue;
      }
      const Chances chances = order.chances(w.at);
      const double point = SecondOrder::point_of(w.coin, chances);
      const bool returns = point < chances.excess;
      const RowId proposed = graph.targets[w.arc];
      w.next = proposed ^ ((proposed ^ w.at.from) & -RowId(returns));  // no branch
      w.is_by_arc = !returns;
      prefetch(&graph.arcs[w.next]);
      const bool is_back = w.next == w.at.from;
      const bool goes = w.at.is_certain() | (is_back & (point < chances.back)) | (!is_back & (point < chances.low));
      going.add_if(goes, f), asking.add_if(!goes & !is_back, f), failed.add_if(!goes & is_back, f);
    }
  }

  /// The same at a hub: who goes however much leads to neighbours of t.
  GS_DEV void judge_at_hub(Traveller* travellers, const Places& at_hub, Places& going, Places& choosing) const {
    for (int i = 0; i < at_hub.count; ++i) {
      const int f = at_hub[i];
      Traveller& w = travellers[f];
      const Chances chances = order.chances_at_hub(w.at, order.near_bound(w.at));
      w.next = order.arcs.graph.targets[w.arc];
      w.is_by_arc = true;
      prefetch(&order.arcs.graph.arcs[w.next]);
      const bool goes = SecondOrder::point_of(w.coin, chances) < (w.next == w.at.from ? chances.back : chances.low);
      going.add_if(goes, f), choosing.add_if(!goes, f);
    }
  }

  GS_DEV void start_asking(Traveller* travellers, const Places& asking) const {
    for (int i = 0; i < asking.count; ++i) {
      Traveller& w = travellers[asking[i]];
      w.search = NearHere{order.arcs, w.at}.search(w.next);
    }
  }

  /// Whether t knows the targets.
  GS_DEV void finish_asking(Traveller* travellers, const Places& asking, Places& decided, Places& failed) const {
    const auto decide = [&](bool is_near, int f) {
      const bool goes = is_near == order.arcs.graph.takes_near();
      decided.add_if(goes, f), failed.add_if(!goes, f);
    };
    Places searching;
    for (int i = 0; i < asking.count; ++i) {
      const Search& search = travellers[asking[i]].search;
      if (search.left > kLine) {
        searching.add_if(true, asking[i]);
      } else {
        decide(search.is_among_left(), asking[i]);
      }
    }
    finish(travellers, searching, [&](int f) { decide(travellers[f].search.found(), f); });
  }

  /// Draws exactly after the last try.
  GS_DEV void retry(Traveller* travellers, const Places& failed, Places& walking, Places& choosing) const {
    for (int i = 0; i < failed.count; ++i) {
      Traveller& w = travellers[failed[i]];
      const bool is_last = ++w.number >= order.tries(w.at);
      walking.add_if(!is_last, failed[i]), choosing.add_if(is_last, failed[i]);
    }
  }

  GS_DEV void choose(Traveller* travellers, const Places& choosing, Places& decided) const {
    for (int i = 0; i < choosing.count; ++i) NearHere{order.arcs, travellers[choosing[i]].at}.prefetch_rows();
    for (int i = 0; i < choosing.count; ++i) NearHere{order.arcs, travellers[choosing[i]].at}.prefetch_lists();
    for (int i = 0; i < choosing.count; ++i) {
      Traveller& w = travellers[choosing[i]];
      w.next = order.choose(w.walk, std::uint32_t(w.step), w.at, NearHere{order.arcs, w.at});
      w.is_by_arc = false;
      if (w.next != kNoRow) prefetch(&order.arcs.graph.arcs[w.next]);
      decided.add_if(true, choosing[i]);
    }
  }

  GS_DEV void arrive(Traveller* travellers, const Places& going, Places& walking) const {
    for (int i = 0; i < going.count; ++i) walking.add_if(arrive(travellers[going[i]]), going[i]);
  }

  /// Writes where the walker goes. False at the walk's end.
  GS_DEV bool arrive(Traveller& w) const {
    if (w.next == kNoRow) {
      for (; w.step < batch.length; ++w.step) w.nodes[w.step] = kNoRow;
      return false;
    }
    w.nodes[w.step++] = w.next;
    if (order.needs_back_weight()) w.at.back_weight = back_weight(w);
    w.at.from = w.at.node, w.at.node = w.next;
    w.number = 0;
    if (!order.arcs.graph.weight_sums.empty()) prefetch(&order.arcs.graph.weight_sums[w.next]);
    return w.step < batch.length;
  }

  /// An undirected arc weighs the same on the way back.
  GS_DEV double back_weight(const Traveller& w) const {
    if (w.at.has_distinct_arcs) return 1;
    if (order.arcs.graph.directed) return kUnknown;
    const double of_arc = order.weight(order.arcs.beside(w.at.arcs, w.arc));
    return w.is_by_arc ? of_arc : w.next == w.at.from ? w.at.back_weight : kUnknown;
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
