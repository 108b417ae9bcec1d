// nodes[unit] = edges drawn in proportion to their weight, or the next triples of the epoch's order.
//
// A unit of work is a flock of edges or triples: on CUDA one a thread, on the CPU 64 whose reads are prefetched one
// stage ahead.
#include "kernels/walk_step.hpp"

namespace gs::kernels::GS_BACKEND {

struct DrawEdges {
  ArcDraw arcs;
  RowDraw sources;
  WalkBatch batch;
  Span<RowId> nodes;  // [count, l]

  GS_DEV void operator()(Offset first, int count) const {
    const int edges = batch.length / 2;
    std::uint64_t bits[kFlock];
    std::uint32_t source_coin[kFlock], arc_coin[kFlock];
    Offset slot[kFlock], arc[kFlock];
    RowId source[kFlock];
    for (int f = 0; f < count; ++f) {
      const auto unit = std::uint64_t(batch.walk((first + f) / edges));
      const auto edge = std::uint32_t((first + f) % edges);
      const Philox4 of_source = draw(batch.seed, batch.epoch, unit, 2 * edge, Draw::line);
      const Philox4 of_arc = draw(batch.seed, batch.epoch, unit, 2 * edge + 1, Draw::line);
      slot[f] = Offset(below(of_source.low(), std::uint64_t(sources.slots.size)));
      source_coin[f] = of_source.word[2];
      bits[f] = of_arc.low();
      arc_coin[f] = of_arc.word[2];
      prefetch(&sources.slots[slot[f]]);
    }
    for (int f = 0; f < count; ++f) {
      const AliasSlot s = sources.slots[slot[f]];
      source[f] = sources.rows[source_coin[f] < s.threshold ? slot[f] : Offset(s.alias)];
      prefetch(&arcs.graph.arcs[source[f]]);
    }
    for (int f = 0; f < count; ++f) arc[f] = arcs.pick(source[f], bits[f]);
    if (!arcs.graph.arc_alias.empty())
      for (int f = 0; f < count; ++f) arc[f] = arcs.weigh(source[f], arc[f], arc_coin[f]);
    for (int f = 0; f < count; ++f) {
      RowId* edge = &nodes[2 * (first + f)];
      edge[0] = arc[f] < 0 ? kNoRow : source[f];
      edge[1] = arc[f] < 0 ? kNoRow : arcs.graph.targets[arc[f]];
    }
  }
};

struct DrawTriples {
  TripleList triples;
  WalkBatch batch;
  std::uint64_t key;  // of the epoch's order
  Span<RowId> nodes;  // [count, l]

  GS_DEV void operator()(Offset first, int count) const {
    const int width = triples.reciprocal > 0 ? 4 : 3, per_unit = batch.length / width;
    Offset place[kFlock];
    for (int f = 0; f < count; ++f) {
      const Offset number = batch.walk((first + f) / per_unit) * per_unit + (first + f) % per_unit;
      const Offset all = triples.heads.size;
      place[f] = number < all ? Offset(shuffled(std::uint64_t(number), std::uint64_t(all), key)) : kNone;
      if (place[f] == kNone) continue;
      prefetch(&triples.heads[place[f]]), prefetch(&triples.relations[place[f]]), prefetch(&triples.tails[place[f]]);
    }
    for (int f = 0; f < count; ++f) {
      const bool none = place[f] == kNone;
      RowId* triple = &nodes[width * (first + f)];
      triple[0] = none ? kNoRow : triples.heads[place[f]];
      triple[1] = none ? kNoRow : triples.relations[place[f]];
      triple[2] = none ? kNoRow : triples.tails[place[f]];
      if (width == 4) triple[3] = none ? kNoRow : triple[1] + RowId(triples.reciprocal);
    }
  }
};

void draw_edges(const WalkGraph& graph, const RowDraw& sources, const WalkBatch& batch, Span<RowId> nodes,
                const Exec& exec) {
  GS_EXPECT(batch.length > 0 && batch.length % 2 == 0, "draw_edges: units of ", batch.length, " nodes, not of edges");
  GS_EXPECT(nodes.size == batch.count * batch.length, "draw_edges: ", nodes.size, " places for ", batch.count,
            " units of ", batch.length);
  GS_EXPECT(!sources.slots.empty() || batch.count == 0, "draw_edges: no sources");
  for_each_flock("draw_edges", nodes.size / 2, DrawEdges{{graph}, sources, batch, nodes}, exec);
}

void draw_triples(const TripleList& triples, const WalkBatch& batch, Span<RowId> nodes, const Exec& exec) {
  const int width = triples.reciprocal > 0 ? 4 : 3;
  GS_EXPECT(batch.length > 0 && batch.length % width == 0, "draw_triples: units of ", batch.length,
            " nodes, not of triples");
  GS_EXPECT(nodes.size == batch.count * batch.length, "draw_triples: ", nodes.size, " places for ", batch.count,
            " units of ", batch.length);
  const std::uint64_t key = draw(batch.seed, batch.epoch, 0, 0, Draw::order).low();
  for_each_flock("draw_triples", nodes.size / width, DrawTriples{triples, batch, key, nodes}, exec);
}

}  // namespace gs::kernels::GS_BACKEND
