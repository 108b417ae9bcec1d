// The table of operations of one backend.
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

void make_walks(const WalkGraph&, const WalkBatch&, Span<RowId>, const Exec&);
void draw_negatives(Span<const AliasSlot>, const WalkBatch&, int, int, Span<RowId>, const Exec&);
void train_tiles(const TileBatch&, const Exec&);
void train_pairs(const TileBatch&, Span<const AliasSlot>, const Exec&);
void add_totals(Span<const TileResult>, Span<TrainTotals>, const Exec&);
void initialize_rows(Rows<float>, float, std::uint64_t, const Exec&);
void multiply_adds(Span<float>, int, const Exec&);
void negate_rows(Rows<float>, Span<const RowId>, const Exec&);

const Ops& ops() {
  static const Ops table{make_walks, draw_negatives,  train_tiles,   train_pairs,
                         add_totals, initialize_rows, multiply_adds, negate_rows};
  return table;
}

}  // namespace gs::kernels::GS_BACKEND
