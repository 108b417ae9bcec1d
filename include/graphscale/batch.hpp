// A step's walks and negatives as slots of unique rows: what has to be fetched, and once.
#pragma once

#include "graphscale/config.hpp"
#include "graphscale/optimizer.hpp"

namespace gs {

/// The tiles of one step on one rank, deduplicated. Buffers are made once and filled again for every step.
///
/// The tile kernel reads `node_slots` and `negative_slots` in place of rows, and two tables [slots, dim] that hold what
/// was fetched. Slots lie in groups (see kernels::UniqueRows): the head, then one group an owner, and in each group the
/// rows whose centre vector is needed too come first.
class Batch {
 public:
  /// capacity_walks: the most walks of a step on this rank; rows: of the tables, bounds a slice's distinct ones;
  /// slices: the most of a step, kSlices where training is deterministic.
  Batch(const kernels::TileShape& shape, Offset capacity_walks, Offset rows, const Exec& exec, int slices = 1);

  /// The most distinct rows of a step.
  static Offset capacity_rows(const kernels::TileShape& shape, Offset capacity_walks, Offset rows, int slices = 1);
  /// Held bytes, all under the purpose "batch: rows and slots".
  static Offset bytes(const kernels::TileShape& shape, Offset capacity_walks, Offset rows, Device device,
                      int slices = 1);

  /// The step's walks, for the sampler to fill; `count` of them.
  void start(const kernels::WalkBatch& walks);
  Span<RowId> nodes() const;      ///< [count, l]
  Span<RowId> negatives() const;  ///< [tiles, s]

  /// Makes unique what nodes() and negatives() hold; owners' lists are on exec's device. slice_ends: see
  /// kernels::RowLists, in walks; empty: one slice. Done when the call returns, on a GPU too.
  void deduplicate(const kernels::Owners& owners, RowId head_rows, const std::vector<Offset>& slice_ends,
                   const Exec& exec);

  const kernels::WalkBatch& walks() const { return walks_; }
  Span<const RowId> node_slots() const;
  Span<const RowId> negative_slots() const;
  Span<const RowId> rows() const;        ///< [slots] global rows
  Span<const RowId> local_rows() const;  ///< [slots] their numbers at their owners
  Offset slots() const { return slots_; }
  Offset requested() const;  ///< places in walks and among negatives that hold a row

  /// A group's first slot and counts; group 0 is the head, 1 + o owner o.
  struct Group {
    Offset first_slot = 0, rows = 0, centre_rows = 0;
    Offset node_positions = 0, negative_positions = 0;  ///< places in walks and among negatives that hold its rows
  };
  const std::vector<Group>& groups() const { return groups_; }

 private:
  kernels::TileShape shape_;
  Offset capacity_walks_;
  int slices_;
  kernels::WalkBatch walks_;
  Buffer<RowId> nodes_, negatives_, node_slots_, negative_slots_, rows_, local_rows_;
  Buffer<char> scratch_;  // of unique_rows
  std::vector<Group> groups_;
  Offset slots_ = 0;
};

/// Which walks of a step a compute rank trains: ranks share them evenly. Host memory.
struct WalkShare {
  Offset first = 0, count = 0;     ///< a run of the step's walks
  std::vector<Offset> chosen;      ///< instead, where walks start at the rank that owns their node
  std::vector<Offset> slice_ends;  ///< deterministic: ends of the slices within the share; else empty
};

/// Slices of a deterministic step, whatever the number of ranks: each is summed by itself, then all in order.
inline constexpr int kSlices = 16;

/// Rank `index` of `ranks`' walks of a step [first, first + count) of an epoch: walks [count index / ranks,
/// count (index + 1) / ranks), or, deterministic, whole slices of them.
WalkShare share_of_walks(Offset first, Offset count, int index, int ranks, bool deterministic);

/// The largest share of a step of `step_walks` that a rank can get.
Offset most_walks_of_a_rank(Offset step_walks, int ranks, bool deterministic);

/// The same, but each rank takes the walks that start at rows it owns, up to ceil(count / ranks), and what is left over
/// goes to the ranks with room in their order. owner_of(row) gives an index below `ranks`.
WalkShare share_by_start(const kernels::WalkBatch& step, Offset nodes, int index, int ranks,
                         const std::function<int(RowId)>& owner_of);

}  // namespace gs
