// Tables that no rank holds alone: where rows lie, how they are fetched and how their gradients come home.
#pragma once

#include "graphscale/exchange.hpp"

namespace gs {

/// Which ranks store, which compute, and who owns a row.
class Placement {
 public:
  /// Every rank stores and computes; row r is local row r / size of rank r % size.
  static Placement cyclic(Offset rows, int ranks);

  /// As the configuration says: ranks.storage and ranks.compute ("0-3,6"; empty: all), store.placement. `partition`
  /// asks METIS on rank 0 for parts of equal rows and equal arcs and sends everyone its 4 rows bytes; an owner's rows
  /// keep their order by degree. Collective. Throws usage: a rank that does not exist, none that stores or computes.
  static Placement make(const Config& config, const Csr& graph, Comm& comm);

  Offset rows() const { return rows_; }
  int ranks() const { return ranks_; }
  const std::vector<int>& storage() const { return storage_; }  ///< ranks, ascending; owner o is rank storage()[o]
  const std::vector<int>& compute() const { return compute_; }
  int owner_index(int rank) const;    ///< among storage(), or -1
  int compute_index(int rank) const;  ///< among compute(), or -1
  bool is_partition() const { return !positions_.empty(); }

  kernels::Owners owners() const;                             ///< host memory
  Offset rows_of(int owner) const;                            ///< local rows of an owner
  kernels::RowSequence sequence_of(int owner) const;          ///< its local rows' global rows, host memory
  Span<const RowId> positions() const { return positions_; }  ///< [rows], partition only
  Span<const Offset> bounds() const { return bounds_; }       ///< [owners + 1], partition only

  /// How even it is: rows, arcs and arcs that stay inside, least and most over owners.
  struct Balance {
    Offset least_rows = 0, most_rows = 0, least_arcs = 0, most_arcs = 0;
    double inside_share = 0;  ///< arcs whose two ends have one owner
  };
  Balance balance(const Csr& graph) const;

 private:
  Offset rows_ = 0;
  int ranks_ = 1;
  std::vector<int> storage_, compute_;
  std::vector<RowId> positions_, by_position_;  // partition: row -> position and back
  std::vector<Offset> bounds_;
};

/// "0-3,6" as ranks below `ranks`, ascending; empty: all. Throws usage with `option` where it is not that.
std::vector<int> parse_ranks(const std::string& text, int ranks, const std::string& option);

/// Local rows that fit in hot memory: store.hot_rows where given, else as many as store.device_share of the device's
/// free bytes hold; all of them on the CPU unless given.
Offset choose_hot_rows(const Config& config, Offset local_rows, Offset row_bytes, Offset device_bytes, Device device);

/// Rows of one table with their optimizer state, in two homes (see kernels::StoredRows).
class ShardTable {
 public:
  /// device and host: ledgers of the two homes ("store: hot rows" and "store: cold rows", state included).
  ShardTable(const std::string& name, Offset rows, Offset hot_rows, int dim, kernels::RowType type, int state_columns,
             MemoryLedger& device, MemoryLedger& host);
  kernels::StoredRows rows() const;
  kernels::StoredRows state() const;
  static Offset row_bytes(int dim, kernels::RowType type);  ///< of one row, padded
  static Offset state_bytes(int state_columns);             ///< of one row's state, padded

 private:
  int dim_, state_columns_;
  kernels::RowType type_;
  Offset rows_, hot_rows_;
  Buffer<char> hot_rows_buffer_, cold_rows_buffer_, hot_state_, cold_state_;
};

/// A graph whose arcs lie with the owners of their nodes. Walkers travel: each step moves every walker to the owner of
/// its node, by one all-to-all of 16 bytes a walker, and at the end every visited node goes home by another. The walks
/// are those of a replicated graph, bit by bit.
class PartitionedTopology {
 public:
  /// Takes this rank's rows' arcs out of `graph`. Collective calls follow on `comm` (host memory).
  PartitionedTopology(const Csr& graph, bool weighted, const Placement& placement, Comm& comm, const Exec& exec);

  /// nodes [batch.count, l] <- walks, device memory. Collective: a rank without walks passes count 0 and serves.
  void make_walks(const kernels::WalkBatch& batch, Span<RowId> nodes);

 private:
  const Placement& placement_;
  Comm& comm_;
  Exec exec_;
  std::unique_ptr<WalkTopology> local_;
};

/// Rows, bytes and hits of one rank since the start.
struct StoreCounters {
  Offset requested_rows = 0;  ///< positions in walks and negatives, each a centre or context row (walk nodes: both)
  Offset unique_rows = 0;     ///< of those, after deduplication
  Offset head_rows = 0, local_rows = 0, remote_rows = 0;  ///< where the unique rows were found
  Offset served_hot_rows = 0, served_cold_rows = 0;       ///< rows this owner gathered, by home
  Offset row_bytes_sent = 0, row_bytes_received = 0;      ///< with their ids
  Offset gradient_bytes_sent = 0, gradient_bytes_received = 0;
  Offset plain_gradient_bytes_sent = 0;  ///< what the same gradients are uncompressed
  Offset undeduplicated_bytes = 0;       ///< rows and gradients that would have moved a position at a time
};

/// What a finished step of another rank tells everyone with its counts.
struct RankReport {
  Offset pairs = 0;
  double loss = 0;
  Offset stop = 0;  ///< this rank was told to stop
};

/// A batch on its way: fetched rows, gradients, and what others asked of this owner for the same step.
struct StepRows {
  Batch batch;
  Buffer<float> centres, contexts, centre_gradients, context_gradients, centre_curvature, context_curvature;
  Buffer<RowId> asked_rows, asked_unique, asked_slots;  ///< local rows that each rank asks for, in order of ranks
  std::vector<Offset> asked, asked_centres;             ///< [ranks] rows that rank r asks for
  std::vector<kernels::GroupCounts> asked_counts;
  Offset step = 0;

  Rows<float> table(const Buffer<float>& values, int dim) const;  ///< [slots, dim]
  kernels::TileGradients gradients(int dim) const;
};

/// The two tables of a skip-gram model, sharded over the ranks of a placement.
///
/// Every call with StepRows is collective and made by one thread, the exchange's; the schedule of calls is the same on
/// all ranks. control: host memory; data: where rows lie (the same object on the CPU).
class ShardedTables {
 public:
  ShardedTables(const Config& config, const Placement& placement, Comm& control, Comm& data, Offset capacity_walks,
                Offset hot_rows, MemoryLedger& host, const Exec& exec);

  /// A step's buffers, zeroed. Held bytes: `step_bytes`.
  std::unique_ptr<StepRows> make_step();

  /// Sends the batch's requests, serves the others', fills step.centres and step.contexts. `mine` goes to all; returns
  /// every rank's report. Counts, ids, rows: three all-to-alls.
  std::vector<RankReport> fetch(StepRows& step, const RankReport& mine);

  /// Sends the step's gradients home, sums what came, applies `rule` once a row, and clears the step's gradients.
  void push(StepRows& step, const kernels::UpdateRule& rule);

  /// The centre vectors of global rows [first, first + out.count) into host memory on rank 0; `out` there, ignored on
  /// others. Collective.
  void gather_centres(Offset first, Rows<float> out);

  /// This rank's part: the first value that is not finite, as (global row, column), or (-1, -1).
  std::pair<Offset, int> first_not_finite();

  const StoreCounters& counters() const { return counters_; }
  const kernels::UpdateTotals& last_update() const { return last_update_; }
};

}  // namespace gs
