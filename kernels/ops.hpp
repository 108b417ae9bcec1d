// The contents page of kernels/: every operation once, with what it reads, writes and costs. All queue on exec.stream
// and all pointers are on exec.device.
#pragma once

#include "kernels/views.hpp"

namespace gs::kernels {

struct Ops {
  /// nodes [count, l] <- random walks; kNoRow from where a walk ended early. walks.cu
  /// Moves 16 bytes a step at random (a packed node word, a target) and 4 written in order; 8 more where weighted.
  void (*make_walks)(const WalkGraph& graph, const WalkBatch& batch, Span<RowId> nodes, const Exec& exec);

  /// next[i] <- where walker i goes from its node, drawn as make_walks draws it; kNoRow where no arc leads on. `graph`
  /// holds the arcs of local rows with global targets. walks.cu
  void (*move_walkers)(const WalkGraph& graph, const WalkBatch& batch, Span<const Walker> walkers, Span<RowId> next,
                       const Exec& exec);

  /// Steps of second-order walkers over a graph in parts, drawn as make_walks draws them. moves.cu
  /// moves[i] <- what walker i does; asked [n, kWalkTries] <- each walker's asked rows, the first moves[i].asked.
  void (*propose_moves)(const WalkGraph& graph, const WalkBatch& batch, Span<const Walker> walkers, Span<Move> moves,
                        Span<RowId> asked, const Exec& exec);
  /// found[i] <- 1 where the answer is yes, else 0.
  void (*find_arcs)(const WalkGraph& graph, Span<const ArcQuestion> questions, Span<std::uint8_t> found,
                    const Exec& exec);
  /// next[i] <- where walker i goes by the exact draw; its t's sorted targets are lists[2 i + 1] rows of `listed` from
  /// lists[2 i] on.
  void (*draw_moves)(const WalkGraph& graph, const WalkBatch& batch, Span<const Walker> walkers,
                     Span<const Offset> lists, Span<const RowId> listed, Span<RowId> next, const Exec& exec);

  /// nodes [count, l] <- l / 2 edges a unit, each drawn in proportion to its weight: a source from `sources` (in
  /// proportion to the weight of its arcs), then an arc as make_walks picks it. Keyed by (seed, epoch, unit, edge).
  /// edges.cu
  void (*draw_edges)(const WalkGraph& graph, const RowDraw& sources, const WalkBatch& batch, Span<RowId> nodes,
                     const Exec& exec);

  /// nodes [count, l] <- the triples of each unit, in the epoch's order of all (see `shuffled`); kNoRow after the
  /// last. edges.cu
  void (*draw_triples)(const TripleList& triples, const WalkBatch& batch, Span<RowId> nodes, const Exec& exec);

  /// negatives [tiles, s] <- rows drawn from the alias table, keyed by (seed, epoch, tile). negatives.cu
  void (*draw_negatives)(const RowDraw& table, const WalkBatch& batch, int tiles_per_walk, int per_tile,
                         Span<RowId> negatives, const Exec& exec);

  /// One skip-gram step a tile: in place, or gradients and curvatures added to batch.gradients with the tables only
  /// read. Additive writes, tiles in any order (in order with one thread). walk_tiles.cu
  void (*train_tiles)(const TileBatch& batch, const Exec& exec);

  /// The same training, a pair and k fresh negatives at a time, as word2vec does it: the comparator. pairs.cu
  void (*train_pairs)(const TileBatch& batch, Span<const AliasSlot> table, const Exec& exec);

  /// One step of a knowledge graph's model a tile, in place or into gradients, as train_tiles does. Throws usage for a
  /// tile that a GPU's shared memory cannot hold. train_triples.cu
  void (*train_triples)(const TripleBatch& batch, const Exec& exec);

  /// vectors(i) <- query i's vector; rows of `entities` and `relations` (which may be one table) are those of queries.
  /// With shape.reciprocal, heads are asked by the relation's reciprocal. scores.cu
  void (*make_queries)(const TripleShape& shape, Rows<const float> entities, Rows<const float> relations,
                       Span<const TripleQuery> queries, Rows<float> vectors, const Exec& exec);
  /// scores(i, j) <- the score of query vector i with entity j; the same bits for a pair wherever it stands, whatever
  /// the strides (any are taken; padding is not read). 2 to 3 dim FLOP a score. scores.cu
  void (*score_rows)(Score score, Rows<const float> vectors, Rows<const float> entities, Rows<float> scores,
                     const Exec& exec);

  /// totals[0] += the results' loss and pairs. totals.cu
  void (*add_totals)(Span<const TileResult> results, Span<TrainTotals> totals, const Exec& exec);

  /// rows <- uniform in [-scale, scale), keyed by (seed, rows[i], column), rounded to the table's type; padding stays
  /// zero. initialize.cu
  void (*initialize_rows)(const StoredRows& table, const RowSequence& rows, float scale, std::uint64_t seed,
                          const Exec& exec);

  /// The distinct rows of two lists and every position's slot: see UniqueRows. counts [1 + owners.count], host memory,
  /// is filled when the call returns (a GPU is waited for). On the CPU a group's rows are in order of first appearance,
  /// on a GPU ascending. Throws internal where out is too small, and for slices on a GPU. unique.cu
  void (*unique_rows)(const RowLists& lists, const Owners& owners, RowId head_rows, const UniqueRows& out,
                      Span<GroupCounts> counts, const Exec& exec);

  /// out(i) <- table row local_rows[i], as float32. gather.cu
  void (*gather_rows)(const StoredRows& table, Span<const RowId> local_rows, Rows<float> out, const Exec& exec);
  /// packed [n, dim] of `type` <- table rows local_rows[i], values one after another. gather.cu
  void (*pack_rows)(const StoredRows& table, Span<const RowId> local_rows, RowType type, void* packed,
                    const Exec& exec);
  /// out(i) <- packed row i. gather.cu
  void (*unpack_rows)(RowType type, const void* packed, Rows<float> out, const Exec& exec);

  /// coded [n, codec.row_bytes()] <- gradients and curvatures. With feedback, what is left out stays in the residual.
  /// codec.cu
  void (*encode_gradients)(const GradientCodec& codec, Rows<const float> gradients, Span<const float> curvature,
                           const Feedback& feedback, void* coded, const Exec& exec);
  /// sums(slots[i]) += decoded gradient i, curvature likewise. No slot twice in a call unless exec has one thread on
  /// the CPU. codec.cu
  void (*add_coded)(const GradientCodec& codec, const void* coded, Span<const RowId> slots, Rows<float> sums,
                    Span<float> curvature, const Exec& exec);
  /// sums(slots[i]) += gradients(i), curvature likewise; the same rule for slots. codec.cu
  void (*add_rows)(Rows<const float> gradients, Span<const float> gradient_curvature, Span<const RowId> slots,
                   Rows<float> sums, Span<float> curvature, const Exec& exec);

  /// One optimizer step of table rows local_rows[i], no row twice, by their summed gradients [n, dim]. A row whose
  /// gradient (its squares' sum in float32) and curvature are zero, or that the rule freezes, is left as it is, its
  /// state too, and is not counted. state: [count, state_columns], columns 0: not read. 16-bit tables are rounded
  /// stochastically. totals [1] are added to. What is not finite in a gradient is so in the row and in the totals, but
  /// for frozen ones. update.cu
  void (*update_rows)(const StoredRows& table, const StoredRows& state, Span<const RowId> local_rows,
                      Rows<const float> gradients, Span<const float> curvature, const UpdateRule& rule,
                      Span<UpdateTotals> totals, const Exec& exec);

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
