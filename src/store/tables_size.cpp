// How much a rank's tables and steps hold.
#include <algorithm>

#include "graphscale/store.hpp"

namespace gs {

namespace {

constexpr Offset kRoom = 2;  // even shares of what all ask of all

}  // namespace

TablesSize::TablesSize(const TablesShape& shape, const RankPart& part, Device device) {
  const bool has_shards = shape.head_rows < part.rows();
  local_rows = part.stores && has_shards ? part.local_rows : 0;
  state_columns = kernels::state_columns(shape.optimizer, shape.tile.dim);
  const Offset rows_of_a_step = Batch::capacity_rows(shape.tile, shape.step_walks, part.rows(), shape.slices());
  slots = part.computes ? rows_of_a_step : 0;
  const Offset of_a_rank = std::min(local_rows * shape.slices(), rows_of_a_step);
  const Offset others = part.compute_ranks - (part.computes ? 1 : 0);
  const Offset even_share = (rows_of_a_step * others + part.storage_ranks - 1) / part.storage_ranks;
  const Offset by_others = std::min(of_a_rank * others, kRoom * even_share);
  if (part.is_partition) {
    positions = part.nodes, bounds = part.storage_ranks + 1;
    own_rows = local_rows;
  }
  head_rows = shape.head_rows;
  if (shape.frozen_rows)
    frozen_words = kernels::bit_words(local_rows), frozen_head_words = kernels::bit_words(head_rows);
  kept_rows = shape.feedback_rows;
  make_room(by_others + (part.computes ? of_a_rank : 0), by_others, shape, part, device);
}

void TablesSize::make_room(Offset all, Offset by_others, const TablesShape& shape, const RankPart& part,
                           Device device) {
  asked = all, asked_by_others = by_others;
  distinct = std::min(asked, local_rows);
  scratch = kernels::unique_scratch_bytes(asked, distinct, device.is_cuda());
  if (part.ranks == 1 || shape.head_rows == part.rows()) return;
  const Offset row_bytes = shape.tile.dim * kernels::bytes_of(shape.wire_type), coded_bytes = shape.codec.row_bytes();
  outgoing = shape.tables() * std::max(asked_by_others * row_bytes, slots * coded_bytes);
  incoming = shape.tables() * std::max(slots * row_bytes, asked_by_others * coded_bytes);
}

std::vector<MemoryNeed> TablesSize::tables(const TablesShape& shape) const {
  const Offset a_row = ShardTable::bytes_a_row(shape.tile.dim, shape.type, state_columns);
  const Offset gradient = padded_stride(shape.tile.dim) * Offset(sizeof(float)), scalar = sizeof(float);
  const Offset hot_rows = std::min(local_rows, shape.hot_rows);
  const Offset tables = shape.tables();
  std::vector<MemoryNeed> needs;
  for (const char* name : shape.one_table ? std::vector{"rows"} : std::vector{"centres", "contexts"}) {
    needs.push_back({cat(name, ": hot rows"), hot_rows * a_row});
    needs.push_back({cat(name, ": cold rows"), (local_rows - hot_rows) * a_row, true});
    needs.push_back({cat("head ", name, ": hot rows"), head_rows * a_row});
  }
  needs.push_back({"head: gradients", head_rows * (tables * (gradient + scalar) + Offset(sizeof(RowId)))});
  needs.push_back(
      {"store: placement", (positions + own_rows) * Offset(sizeof(RowId)) + bounds * Offset(sizeof(Offset))});
  needs.push_back({"store: frozen rows", (frozen_words + frozen_head_words) * Offset(sizeof(std::uint32_t))});
  needs.push_back({"exchange: kept gradients", tables * kept_rows * gradient});
  needs.push_back(
      {"exchange: sums", tables * distinct * (gradient + scalar) + scratch + Offset(sizeof(kernels::UpdateTotals))});
  needs.push_back({"exchange: wire", outgoing + incoming});
  return needs;
}

std::vector<MemoryNeed> TablesSize::step(const TablesShape& shape, const RankPart& part, Device device) const {
  const Offset rows = slots * padded_stride(shape.tile.dim) * Offset(sizeof(float)),
               scalars = slots * Offset(sizeof(float)), tables = shape.tables();
  const Offset walks = part.computes ? shape.step_walks : 0;
  return {{"batch: rows and slots", Batch::bytes(shape.tile, walks, part.rows(), device, shape.slices())},
          {"step: fetched rows", tables * rows},
          {"step: gradients", tables * (rows + scalars)},
          {"step: asked rows", (2 * asked + distinct) * Offset(sizeof(RowId))}};
}

Offset TablesSize::bytes_read_back(Offset rows, int dim) {
  return rows * (Offset(sizeof(RowId)) + dim * Offset(sizeof(float)));
}

}  // namespace gs
