// Tables that no rank holds alone: where rows lie, how they are fetched and how their gradients come home.
#pragma once

#include "graphscale/exchange.hpp"

namespace gs {

/// One rank's part of a run, as far as sizes depend on it.
struct RankPart {
  Offset nodes = 0, dense_rows = 0;  ///< of the whole graph, see Placement
  int ranks = 1, storage_ranks = 1, compute_ranks = 1;
  bool stores = true, computes = true;
  bool is_partition = false;              ///< rows are placed by lists
  Offset local_rows = 0, local_arcs = 0;  ///< of the rows it owns

  Offset rows() const { return dense_rows + nodes; }
};

/// Which ranks store, which compute, and who owns a row. Global rows are the dense ones, which nobody owns, then one a
/// node.
class Placement {
 public:
  /// Every rank stores and computes; node v is local row v / size of rank v % size.
  static Placement cyclic(Offset nodes, int ranks, Offset dense_rows = 0);

  /// As the configuration says: ranks.storage and ranks.compute ("0-3,6"; empty: all), store.placement. `partition`
  /// asks METIS on rank 0 for parts of equal nodes and equal arcs and sends everyone its 4 nodes bytes; an owner's rows
  /// keep their order by degree. Collective. Throws usage: see parse_ranks; a graph too large for METIS.
  static Placement make(const Config& config, const Csr& graph, Comm& comm);
  /// The same of `ranks` ranks, by this process alone.
  static Placement make(const Config& config, const Csr& graph, int ranks);

  Offset rows() const { return dense_rows_ + nodes_; }
  Offset nodes() const { return nodes_; }
  Offset dense_rows() const { return dense_rows_; }
  int ranks() const { return ranks_; }
  const std::vector<int>& storage() const { return storage_; }  ///< ranks, ascending; owner o is rank storage()[o]
  const std::vector<int>& compute() const { return compute_; }
  int owner_index(int rank) const;    ///< among storage(), or -1
  int compute_index(int rank) const;  ///< among compute(), or -1
  bool is_partition() const { return !positions_.empty(); }

  kernels::Owners owners() const;                             ///< host memory
  Offset rows_of(int owner) const;                            ///< local rows of an owner
  kernels::RowSequence sequence_of(int owner) const;          ///< its local rows' global rows, host memory
  Span<const RowId> positions() const { return positions_; }  ///< [nodes], partition only
  Span<const Offset> bounds() const { return bounds_; }       ///< [owners + 1], partition only

  RankPart part_of(int rank) const;                    ///< without its arcs
  RankPart part_of(int rank, const Csr& graph) const;  ///< counts them

  /// How even it is: rows, arcs and arcs that stay inside, least and most over owners.
  struct Balance {
    Offset least_rows = 0, most_rows = 0, least_arcs = 0, most_arcs = 0;
    double inside_share = 0;  ///< arcs whose two ends have one owner
  };
  Balance balance(const Csr& graph) const;

 private:
  static Placement roles(const Config& config, const Csr& graph, int ranks);
  bool is_parted(const Config& config) const;
  void take_parts(const std::vector<int>& parts);
  void number_back();

  Offset nodes_ = 0, dense_rows_ = 0;
  int ranks_ = 1;
  std::vector<int> storage_, compute_;
  std::vector<RowId> positions_, by_position_;  // partition: node -> position, and back to global rows
  std::vector<Offset> bounds_;
};

/// "0-3,6" as ranks below `ranks`, ascending, none twice; empty: all. Throws usage where it is not that: names
/// `option`, what was found and which ranks there are.
std::vector<int> parse_ranks(const std::string& text, int ranks, const std::string& option);

/// Local rows that fit in hot memory: store.hot_rows where given, else as many as store.device_share of the device's
/// free bytes hold; all of them on the CPU unless given.
Offset choose_hot_rows(const Config& config, Offset local_rows, Offset row_bytes, Offset device_bytes, Device device);

/// A graph whose arcs lie with the owners of their nodes, on exec's device. Walkers travel: the owner of a walker's
/// node draws the next one, tells it to the walk's home (8 bytes) and sends the walker to that node's owner (12 bytes),
/// who needs no telling where it is the home. The walks are those of a replicated graph, bit by bit.
///
/// Walkers of second order bring the node before and its degree (8 bytes more). In every step the owner of a walker's
/// node asks the owner of the node before which of up to kWalkTries rows it has arcs to (8 bytes a row, 1 back); for an
/// exact draw it fetches that node's targets (4 bytes for the node, 8 and 4 a target back), once for all its walkers.
class PartitionedTopology {
 public:
  /// Takes this rank's rows' arcs out of `graph`. placement and comm (host memory) must outlive this.
  PartitionedTopology(const Csr& graph, const WalkRule& rule, const Placement& placement, Comm& comm, const Exec& exec);

