// negatives[tile] = s rows drawn from an alias table, keyed by (seed, epoch, tile, place).
//
// A unit is a flock of draws: on CUDA one draw a thread, on the CPU 64 whose table slots are prefetched before use.
#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

struct DrawNegatives {
  RowDraw table;
  WalkBatch batch;
  int tiles_per_walk, per_tile;
  Span<RowId> negatives;  // [tiles, s]

  GS_DEV void operator()(Offset first, int count) const {
    std::uint64_t slot[kFlock];
    std::uint32_t coin[kFlock];
    for (int f = 0; f < count; ++f) {
      const Offset tile = batch.tile((first + f) / per_tile, tiles_per_walk);
      const Philox4 random =
          draw(batch.seed, batch.epoch, std::uint64_t(tile), std::uint32_t((first + f) % per_tile), Draw::negative);
      slot[f] = below(random.low(), std::uint64_t(table.slots.size));
      coin[f] = random.word[2];
      prefetch(&table.slots[Offset(slot[f])]);
    }
    for (int f = 0; f < count; ++f) {
      const AliasSlot s = table.slots[Offset(slot[f])];
      RowId row = table.rows[coin[f] < s.threshold ? Offset(slot[f]) : Offset(s.alias)];
      if (table.pool_share > 0) row = from_pool(first + f, row);
      negatives[first + f] = row;
    }
  }

 private:
  /// A row of the pool, or `otherwise`.
  GS_DEV RowId from_pool(Offset place, RowId otherwise) const {
    const Offset tile = batch.tile(place / per_tile, tiles_per_walk);
    const Philox4 random =
        draw(batch.seed, batch.epoch, std::uint64_t(tile), std::uint32_t(place % per_tile), Draw::in_batch);
    if (table.pool.empty() || double(random.word[2]) >= double(table.pool_share) * 4294967296.0) return otherwise;
    const int width = table.pool_width;
    const Offset ends = width > 0 ? table.pool.size / width * 2 : table.pool.size;
    Offset at = Offset(below(random.low(), std::uint64_t(ends)));
    if (width > 0) at = at / 2 * width + at % 2 * 2;  // a head, or a tail
    return table.pool[at] == kNoRow ? otherwise : table.pool[at];
  }
};

void draw_negatives(const RowDraw& table, const WalkBatch& batch, int tiles_per_walk, int per_tile,
                    Span<RowId> negatives, const Exec& exec) {
  GS_EXPECT(negatives.size == batch.count * tiles_per_walk * per_tile, "draw_negatives: ", negatives.size,
            " places for ", batch.count * tiles_per_walk, " tiles of ", per_tile);
  for_each_flock("draw_negatives", negatives.size, DrawNegatives{table, batch, tiles_per_walk, per_tile, negatives},
                 exec);
}

}  // namespace gs::kernels::GS_BACKEND
