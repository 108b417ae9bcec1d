// Skip-gram a pair at a time: each (centre, context) pair with k negatives of its own, as word2vec's inner loop does it
// (Mikolov et al. 2013). The comparator of the walk tile: same walks, same windows, same expected loss, and the same
// care: products over rows in registers, draws in vectors, rows asked for before they are used.
//
// A unit is a tile's worth of pairs: a thread takes them one after another (CPU), or a team as many at once as it has
// groups of kPairLanes threads (CUDA: a warp a pair). Additive writes without locks: last bits vary unless one thread
// runs the tiles.
//
// A pair reads and writes k + 2 rows of 4 dim bytes, and does 6 dim (k + 1) floating-point operations.
#include "kernels/ops.hpp"
#include "kernels/pairs.hpp"
#if defined(__CUDACC__) || defined(GS_EMULATED)
#include "kernels/pairs_team.hpp"
#else
#include "kernels/pairs_simd.hpp"
#endif

namespace gs::kernels::GS_BACKEND {

#if defined(__CUDACC__) || defined(GS_EMULATED)
using team::PairProducts;
#else
using simd::PairProducts;
#endif

struct TrainPairs {
  TileBatch batch;
  Span<const AliasSlot> table;

  GS_DEV void operator()(const Team& team, Offset index, Offset) const {
    const Tile tile = cut_tile(batch, index);
    TileResult result;
    if (!tile.empty()) {
      PairList pairs(team.scratch, batch.shape);
      pairs.find(team, batch, tile);
      draw_negatives_of(team, index, pairs);
      result = PairProducts(team, batch, pairs).train();
    }
    if (team.rank() == 0) batch.results[index] = result;
  }

 private:
  /// Flocks of draws, two negatives a draw: 32 bits name a slot, 32 are its coin. A negative that is the pair's centre
  /// or context is left out.
  GS_DEV void draw_negatives_of(const Team& team, Offset index, PairList& pairs) const {
    const int negatives = pairs.width - 1, count = pairs.count * negatives;
    const auto tile = std::uint64_t(batch.walks.tile(index, batch.shape.tiles_per_walk));
    for (int first = 2 * kFlock * team.rank(); first < count; first += 2 * kFlock * team.size()) {
      std::uint32_t slot[2 * kFlock], coin[2 * kFlock];
#pragma omp simd
      for (int f = 0; f < kFlock; ++f) {
        const Philox4 random =
            draw(batch.walks.seed, batch.walks.epoch, tile, std::uint32_t(first / 2 + f), Draw::negative);
        slot[2 * f] = std::uint32_t(std::uint64_t(random.word[0]) * std::uint64_t(table.size) >> 32);
        slot[2 * f + 1] = std::uint32_t(std::uint64_t(random.word[1]) * std::uint64_t(table.size) >> 32);
        coin[2 * f] = random.word[2], coin[2 * f + 1] = random.word[3];
      }
      for (int f = 0; f < 2 * kFlock; ++f) prefetch(&table[slot[f]]);
      for (int f = 0; f < 2 * kFlock && first + f < count; ++f) {
        const AliasSlot s = table[slot[f]];
        const RowId row = coin[f] < s.threshold ? slot[f] : s.alias;
        RowId* others = pairs.rows + (first + f) / negatives * pairs.width;
        const bool known = row == others[0] || row == pairs.centres[(first + f) / negatives];
        others[1 + (first + f) % negatives] = known ? kNoRow : row;
      }
    }
    team.sync();
  }
};

void train_pairs(const TileBatch& batch, Span<const AliasSlot> table, const Exec& exec) {
  const TileShape& shape = batch.shape;
  const Offset tiles = batch.walks.count * shape.tiles_per_walk;
  GS_EXPECT(batch.results.size == tiles, "train_pairs: ", batch.results.size, " results for ", tiles, " tiles");
  GS_EXPECT(batch.gradients.empty(), "train_pairs trains in place: it sums no gradients");
  GS_EXPECT(shape.negatives >= 1 && shape.negatives == float(int(shape.negatives)), "train_pairs: ", shape.negatives,
            " negatives a pair; a whole number from 1 on is possible");
  const Offset scratch_bytes = PairList::bytes(shape) + PairProducts::scratch_bytes(shape);
  GS_EXPECT(scratch_bytes <= scratch_limit(exec), "train_pairs: the pairs of a tile need ", scratch_bytes,
            " bytes of scratch and ", scratch_limit(exec), " are possible; lower window or negatives");
  for_each_team("train_pairs", tiles, scratch_bytes, TrainPairs{batch, table}, exec);
}

}  // namespace gs::kernels::GS_BACKEND
