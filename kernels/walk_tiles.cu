// The walk tile: skip-gram with shared negatives over whole walks (the loss is in tile.hpp), in place, or with the
// loss's gradients summed beside the tables.
//
// A unit is a tile: a block of threads with its rows in shared memory (CUDA), or one thread that works on the rows
// where they stand while the next tile's rows are on their way from memory (CPU). Tiles run in any order and add their
// steps without locks (Niu et al., "Hogwild!", 2011): last bits vary unless one thread runs them in order, and CPU
// threads that meet at a row lose an add now and then.
//
// A tile of c centres, x contexts, s negatives reads and writes (c + x + s) rows of 4 dim bytes, and does
// 6 dim (pairs + c s) useful floating-point operations.
#include "kernels/ops.hpp"
#include "kernels/tile.hpp"
#if defined(__CUDACC__) || defined(GS_EMULATED)
#include "kernels/tile_team.hpp"
#else
#include "kernels/tile_simd.hpp"
#endif

namespace gs::kernels::GS_BACKEND {

#if defined(__CUDACC__) || defined(GS_EMULATED)
using team::TileProducts;
#else
using simd::TileProducts;
#endif

struct TrainTiles {
  TileBatch batch;
  Offset scratch_bytes;

  GS_DEV void operator()(const Team& team, Offset index, Offset next) const {
    const Tile tile = cut_tile(batch, index);
    TileResult result;
    if (!tile.empty()) result = TileProducts(team, batch, tile, scratch_bytes).train(next);
    if (team.rank() == 0) batch.results[index] = result;
  }
};

void check_gradients(const TileBatch& batch) {
  const TileGradients& g = batch.gradients;
  const auto like = [](const Rows<float>& sums, const Rows<float>& table) {
    return sums.count >= table.count && sums.dim == table.dim && sums.stride == table.stride;
  };
  GS_EXPECT(like(g.centres, batch.centres) && like(g.contexts, batch.contexts), "train_tiles: gradients of ",
            g.centres.count, " and ", g.contexts.count, " rows for tables of ", batch.centres.count, " and ",
            batch.contexts.count);
  GS_EXPECT(g.centre_curvature.size >= batch.centres.count && g.context_curvature.size >= batch.contexts.count,
            "train_tiles: curvatures of ", g.centre_curvature.size, " and ", g.context_curvature.size,
            " rows for tables of ", batch.centres.count, " and ", batch.contexts.count);
}

void train_tiles(const TileBatch& batch, const Exec& exec) {
  const TileShape& shape = batch.shape;
  const Offset tiles = batch.walks.count * shape.tiles_per_walk;
  GS_EXPECT(batch.nodes.size == batch.walks.count * shape.walk_length && shape.walk_length == batch.walks.length,
            "train_tiles: ", batch.nodes.size, " nodes for ", batch.walks.count, " walks of ", shape.walk_length);
  GS_EXPECT(batch.negatives.size == tiles * shape.shared_negatives && batch.results.size == tiles,
            "train_tiles: ", batch.negatives.size, " negatives and ", batch.results.size, " results for ", tiles,
            " tiles");
  GS_EXPECT(batch.centres.dim == shape.dim && batch.contexts.dim == shape.dim &&
                batch.centres.stride == padded_stride(shape.dim) && batch.contexts.stride == padded_stride(shape.dim),
            "train_tiles: tables of ", batch.centres.dim, " and ", batch.contexts.dim, " columns for dim ", shape.dim);
  if (!batch.gradients.empty()) check_gradients(batch);
  const Offset scratch_bytes = TileProducts::scratch_bytes(shape, scratch_limit(exec));
  for_each_team("train_tiles", tiles, scratch_bytes, TrainTiles{batch, scratch_bytes}, exec);
}

}  // namespace gs::kernels::GS_BACKEND
