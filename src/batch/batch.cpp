#include "graphscale/batch.hpp"

#include <algorithm>

namespace gs {
namespace {

constexpr const char* kPurpose = "batch: rows and slots";

Offset nodes_in(const kernels::TileShape& shape, Offset walks) { return walks * shape.walk_length; }
Offset negatives_in(const kernels::TileShape& shape, Offset walks) {
  return walks * shape.tiles_per_walk * shape.shared_negatives;
}
Offset positions_in(const kernels::TileShape& shape, Offset walks) {
  return nodes_in(shape, walks) + negatives_in(shape, walks);
}

}  // namespace

Batch::Batch(const kernels::TileShape& shape, Offset capacity_walks, Offset rows, const Exec& exec, int slices)
    : shape_(shape),
      capacity_walks_(capacity_walks),
      slices_(slices),
      nodes_(*exec.ledger, nodes_in(shape, capacity_walks), kPurpose),
      negatives_(*exec.ledger, negatives_in(shape, capacity_walks), kPurpose),
      node_slots_(*exec.ledger, nodes_in(shape, capacity_walks), kPurpose),
      negative_slots_(*exec.ledger, negatives_in(shape, capacity_walks), kPurpose),
      rows_(*exec.ledger, capacity_rows(shape, capacity_walks, rows, slices), kPurpose),
      local_rows_(*exec.ledger, rows_.size(), kPurpose),
      scratch_(*exec.ledger,
               kernels::unique_scratch_bytes(positions_in(shape, capacity_walks), rows_.size(), exec.device.is_cuda()),
               kPurpose) {}

Offset Batch::capacity_rows(const kernels::TileShape& shape, Offset capacity_walks, Offset rows, int slices) {
  return std::min(positions_in(shape, capacity_walks), rows * slices);
}

Offset Batch::bytes(const kernels::TileShape& shape, Offset capacity_walks, Offset rows, Device device, int slices) {
  const Offset positions = positions_in(shape, capacity_walks);
  const Offset distinct = capacity_rows(shape, capacity_walks, rows, slices);
  return 2 * (positions + distinct) * Offset(sizeof(RowId)) +
         kernels::unique_scratch_bytes(positions, distinct, device.is_cuda());
}

void Batch::start(const kernels::WalkBatch& walks) {
  GS_EXPECT(walks.count <= capacity_walks_, "batch: ", walks.count, " walks, room for ", capacity_walks_);
  GS_EXPECT(walks.length == shape_.walk_length, "batch: walks of ", walks.length, " nodes, made for ",
            shape_.walk_length);
  walks_ = walks;
  groups_.clear();
  slots_ = 0;
}

Span<RowId> Batch::nodes() const { return nodes_.span().subspan(0, nodes_in(shape_, walks_.count)); }
Span<RowId> Batch::negatives() const { return negatives_.span().subspan(0, negatives_in(shape_, walks_.count)); }

void Batch::deduplicate(const kernels::Owners& owners, RowId head_rows, const std::vector<Offset>& slice_ends,
                        const Exec& exec) {
  GS_EXPECT(Offset(slice_ends.size()) <= slices_, "batch: ", slice_ends.size(), " slices, made for ", slices_);
  kernels::RowLists lists{nodes(), negatives()};
  for (const Offset end : slice_ends) {
    lists.first_ends.push_back(nodes_in(shape_, end));
    lists.second_ends.push_back(negatives_in(shape_, end));
  }
  const kernels::UniqueRows out{rows_.span(), local_rows_.span(), node_slots_.span().subspan(0, nodes().size),
                                negative_slots_.span().subspan(0, negatives().size), scratch_.span()};
  std::vector<kernels::GroupCounts> counts(std::size_t(1 + owners.count));
  kernels::ops(exec).unique_rows(lists, owners, head_rows, out, counts, exec);

  groups_.clear();
  slots_ = 0;
  for (const kernels::GroupCounts& of : counts) {
    groups_.push_back({slots_, of.rows, of.first_rows, of.first_positions, of.second_positions});
    slots_ += of.rows;
  }
}

Span<const RowId> Batch::node_slots() const { return node_slots_.span().subspan(0, nodes().size); }
Span<const RowId> Batch::negative_slots() const { return negative_slots_.span().subspan(0, negatives().size); }
Span<const RowId> Batch::rows() const { return rows_.span().subspan(0, slots_); }
Span<const RowId> Batch::local_rows() const { return local_rows_.span().subspan(0, slots_); }

Offset Batch::requested() const {
  Offset positions = 0;
  for (const Group& group : groups_) positions += group.node_positions + group.negative_positions;
  return positions;
}

}  // namespace gs
