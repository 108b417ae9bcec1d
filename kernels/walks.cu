// nodes[i] = a first-order random walk: each next node is an arc's target, drawn uniformly or in proportion to weight.
//
// A unit is a flock of walkers that take each step together. On CUDA a flock is one walker on one thread, and other
// warps hide its two dependent reads a step; on the CPU it is 64 walkers on one thread, whose reads are prefetched one
// stage ahead (draw, pick an arc, follow it). Every draw is keyed by (seed, epoch, walk, step): the order of work and
// the flock's size change nothing, nor does it matter which rank takes the step.
#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

/// One step of a flock along the graph's arcs.
struct FlockStep {
  WalkGraph graph;
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
    for (int f = 0; f < count; ++f) arc[f] = pick_arc(at[f], bits[f]);
    if (!graph.arc_alias.empty())
      for (int f = 0; f < count; ++f) arc[f] = weigh_arc(at[f], arc[f], coin[f]);
    for (int f = 0; f < count; ++f) at[f] = arc[f] < 0 ? kNoRow : graph.targets[arc[f]];
  }

 private:
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

struct MakeWalks {
  FlockStep move;
  WalkBatch batch;
  Span<RowId> nodes;  // [count, l]

  GS_DEV void operator()(Offset first, int count) const {
    const Span<const PackedArcs> arcs = move.graph.arcs;
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
      prefetch(&move.graph.arcs[at[f]]);
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
  for_each_flock("make_walks", batch.count, MakeWalks{{graph, batch.seed, batch.epoch}, batch, nodes}, exec);
}

void move_walkers(const WalkGraph& graph, const WalkBatch& batch, Span<const Walker> walkers, Span<RowId> next,
                  const Exec& exec) {
  GS_EXPECT(next.size == walkers.size, "move_walkers: ", next.size, " places for ", walkers.size, " walkers");
  for_each_flock("move_walkers", walkers.size, MoveWalkers{{graph, batch.seed, batch.epoch}, walkers, next}, exec);
}

}  // namespace gs::kernels::GS_BACKEND
