// Models of a knowledge graph over a batch of tiles of triples, in place, or with the loss's gradients summed beside
// the table: the losses are those of TripleLoss, the scores those of Score.
//
// A unit is a tile: a block of threads with its rows in shared memory a slab of columns at a time (CUDA), or one thread
// that works on entities where they stand while the next tile's rows are on their way from memory (CPU). All gradients
// of a tile are of the values that its rows had before. Tiles run in any order and add their steps without locks (Niu
// et al., "Hogwild!", 2011): last bits vary unless one thread runs them in order, and CPU threads that meet at a row
// lose an add now and then.
//
// State of a tile: 2 t s scores; on the CPU 2 t queries, their gradients and those of all 3 t + s places, in a team's
// scratch the slab's columns of places and queries.
//
// A tile of t triples and s negatives reads and writes (3 t + s) rows of 4 dim bytes (and a sum of squares each, with
// Adagrad). Useful FLOP: 2 t s pairs of 6 dim where scores are dot products or transe_l2; 8 dim for transe_l1, and for
// rotate 13 dim with two roots for every two columns.
#include "kernels/ops.hpp"
#include "kernels/triples_tile.hpp"
#if defined(__CUDACC__) || defined(GS_EMULATED)
#include "kernels/triples_tile_team.hpp"
#else
#include "kernels/triples_tile_simd.hpp"
#endif

namespace gs::kernels::GS_BACKEND {

#if defined(__CUDACC__) || defined(GS_EMULATED)
using team::TripleTileProducts;
#else
using simd::TripleTileProducts;
#endif

template <Score S>
struct TrainTriples {
  TripleBatch batch;
  Offset scratch_bytes;

  GS_DEV void operator()(const Team& team, Offset index, Offset next) const {
    const TripleTile tile = triple_tile(batch, index);
    TileResult result;
    if (tile.triples > 0) result = TripleTileProducts<S>(team, batch, tile, scratch_bytes).train(next);
    if (team.rank() == 0) batch.results[index] = result;
  }
};

void check_triples(const TripleBatch& batch) {
  const TripleShape& shape = batch.shape;
  const Offset tiles = batch.tiles.count;
  GS_EXPECT(shape.triples > 0 && shape.shared_negatives > 0, "train_triples: tiles of ", shape.triples, " triples and ",
            shape.shared_negatives, " negatives");
  GS_EXPECT(batch.nodes.size == tiles * shape.width() * shape.triples &&
                batch.negatives.size == tiles * shape.shared_negatives && batch.results.size == tiles,
            "train_triples: ", batch.nodes.size, " nodes, ", batch.negatives.size, " negatives and ",
            batch.results.size, " results for ", tiles, " tiles");
  GS_EXPECT(batch.rows.dim == shape.dim && batch.rows.stride == padded_stride(shape.dim), "train_triples: rows of ",
            batch.rows.dim, " columns for dim ", shape.dim);
  GS_EXPECT(batch.squares.empty() || batch.squares.size >= batch.rows.count, "train_triples: ", batch.squares.size,
            " sums of squares for ", batch.rows.count, " rows");
  const Rows<float>& sums = batch.gradients.contexts;
  GS_EXPECT(batch.in_place() ||
                (sums.count >= batch.rows.count && sums.dim == batch.rows.dim && sums.stride == batch.rows.stride),
            "train_triples: gradients of ", sums.count, " rows for a table of ", batch.rows.count);
}

void train_triples(const TripleBatch& batch, const Exec& exec) {
  check_triples(batch);
  with_score(batch.shape.score, [&](auto score) {
    GS_EXPECT(batch.shape.dim % kCellFloats<score> == 0, "train_triples: dim ", batch.shape.dim, " of complex vectors");
    const Offset scratch_bytes = TripleTileProducts<score>::scratch_bytes(batch.shape, scratch_limit(exec));
    const TrainTriples<score> body{batch, scratch_bytes};
    for_each_team("train_triples", batch.tiles.count, scratch_bytes, body, exec);
  });
}

}  // namespace gs::kernels::GS_BACKEND