  /// nodes [batch.count, l] <- walks, on exec's device; batch.chosen lies in host memory. l all-to-alls of counts and
  /// as many of walkers, which pass through host memory; of second order seven more a step, two of them of counts.
  /// Memory beyond the held bytes is in proportion to the walkers here and the rows and targets asked for. Collective:
  /// seed, epoch and length are the same on all ranks; a rank without walks passes count 0 and serves.
  void make_walks(const kernels::WalkBatch& batch, Span<RowId> nodes);

  /// Held bytes of a rank with so many rows and arcs, under the purposes of WalkTopology and "graph: walkers".
  static Offset bytes(Offset local_rows, Offset local_arcs, const WalkRule& rule);
  static Offset walker_bytes(const WalkRule& rule);  ///< of those, under "graph: walkers"

 private:
  /// A walker as it is sent: its walk of the batch that all ranks' batches make together, the same walk's number in the
  /// epoch less least_walk_, and its node at its owner.
  struct Traveller {
    std::uint32_t place, walk;
    RowId local_row;
  };
  /// Of a walker of second order: the node before and its arcs.
  struct Origin {
    RowId from = kNoRow;
    std::uint32_t degree = 0;
  };
  /// What a walk's home is told: a node, and the walk's place in its batch.
  struct News {
    std::uint32_t place;
    RowId node;
  };
  struct Mail;

  void agree(const kernels::WalkBatch& batch);
  void start(const kernels::WalkBatch& batch, Mail& mail) const;
  void move(const kernels::WalkBatch& batch, std::uint32_t step);
  void move_by_second_order(const kernels::WalkBatch& batch, std::uint32_t step);
  kernels::Walker walker(std::size_t i, std::uint32_t step) const;
  Span<kernels::Walker> upload_walkers(Offset first, std::uint32_t step);
  std::vector<std::vector<std::uint8_t>> ask(const std::vector<std::vector<kernels::ArcQuestion>>& questions);
  void read_targets(const std::vector<RowId>& rows, std::vector<Offset>& sizes, std::vector<RowId>& targets) const;
  void draw_exactly(const kernels::WalkBatch& batch, std::uint32_t step, const std::vector<std::size_t>& open);
  void step(const kernels::WalkBatch& batch, std::uint32_t step, Mail& mail);
  void deliver(const kernels::WalkBatch& batch, std::uint32_t step, Mail& mail, Span<RowId> nodes);
  int rank_of(RowId row) const { return placement_.storage()[std::size_t(owners_.owner(row))]; }

  const Placement& placement_;
  kernels::Owners owners_;
  kernels::RowSequence own_rows_;
  Comm& comm_;
  Exec exec_;
  bool second_order_;
  std::unique_ptr<WalkTopology> local_;
  Buffer<kernels::Walker> walkers_;  // a piece of those here, and where they go
  Buffer<RowId> next_;
  Buffer<kernels::Move> moves_;  // [piece] of second order
  Buffer<RowId> asked_;          // [piece, kWalkTries]
  std::vector<Traveller> here_;
  std::vector<RowId> next_here_;        // [here]
  std::vector<Origin> origins_;         // [here] of second order
  std::vector<std::uint32_t> degrees_;  // [here] of their nodes
  std::vector<Offset> first_place_;     // [ranks + 1] of each rank's batch
  Offset least_walk_ = 0;
};

/// Rows of one table with their optimizer state, in two homes (see kernels::StoredRows).
class ShardTable {
 public:
  ShardTable() = default;
  /// device, host: ledgers of the two homes, for "NAME: hot rows" and "NAME: cold rows", state included. Zeroed.
  ShardTable(const std::string& name, Offset rows, Offset hot_rows, int dim, kernels::RowType type, int state_columns,
             MemoryLedger& device, MemoryLedger& host);

  kernels::StoredRows rows() const;
  kernels::StoredRows state() const;  ///< float32 [rows, state_columns]
  static Offset bytes_a_row(int dim, kernels::RowType type, int state_columns);

