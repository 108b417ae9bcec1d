// What kernels read: views of device memory, and the shapes of their work. No owners, no logic of rooms.
#pragma once

#include "graphscale/core.hpp"
#include "kernels/philox.hpp"

namespace gs::kernels {

/// One slot of an alias table (Walker 1977, Vose 1991): keep the slot where coin < threshold, else take the alias.
/// A slot of probability 0 has threshold 0; every positive one at least 1.
struct AliasSlot {
  std::uint32_t threshold = 0;
  std::uint32_t alias = 0;
};

/// A node's arcs in one word: first arc in the low 40 bits, degree above. kManyArcs: the degree stands in `offsets`.
using PackedArcs = std::uint64_t;
inline constexpr std::uint64_t kManyArcs = 0xFFFFFF;
inline constexpr int kFirstArcBits = 40;

/// A graph to walk on, on exec's device.
struct WalkGraph {
  Span<const PackedArcs> arcs;      ///< [n]; degree 0 where no arc can be walked (none, or all of weight 0)
  Span<const Offset> offsets;       ///< [n + 1]
  Span<const RowId> targets;        ///< [arcs]
  Span<const AliasSlot> arc_alias;  ///< [arcs], alias = an arc's place among its node's; empty: uniform
};

/// Walks first .. first + count of an epoch that has `passes` over all nodes; walk i starts at a node of its own in
/// each pass, in a seeded order.
struct WalkBatch {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  Offset first = 0, count = 0;
  int length = 0;  ///< nodes in a walk
};

/// How walks are cut into tiles, and what a tile trains.
struct TileShape {
  int walk_length = 0;     ///< [l]
  int tiles_per_walk = 1;  ///< a tile's centres: ceil(l / tiles_per_walk) nodes of the walk
  int window = 0;
  bool shrink_window = true;
  int shared_negatives = 0;  ///< [s]
  float negatives = 0;       ///< [k] a pair, in expectation
  int dim = 0;

  GS_HD int centres() const { return (walk_length + tiles_per_walk - 1) / tiles_per_walk; }
  GS_HD int contexts() const { return centres() + 2 * window < walk_length ? centres() + 2 * window : walk_length; }
};

/// Loss and size of one tile: loss is a sum over its pairs, each with its negatives' share.
struct TileResult {
  float loss = 0;
  std::uint32_t pairs = 0;
};

/// Running sums over every tile trained.
struct TrainTotals {
  double loss = 0;
  std::uint64_t pairs = 0;
};

/// Skip-gram over a batch of tiles, in place.
struct TileBatch {
  TileShape shape;
  WalkBatch walks;                ///< keys the window draws
  Span<const RowId> nodes;        ///< [walks.count, l]; kNoRow after an early end
  Span<const RowId> negatives;    ///< [walks.count * tiles_per_walk, s]
  Rows<float> centres, contexts;  ///< the two tables, [n, dim], updated in place
  float learning_rate = 0;
  float curvature_limit = 0;  ///< see tile.hpp; 0: steps are never shortened
  Span<TileResult> results;   ///< [walks.count * tiles_per_walk]
};

}  // namespace gs::kernels
