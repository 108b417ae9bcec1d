// nodes[i] = a first-order random walk: each next node is an arc's target, drawn uniformly or in proportion to weight.
//
// A unit is a flock of walkers that take each step together. On CUDA a flock is one walker on one thread, and other
// warps hide its two dependent reads a step; on the CPU it is 64 walkers on one thread, whose reads are prefetched one
// stage ahead (draw, pick an arc, follow it). Every draw is keyed by (seed, epoch, walk, step): the order of work and
// the flock's size change nothing.
#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

/// Where walk `walk` of the epoch starts: every node once in each pass of n walks, in a seeded order.
GS_DEV RowId start_of_walk(const WalkBatch& batch, std::uint64_t walk, std::uint64_t nodes) {
  const std::uint64_t key = draw(batch.seed, batch.epoch, walk / nodes, 0, Draw::order).low();
  return RowId(shuffled(walk % nodes, nodes, key));
}

struct MakeWalks {
  WalkGraph graph;
  WalkBatch batch;
  Span<RowId> nodes;  // [count, l]

  GS_DEV void operator()(Offset first, int count) const {
    RowId at[kFlock];
    Offset arc[kFlock];
    for (int f = 0; f < count; ++f) {
      at[f] = start_of_walk(batch, std::uint64_t(batch.first + first + f), std::uint64_t(graph.arcs.size));
      prefetch(&graph.arcs[at[f]]);
      nodes[(first + f) * batch.length] = at[f];
    }
    for (int step = 1; step < batch.length; ++step) {
      std::uint64_t bits[kFlock];
      std::uint32_t coin[kFlock];
      draw_flock(first, count, step, bits, coin);
      for (int f = 0; f < count; ++f) arc[f] = pick_arc(at[f], bits[f]);
      if (!graph.arc_alias.empty())
        for (int f = 0; f < count; ++f) arc[f] = weigh_arc(at[f], arc[f], coin[f]);
      for (int f = 0; f < count; ++f) {
        at[f] = arc[f] < 0 ? kNoRow : graph.targets[arc[f]];
        if (at[f] != kNoRow) prefetch(&graph.arcs[at[f]]);
        nodes[(first + f) * batch.length + step] = at[f];
      }
    }
  }

 private:
  GS_DEV void draw_flock(Offset first, int count, int step, std::uint64_t* bits, std::uint32_t* coin) const {
#pragma omp simd
    for (int f = 0; f < count; ++f) {
      const Philox4 random =
          draw(batch.seed, batch.epoch, std::uint64_t(batch.first + first + f), std::uint32_t(step), Draw::walk);
      bits[f] = random.low();
      coin[f] = random.word[2];
    }
  }

  GS_DEV Offset first_arc(RowId node) const {
    return Offset(graph.arcs[node] & ((std::uint64_t(1) << kFirstArcBits) - 1));
  }

  /// A uniform arc of `node`, or -1 where it has none; what it leads to is on its way from memory.
  GS_DEV Offset pick_arc(RowId node, std::uint64_t bits) const {
    if (node == kNoRow) return -1;
    std::uint64_t degree = graph.arcs[node] >> kFirstArcBits;
    if (degree == 0) return -1;
    if (degree == kManyArcs) degree = std::uint64_t(graph.offsets[node + 1] - graph.offsets[node]);
    const Offset arc = first_arc(node) + Offset(below(bits, degree));
    if (graph.arc_alias.empty()) {
      prefetch(&graph.targets[arc]);
    } else {
      prefetch(&graph.arc_alias[arc]);
    }
    return arc;
  }

  GS_DEV Offset weigh_arc(RowId node, Offset arc, std::uint32_t coin) const {
    if (arc < 0) return arc;
    const AliasSlot slot = graph.arc_alias[arc];
    if (coin >= slot.threshold) arc = first_arc(node) + slot.alias;
    prefetch(&graph.targets[arc]);
    return arc;
  }
};

void make_walks(const WalkGraph& graph, const WalkBatch& batch, Span<RowId> nodes, const Exec& exec) {
  GS_EXPECT(nodes.size == batch.count * batch.length, "make_walks: ", nodes.size, " places for ", batch.count,
            " walks of ", batch.length);
  GS_EXPECT(graph.arcs.size > 0 || batch.count == 0, "make_walks: a graph without nodes");
  for_each_flock("make_walks", batch.count, MakeWalks{graph, batch, nodes}, exec);
}

void move_walkers(const WalkGraph&, const WalkBatch&, Span<const Walker>, Span<RowId>, const Exec&) {
  throw Error(Fault::internal, "move_walkers");
}

}  // namespace gs::kernels::GS_BACKEND