 private:
  int dim_ = 0, state_columns_ = 0;
  kernels::RowType type_ = kernels::RowType::fp32;
  Offset rows_ = 0, hot_rows_ = 0;
  Buffer<char> hot_, cold_;  // rows, then their state
};

/// Rows, bytes and hits of one rank since the start. Of two tables a row that is needed as centre and as context counts
/// twice.
struct StoreCounters {
  Offset requested_rows = 0;  ///< positions in walks and negatives: what a step without deduplication reads
  Offset unique_rows = 0;     ///< of those, after deduplication; the sum of the next three
  Offset head_rows = 0, local_rows = 0, remote_rows = 0;
  Offset hot_rows = 0, cold_rows = 0;                      ///< rows this owner read for anyone, by their home
  Offset id_bytes = 0, row_bytes = 0, gradient_bytes = 0;  ///< sent to other ranks
  Offset head_bytes = 0;                                   ///< sent by the head's all-reduce
  Offset received_bytes = 0;                               ///< of all four kinds, from other ranks
  Offset plain_gradient_bytes = 0;                         ///< of gradient_bytes' rows, uncompressed
  /// What ids, rows and gradients would be with every position of a row of another rank moved by itself, uncompressed.
  Offset undeduplicated_bytes = 0;
};

/// The counters by name, as metrics and benchmarks print them.
inline constexpr std::pair<const char*, Offset StoreCounters::*> kStoreCounters[] = {
    {"requested_rows", &StoreCounters::requested_rows},
    {"unique_rows", &StoreCounters::unique_rows},
    {"head_rows", &StoreCounters::head_rows},
    {"local_rows", &StoreCounters::local_rows},
    {"remote_rows", &StoreCounters::remote_rows},
    {"hot_rows", &StoreCounters::hot_rows},
    {"cold_rows", &StoreCounters::cold_rows},
    {"id_bytes", &StoreCounters::id_bytes},
    {"row_bytes", &StoreCounters::row_bytes},
    {"gradient_bytes", &StoreCounters::gradient_bytes},
    {"head_bytes", &StoreCounters::head_bytes},
    {"received_bytes", &StoreCounters::received_bytes},
    {"plain_gradient_bytes", &StoreCounters::plain_gradient_bytes},
    {"undeduplicated_bytes", &StoreCounters::undeduplicated_bytes},
};
static_assert(std::size(kStoreCounters) * sizeof(Offset) == sizeof(StoreCounters), "every counter has a name");

inline StoreCounters& operator+=(StoreCounters& sum, const StoreCounters& other) {
  for (const auto& [name, counter] : kStoreCounters) sum.*counter += other.*counter;
  return sum;
}
inline StoreCounters operator-(StoreCounters later, const StoreCounters& earlier) {
  for (const auto& [name, counter] : kStoreCounters) later.*counter -= earlier.*counter;
  return later;
}

/// What a rank tells all others with a step's counts.
struct RankReport {
  Offset pairs = 0;        ///< trained since its last report
  double loss = 0;         ///< sum over those
  bool stop = false;       ///< it was told to stop
  bool pause = false;      ///< rank 0 asks for a pause
  StoreCounters counters;  ///< since its last report; fetch fills them in
};

/// Bytes of a step's counts and report, which every rank sends every other.
inline constexpr Offset kCountBytes = 2 * Offset(sizeof(Offset)) + Offset(sizeof(RankReport));

/// A step on its way: its batch, what was fetched for it, its gradients, and what other ranks ask of this owner for the
/// same step. Device memory but for the counts. With one table the centres are the contexts: rows and gradients of
/// either name are the same memory.
struct StepRows {
  Batch batch;
  bool one_table = false;  ///< the centres' buffers are empty
  Buffer<float> centres, contexts, centre_gradients, context_gradients, centre_curvature, context_curvature;
  /// Local rows asked for: first those whose centre row is needed too (with one table none), of every rank in order,
  /// then the others likewise.
  Buffer<RowId> asked, asked_slots;               ///< asked_slots: places in asked_unique
  Buffer<RowId> asked_unique;                     ///< distinct local rows, those needed as centres first
  std::vector<Offset> asked_first, asked_second;  ///< [ranks] how many of either kind a rank asks for
  kernels::GroupCounts unique;

