// The contents page of kernels/: every operation once, with what it reads, writes and costs. All queue on exec.stream
// and all pointers are on exec.device.
#pragma once

#include "kernels/views.hpp"

namespace gs::kernels {

struct Ops {
  /// nodes [count, l] <- random walks; kNoRow from where a walk ended early. walks.cu
  /// Moves 16 bytes a step at random (a packed node word, a target) and 4 written in order; 8 more where weighted.
  void (*make_walks)(const WalkGraph& graph, const WalkBatch& batch, Span<RowId> nodes, const Exec& exec);

  /// negatives [tiles, s] <- rows drawn from the alias table, keyed by (seed, epoch, tile). negatives.cu
  void (*draw_negatives)(Span<const AliasSlot> table, const WalkBatch& batch, int tiles_per_walk, int per_tile,
                         Span<RowId> negatives, const Exec& exec);

  /// One skip-gram step a tile, in place; additive writes, tiles in any order (in order with one thread). walk_tiles.cu
  void (*train_tiles)(const TileBatch& batch, const Exec& exec);

  /// The same training, a pair and k fresh negatives at a time, as word2vec does it: the comparator. pairs.cu
  void (*train_pairs)(const TileBatch& batch, Span<const AliasSlot> table, const Exec& exec);

  /// totals[0] += the results' loss and pairs. totals.cu
  void (*add_totals)(Span<const TileResult> results, Span<TrainTotals> totals, const Exec& exec);

  /// rows <- uniform in [-scale, scale), keyed by (seed, row, column); padding stays zero. initialize.cu
  void (*initialize_rows)(Rows<float> rows, float scale, std::uint64_t seed, const Exec& exec);

  /// values[i] <- the sum of kMultiplyAddChains chains that start at values[i] + 0, 1, ... and go x <- x / 2 + 1 for
  /// `rounds` rounds: 2 kMultiplyAddChains rounds FLOP a value, all in registers. limits.cu
  void (*multiply_adds)(Span<float> values, int rounds, const Exec& exec);

  /// table.row(order[i]) <- its negative, no row twice: reads and writes every row once, 8 stride bytes. limits.cu
  void (*negate_rows)(Rows<float> table, Span<const RowId> order, const Exec& exec);
};

inline constexpr int kMultiplyAddChains = 10;  ///< 2 a cycle of latency 4 need 8; 10 and the constants fit 16 registers

/// The operations of exec's device. Throws device where it has none in this build.
const Ops& ops(const Exec& exec);

namespace cpu {
const Ops& ops();
}
namespace cuda {
const Ops& ops();
}
namespace emulated {
const Ops& ops();
}

}  // namespace gs::kernels
