// The table of operations of one backend.
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

void make_walks(const WalkGraph&, const WalkBatch&, Span<RowId>, const Exec&);
void move_walkers(const WalkGraph&, const WalkBatch&, Span<const Walker>, Span<RowId>, const Exec&);
void propose_moves(const WalkGraph&, const WalkBatch&, Span<const Walker>, Span<Move>, Span<RowId>, const Exec&);
void find_arcs(const WalkGraph&, Span<const ArcQuestion>, Span<std::uint8_t>, const Exec&);
void draw_moves(const WalkGraph&, const WalkBatch&, Span<const Walker>, Span<const Offset>, Span<const RowId>,
                Span<RowId>, const Exec&);
void draw_edges(const WalkGraph&, const RowDraw&, const WalkBatch&, Span<RowId>, const Exec&);
void draw_triples(const TripleList&, const WalkBatch&, Span<RowId>, const Exec&);
void draw_negatives(const RowDraw&, const WalkBatch&, int, int, Span<RowId>, const Exec&);
void train_tiles(const TileBatch&, const Exec&);
void train_pairs(const TileBatch&, Span<const AliasSlot>, const Exec&);
void train_triples(const TripleBatch&, const Exec&);
void make_queries(const TripleShape&, Rows<const float>, Rows<const float>, Span<const TripleQuery>, Rows<float>,
                  const Exec&);
void score_rows(Score, Rows<const float>, Rows<const float>, Rows<float>, const Exec&);
void add_totals(Span<const TileResult>, Span<TrainTotals>, const Exec&);
void initialize_rows(const StoredRows&, const RowSequence&, float, std::uint64_t, const Exec&);
void unique_rows(const RowLists&, const Owners&, RowId, const UniqueRows&, Span<GroupCounts>, const Exec&);
void gather_rows(const StoredRows&, Span<const RowId>, Rows<float>, const Exec&);
void pack_rows(const StoredRows&, Span<const RowId>, RowType, void*, const Exec&);
void unpack_rows(RowType, const void*, Rows<float>, const Exec&);
void encode_gradients(const GradientCodec&, Rows<const float>, Span<const float>, const Feedback&, void*, const Exec&);
void add_coded(const GradientCodec&, const void*, Span<const RowId>, Rows<float>, Span<float>, const Exec&);
void add_rows(Rows<const float>, Span<const float>, Span<const RowId>, Rows<float>, Span<float>, const Exec&);
void update_rows(const StoredRows&, const StoredRows&, Span<const RowId>, Rows<const float>, Span<const float>,
                 const UpdateRule&, Span<UpdateTotals>, const Exec&);
void multiply_adds(Span<float>, int, const Exec&);
void negate_rows(Rows<float>, Span<const RowId>, const Exec&);

const Ops& ops() {
  static const Ops table{make_walks,    move_walkers, propose_moves,  find_arcs,     draw_moves,
                         draw_edges,    draw_triples, draw_negatives, train_tiles,   train_pairs,
                         train_triples, make_queries, score_rows,     add_totals,    initialize_rows,
                         unique_rows,   gather_rows,  pack_rows,      unpack_rows,   encode_gradients,
                         add_coded,     add_rows,     update_rows,    multiply_adds, negate_rows};
  return table;
}

}  // namespace gs::kernels::GS_BACKEND