  Rows<float> rows(const Buffer<float>& table) const;  ///< [slots, dim]
  kernels::TileGradients gradients() const;
  int dim = 0;
};

/// What of a run's shape the tables depend on; the same on every rank.
struct TablesShape {
  kernels::TileShape tile;
  bool one_table = false;                    ///< no centre table: every row is one of the context table, as "rows"
  Offset dense_rows = 0;                     ///< see Placement; at least these are replicated, updated at every step
  float initial_scale = 0, dense_scale = 0;  ///< see ModelShape
  int dense_columns = 0;
  Offset step_walks = 0;  ///< the most walks of a step on one compute rank
  Offset hot_rows = 0;    ///< of this rank's shard, in device memory; the rest in host memory
  Offset head_rows = 0;   ///< replicated, the dense ones among them; all rows: nothing but the head's all-reduce moves
  kernels::RowType type = kernels::RowType::fp32, wire_type = kernels::RowType::fp32;
  kernels::Optimizer optimizer = kernels::Optimizer::sgd;
  kernels::GradientCodec codec;
  Offset feedback_rows = 0;
  int replicate_every = 1;
  bool deterministic = false;  ///< sums are added by one thread, in order
  bool frozen_rows = false;    ///< some rows never move: a bit a row, see ShardedTables::start_from

  int slices() const { return deterministic ? kSlices : 1; }  ///< of a step, see Batch
  int tables() const { return one_table ? 1 : 2; }
  /// Of a group, rows whose centre vector is a row of its own.
  Offset centre_rows(const Batch::Group& group) const { return one_table ? 0 : group.centre_rows; }
  /// Vectors that a group's positions stand for.
  Offset positions(const Batch::Group& group) const {
    return tables() * group.node_positions + group.negative_positions;
  }
};

/// What `config` asks for. hot_rows is left to the caller.
TablesShape tables_shape(const Config& config, Offset nodes, Offset step_walks, Offset dense_rows = 0);

/// Bytes for a purpose of the ledger: of the device's, or (on_host) of host memory's.
struct MemoryNeed {
  std::string purpose;
  Offset bytes = 0;
  bool on_host = false;
};

/// How large a rank's tables and a step's buffers are, in values or rows: what ShardedTables allocates and a plan adds
/// up. For what others ask of an owner there is room for twice its even share; make_room adds to it where a step asks
/// for more.
struct TablesSize {
  TablesSize() = default;
  TablesSize(const TablesShape& shape, const RankPart& part, Device device);

  /// What depends on how many rows a step asks of this rank: by all compute ranks, and by others alone.
  void make_room(Offset asked, Offset asked_by_others, const TablesShape& shape, const RankPart& part, Device device);

  Offset local_rows = 0;  ///< of the rank's shard; 0 where all rows are replicated
  int state_columns = 0;  ///< of a row's optimizer state
  Offset slots = 0;       ///< the most distinct rows of a step's batch; 0 where the rank does not compute
  Offset asked = 0;       ///< rows that compute ranks ask of this one for a step, at most
  Offset asked_by_others = 0, distinct = 0;        ///< of those
  Offset positions = 0, bounds = 0, own_rows = 0;  ///< copies of the placement
  Offset head_rows = 0;                            ///< of each replicated table
  Offset frozen_words = 0, frozen_head_words = 0;  ///< of a bit a row
  Offset kept_rows = 0;                            ///< of each table of error feedback
  Offset scratch = 0;                              ///< bytes
  Offset outgoing = 0, incoming = 0;               ///< bytes

  std::vector<MemoryNeed> tables(const TablesShape& shape) const;  ///< of ShardedTables
  std::vector<MemoryNeed> step(const TablesShape& shape, const RankPart& part, Device device) const;  ///< of StepRows
  static Offset bytes_read_back(Offset rows, int dim);  ///< held by gather_centres for so many rows of this rank
};

/// A model's one or two tables, sharded over the ranks of a placement, with every row's one home, and the head
/// replicated on all.
///
/// Order    one thread makes the calls, on exec's stream; each returns when its work is done
/// Ranks    all calls but start_from, parts, make_step, owners and the getters are collective, in the same order on
/// every rank Throws   what Comm throws
class ShardedTables {
 public:
  /// Rows start as a table of one rank would, whatever the placement. control moves host memory; data moves exec's
  /// memory (on the CPU the same object). host: the ledger of cold rows. `placement` must outlive this.
  ShardedTables(const TablesShape& shape, const Placement& placement, std::uint64_t seed, Comm& control, Comm& data,
                MemoryLedger& host, const Exec& exec);

  /// Before the first step, alike on every rank: values for this rank's rows and the head's, and which of those rows'
  /// vectors never move. Expects shape.frozen_rows where rows are frozen. Not collective.
  void start_from(const StartRows& start);

  /// This rank's rows, and on rank 0 the head's. Between steps.
  std::vector<TablesPart> parts() const;

  /// Updates the head by what it has gathered since its last update, which else waits for replicate_every. Collective.
  void update_head(const kernels::UpdateRule& rule);

  std::unique_ptr<StepRows> make_step() const;  ///< a step's buffers
  kernels::Owners owners() const;               ///< on exec's device, for Batch::deduplicate
  Offset head_rows() const { return shape_.head_rows; }

  /// Asks for the rows of step.batch, serves the others, fills step.centres and step.contexts. Three all-to-alls:
  /// counts and reports, ids, rows. Returns every rank's report, each with what its counters grew by before this step.
  std::vector<RankReport> fetch(StepRows& step, const RankReport& mine);

  /// Sends the step's gradients home, sums what came, steps every row once by `rule`, clears the step's gradients. One
  /// all-to-all, and every replicate_every calls the head's all-reduce.
  void push(StepRows& step, const kernels::UpdateRule& rule);

  /// out <- the centre rows (of one table: the rows) of global rows first, first + 1, ..., on rank 0 (host memory).
  /// Others pass rows without data.
  void gather_centres(Offset first, Rows<float> out);

  const StoreCounters& counters() const { return counters_; }  ///< of this rank, since the start
  /// What no report of this rank has told yet; told with that.
  StoreCounters tell_counters() {
    const StoreCounters untold = counters_ - told_;
    told_ = counters_;
    return untold;
  }
  const kernels::UpdateTotals& updates() const { return updates_; }             ///< since the start
  kernels::UpdateTotals take_updates() { return std::exchange(untaken_, {}); }  ///< since the last call

 private:
  void make_room(StepRows& step);
  void allocate_exchange();
  void ask(StepRows& step);
  void serve(StepRows& step);
  void take(StepRows& step);
  void count(const StepRows& step);
  void count_homes(const StepRows& step);
  void send_gradients(StepRows& step);
  void update_rows(StepRows& step, const kernels::UpdateRule& rule);
  void push_head(StepRows& step, const kernels::UpdateRule& rule);
  void pass_head(const std::function<void()>& add_own);
  void sum_head();
  void step_head(const kernels::UpdateRule& rule);
  void step_rows(const ShardTable& table, Span<const RowId> rows, Rows<const float> gradients,
                 Span<const float> curvature, const kernels::UpdateRule& rule);
  void initialize(const kernels::StoredRows& table, const kernels::RowSequence& rows, float scale, std::uint64_t seed);
  void freeze(const StartRows& start, const kernels::RowSequence& rows, Offset count, Buffer<std::uint32_t>& bits);
  bool is_own(int owner) const { return owner == own_; }
  bool has_shards() const { return shape_.head_rows < placement_.rows(); }
  std::vector<NamedTable> tables_of(const ShardTable& vectors, const ShardTable& contexts) const;
  const ShardTable& embeddings() const { return shape_.one_table ? contexts_ : centres_; }
  const ShardTable& head_embeddings() const { return shape_.one_table ? head_contexts_ : head_centres_; }
  int dim() const { return shape_.tile.dim; }

  TablesShape shape_;
  const Placement& placement_;
  Comm &control_, &data_;
  Exec exec_, writer_;  // writer_: one thread where deterministic
  TablesSize size_;
  int own_ = -1;                        // this rank among the owners
  kernels::RowSequence own_sequence_;   // this rank's global rows, on the device
  Buffer<RowId> positions_, own_rows_;  // copies of the placement's on the device
  Buffer<Offset> bounds_;
  ShardTable centres_, contexts_, head_centres_, head_contexts_;
  Buffer<std::uint32_t> frozen_, head_frozen_;     // bits of embeddings() and head_embeddings()
  Buffer<float> head_gradients_, head_curvature_;  // [tables head, dim], [tables head]
  Buffer<RowId> head_list_;                        // 0, 1, ... head - 1
  Buffer<float> kept_centres_, kept_contexts_;     // error feedback
  Buffer<float> sums_, sum_curvature_;             // [tables asked, dim], [tables asked]
  Buffer<char> outgoing_, incoming_, scratch_;
  Buffer<kernels::UpdateTotals> totals_;
  Offset pushes_ = 0;
  StoreCounters counters_, told_;
  kernels::UpdateTotals updates_, untaken_;
};

}  // namespace gs
