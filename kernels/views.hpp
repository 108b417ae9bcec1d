// What kernels read: views of device memory, and the shapes of their work. No owners, no logic of rooms.
#pragma once

#include "graphscale/core.hpp"
#include "kernels/philox.hpp"

namespace gs::kernels {

/// One slot of an alias table (Walker 1977, Vose 1991): keep the slot where coin < threshold, else take the alias.
/// A slot of probability 0 has threshold 0; every positive one at least 1.
struct AliasSlot {
  std::uint32_t threshold = 0;
  std::uint32_t alias = 0;
};

/// Global rows in the order of something's own numbering: a list, or first, first + step, ...
struct RowSequence {
  RowId first = 0, step = 1;
  Span<const RowId> list{};
  GS_HD RowId operator[](Offset i) const { return list.empty() ? RowId(first + i * step) : list[i]; }
  RowSequence from(Offset i) const {
    if (list.empty()) return {RowId(first + i * step), step, {}};
    return {first, step, list.subspan(i, list.size - i)};
  }
};

/// Rows to draw by an alias table: slot i stands for rows[i]. A share of them is drawn from a pool instead.
struct RowDraw {
  Span<const AliasSlot> slots;
  RowSequence rows{};
  Span<const RowId> pool{};  ///< nodes of a step; where kNoRow is met, the table is drawn from after all
  int pool_width = 0;        ///< of the pool's triples, of which heads and tails are drawn; 0: every place
  float pool_share = 0;      ///< below 1: exactly 0 or a multiple of 2^-32
};

/// A node's arcs in one word: first arc in the low bits, then kDistinctArcs, then the degree. kManyArcs: that stands in
/// `offsets`.
using PackedArcs = std::uint64_t;
inline constexpr int kFirstArcBits = 39, kDegreeShift = 40;
inline constexpr std::uint64_t kManyArcs = 0xFFFFFF;
/// May be set where walks are of second order, arcs are undirected, each weighs 1, and no two lead to the same node.
inline constexpr std::uint64_t kDistinctArcs = std::uint64_t(1) << kFirstArcBits;

/// A graph to walk on, on exec's device.
///
/// With biases other than 1 walks are of second order (Grover and Leskovec, "node2vec", 2016): from node v, come from
/// t, a walk goes to x in proportion to the arc's weight times return_bias (1 / p) where x = t, 1 where t has an arc to
/// x, out_bias (1 / q) elsewhere. The first step, and one from a node with no arc, know no t.
struct WalkGraph {
  Span<const PackedArcs> arcs;      ///< [n]; degree 0 where no arc can be walked (none, or all of weight 0)
  Span<const Offset> offsets;       ///< [n + 1]
  Span<const RowId> targets;        ///< [arcs]
  Span<const AliasSlot> arc_alias;  ///< [arcs], alias = an arc's place among its node's; empty: uniform
  float return_bias = 1, out_bias = 1;
  // Of walks of second order; lists of targets are then sorted.
  bool directed = true;              ///< false: every arc has its reverse, of equal weight
  Span<const float> weights{};       ///< [arcs]; empty: every arc weighs 1
  Span<const double> weight_sums{};  ///< [n] over a node's arcs, where there are weights

  GS_HD bool second_order() const { return return_bias != 1 || out_bias != 1; }
  GS_HD bool takes_near() const { return out_bias <= 1; }  ///< neighbours of t are the likelier ones
};

inline constexpr int kWalkTries = 32;  ///< proposals of a second-order step before it is drawn exactly

/// Walks of an epoch: first .. first + count, or the chosen ones. In each pass of n walks every node starts one, in a
/// seeded order.
struct WalkBatch {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  Offset first = 0, count = 0;
  int length = 0;               ///< nodes in a walk
  Span<const Offset> chosen{};  ///< [count]: these walks of the epoch instead; empty: first, first + 1 ...

  /// The epoch's numbers of the batch's walk i, and of its tile i: what draws are keyed by.
  GS_HD Offset walk(Offset i) const { return chosen.empty() ? first + i : chosen[i]; }
  GS_HD Offset tile(Offset i, int tiles_per_walk) const {
    return chosen.empty() ? first * tiles_per_walk + i
                          : chosen[i / tiles_per_walk] * tiles_per_walk + i % tiles_per_walk;
  }
};

/// What a unit of training is: the nodes that a sampler makes together, one item of a WalkBatch.
enum class TileKind : int {
  walk,     ///< l nodes in a row; contexts are those within the window
  edges,    ///< l / 2 edges, node 2 i -> node 2 i + 1; the context of a source is its target
  triples,  ///< triples: head, relation, tail, and where there is one the reciprocal relation
};

/// How walks are cut into tiles, and what a tile trains.
struct TileShape {
  TileKind kind = TileKind::walk;
  bool both_ways = false;  ///< of edges: the context of a target is its source, too
  int triple_width = 3;    ///< of triples: rows of one, see TripleShape
  int walk_length = 0;     ///< [l]
  int tiles_per_walk = 1;  ///< a tile's centres: ceil(l / tiles_per_walk) nodes of the walk
  int window = 0;
  bool shrink_window = true;
  int shared_negatives = 0;  ///< [s]
  float negatives = 0;       ///< [k] a pair, in expectation
  int dim = 0;

  GS_HD int centres() const { return (walk_length + tiles_per_walk - 1) / tiles_per_walk; }
  GS_HD int contexts() const { return centres() + 2 * window < walk_length ? centres() + 2 * window : walk_length; }
};

/// Loss and size of one tile: loss is a sum over its pairs, each with its negatives' share.
struct TileResult {
  float loss = 0;
  std::uint32_t pairs = 0;
};

/// Running sums over every tile trained.
struct TrainTotals {
  double loss = 0;
  std::uint64_t pairs = 0;
};

/// Where a batch's gradients are summed instead of being applied; empty: rows are trained in place.
struct TileGradients {
  Rows<float> centres, contexts;                    ///< like the tables; each row's sum of d loss / d row is added
  Span<float> centre_curvature, context_curvature;  ///< [rows]: adds a bound of the loss's curvature along the row
  GS_HD bool empty() const { return centres.data == nullptr; }
};

/// Skip-gram over a batch of tiles.
struct TileBatch {
  TileShape shape;
  WalkBatch walks;                ///< keys the window draws
  Span<const RowId> nodes;        ///< [walks.count, l]; kNoRow after an early end
  Span<const RowId> negatives;    ///< [walks.count * tiles_per_walk, s]
  Rows<float> centres, contexts;  ///< the two tables, [n, dim], updated in place where there are no gradients
  float learning_rate = 0;        ///< of training in place
  float curvature_limit = 0;      ///< of training in place, see tile.hpp; 0: steps are never shortened
  Span<TileResult> results;       ///< [walks.count * tiles_per_walk]
  TileGradients gradients{};
};

// ---------------------------------------------------------------------------------------------------- triples

/// What a triple's vectors score, larger is likelier. Complex vectors of dim real numbers have their real parts in the
/// first dim / 2 columns. h, r, t: rows of head, relation and tail.
enum class Score : int {
  transe_l1,  ///< -|h + r - t|_1 (Bordes et al., 2013)
  transe_l2,  ///< -|h + r - t|_2
  distmult,   ///< sum over columns of h r t (Yang et al., 2015)
  complex,    ///< Re sum of h r conj(t) (Trouillon et al., "ComplEx", 2016)
  rotate,     ///< -sum of |h e^(i r) - t|; r: phases, in the first dim / 2 columns (Sun et al., "RotatE", 2019)
};
GS_HD constexpr bool is_distance(Score score) {
  return score == Score::transe_l1 || score == Score::transe_l2 || score == Score::rotate;
}

/// Of a positive's score p and its unmasked negatives' scores n_s, each of weight w_s = k / s (s: all that the tile
/// shares), or k softmax(adversarial n)_s:
enum class TripleLoss : int {
  logistic,  ///< -log sigma(margin + p) - sum of w_s log sigma(-margin - n_s)
  margin,    ///< sum of w_s max(0, margin - p + n_s)
  softmax,   ///< -p + log(e^p + sum of w_s e^n_s)
};

/// The tiles of a knowledge graph's model. Every triple is a query twice: (head, relation, ?) against its tail and
/// (?, relation, tail) against its head; both share the tile's negatives. A query is a vector q with
/// score = q.e, or -distance(q, e), for every entity e.
struct TripleShape {
  Score score = Score::distmult;
  TripleLoss loss = TripleLoss::logistic;
  int dim = 0;
  int triples = 0;           ///< [t] of a tile
  int shared_negatives = 0;  ///< [s]
  float negatives = 1;       ///< [k]
  float margin = 0;          ///< of distances in the logistic loss, and of the margin loss
  float adversarial = 0;     ///< temperature of the negatives' weights, which carry no gradient; 0: equal weights
  float l2 = 0, n3 = 0;      ///< adds l2 / 2 |x|^2 and n3 / 3 sum |x_c|^3 for each of a triple's three rows (moduli
                             ///< where complex; Lacroix et al., 2018); not of phases
                             ///< and for a reciprocal relation's row where there is one
  int reciprocal = 0;        ///< relations; where not 0, (?, r, t) is asked as (t, r + reciprocal, ?)

  /// Rows of a triple: head, relation, tail, and the reciprocal relation where there is one.
  GS_HD int width() const { return reciprocal > 0 ? 4 : 3; }

  GS_HD int queries() const { return 2 * triples; }
};

/// Which triples are known, to mask them as negatives: the tails of (head, relation) and the heads of (tail, relation).
struct KnownTriples {
  Span<const Offset> tail_offsets, head_offsets;     ///< [entities + 1]
  Span<const RowId> tails, heads;                    ///< [triples] by (head, relation, tail) and (tail, relation, head)
  Span<const RowId> tail_relations, head_relations;  ///< [triples]
  GS_HD bool empty() const { return tails.empty(); }
};

/// One step over a batch of tiles. Relations are rows 0 .. relations of the same table as entities.
struct TripleBatch {
  TripleShape shape;
  WalkBatch tiles;              ///< count tiles of width t nodes
  Span<const RowId> nodes;      ///< [tiles.count, t, width] a triple's rows; kNoRow where a tile is not full
  Span<const RowId> negatives;  ///< [tiles.count, s]
  Rows<float> rows;             ///< [n, dim], updated in place where there are no gradients
  Span<float> squares;          ///< [n] in place: Adagrad's sums, see Optimizer; empty: SGD. A row has a gradient for
                                ///< every place that holds it: a tile adds all to the sums, then all make their steps
  float learning_rate = 0, epsilon = 1e-8f;  ///< of training in place
  Span<TileResult> results;                  ///< [tiles.count]; pairs counts queries
  /// Summed instead; only `contexts` and `context_curvature` (which stays as it is) are used.
  TileGradients gradients{};
  KnownTriples known{};             ///< empty: a negative is masked only where it is the query's own answer
  Span<const RowId> global_rows{};  ///< of nodes and negatives that are slots, what `known` is asked by; empty: rows
  RowId first_entity = 0;           ///< the row of entity 0, in `known`'s numbers

  GS_HD bool in_place() const { return gradients.contexts.data == nullptr; }
};

/// Entities ranked for queries: see Ops::make_queries.
struct TripleQuery {
  RowId entity = 0, relation = 0;  ///< of the known side
  bool asks_head = false;          ///< (?, relation, entity); else (entity, relation, ?)
};

/// Triples to train, in an order of their own in every epoch.
struct TripleList {
  Span<const RowId> heads, relations, tails;  ///< [m] rows of the table
  int reciprocal = 0;                         ///< see TripleShape: a fourth row of each
};

// ---------------------------------------------------------------------------------------------------- sharded tables

/// Which storage rank owns a row, and the row's number there: row % count and row / count, or, where rows were placed
/// by a partitioner, by each row's position among the owners' consecutive ranges.
struct Owners {
  int count = 1;
  RowId first = 0;                ///< rows below have no owner: they are replicated. Positions count from it
  Span<const RowId> positions{};  ///< [n]; empty: cyclic
  Span<const Offset> bounds{};    ///< [count + 1] first position of each owner; empty: cyclic

  GS_HD int owner(RowId row) const {
    if (positions.empty()) return int((row - first) % RowId(count));
    const Offset position = positions[row - first];
    int low = 0, high = count;  // bounds[low] <= position < bounds[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (bounds[middle] <= position ? low : high) = middle;
    }
    return low;
  }
  GS_HD RowId local_row(RowId row) const {
    if (positions.empty()) return (row - first) / RowId(count);
    return RowId(Offset(positions[row - first]) - bounds[owner(row)]);
  }
};

/// A walker at the rank that owns its node.
struct Walker {
  Offset walk = 0;  ///< of the epoch; keys its draws
  RowId local_row = 0;
  std::uint32_t step = 0;  ///< the place in the walk that it moves to: 1 .. l - 1
  // Of walks of second order:
  RowId from = kNoRow;            ///< t, a global row; kNoRow: the walk starts here
  std::uint32_t from_degree = 0;  ///< t's arcs, or the most that fit
};

/// What a walker of second order does next, as far as its node's owner knows: it goes to the first of its asked rows
/// that is a neighbour of t (of WalkGraph::takes_near(); else: that is none), or else to `next`.
struct Move {
  RowId next = kNoRow;       ///< kNoRow: no arc leads on, or
  std::uint32_t degree = 0;  ///< of its node, or the most that fit
  std::uint16_t asked = 0;
  bool is_open = false;  ///< draw_moves draws it
};

/// Has the node an arc to this global row?
struct ArcQuestion {
  RowId local_row = 0, target = 0;
};

enum class RowType : int { fp32, fp16, bf16 };
GS_HD constexpr int bytes_of(RowType type) { return type == RowType::fp32 ? 4 : 2; }

/// Rows of one table that a rank keeps, each in one of two homes: local rows below hot_rows in device memory, the rest
/// in host memory that the device reads and writes through UVA. On the CPU both are RAM.
struct StoredRows {
  RowType type = RowType::fp32;
  int dim = 0;
  Offset stride = 0;  ///< values from one row to the next
  Offset count = 0, hot_rows = 0;
  void *hot = nullptr, *cold = nullptr;

  StoredRows() = default;
  GS_HD StoredRows(RowType t, int columns, Offset step, Offset rows, Offset hot_count, void* hot_home, void* cold_home)
      : type(t), dim(columns), stride(step), count(rows), hot_rows(hot_count), hot(hot_home), cold(cold_home) {}
  GS_HD StoredRows(Rows<float> rows)  // one home
      : StoredRows(RowType::fp32, rows.dim, rows.stride, rows.count, rows.count, rows.data, nullptr) {}

  StoredRows from(Offset first) const {
    StoredRows rest(*this);
    (first < hot_rows ? rest.hot : rest.cold) = row(first);
    rest.count -= first, rest.hot_rows = first < hot_rows ? hot_rows - first : 0;
    return rest;
  }

  GS_HD void* row(Offset local) const {
    return local < hot_rows ? static_cast<char*>(hot) + local * stride * bytes_of(type)
                            : static_cast<char*>(cold) + (local - hot_rows) * stride * bytes_of(type);
  }
};

/// Two lists of rows to be made unique together: rows of the first need both tables, the others only the contexts.
struct RowLists {
  Span<const RowId> first, second;  ///< walk nodes (kNoRow: none), negatives
  /// Where a slice of each list ends, [slices] each, host memory; empty: one slice. A row is unique within its slice,
  /// and every row counts as one of the first list: what makes sums the same however slices lie on ranks.
  std::vector<Offset> first_ends{}, second_ends{};
};

/// Distinct rows in groups: group 0 the replicated head (rows below head_rows), group 1 + o those of owner o. In a
/// group rows of the first list come first. A slot is a place in `rows`.
struct UniqueRows {
  Span<RowId> rows;                       ///< [capacity >= distinct rows]
  Span<RowId> local_rows;                 ///< [capacity] their numbers at the owner; of the head, the rows themselves;
                                          ///< the same memory as `rows` where both hold the same (one owner)
  Span<RowId> first_slots, second_slots;  ///< as long as the lists; kNoRow stays kNoRow
  Span<char> scratch;                     ///< [unique_scratch_bytes] or more, aligned to 16; nothing is kept in it
};
struct GroupCounts {
  Offset rows = 0, first_rows = 0;                   ///< distinct ones
  Offset first_positions = 0, second_positions = 0;  ///< places in either list that hold them
};

/// Scratch of unique_rows for `positions` in both lists and `capacity` distinct rows. CPU: the rows as they are found,
/// and a hash table of 8-byte entries, at most half full. CUDA: keys and positions of a radix sort, each twice; runs;
/// three arrays to sort the distinct rows; and CUB's own, below a quarter of a byte a position beside 1 MiB.
GS_HD constexpr Offset unique_scratch_bytes(Offset positions, Offset capacity, bool cuda) {
  if (cuda) return 4 * (5 * positions + 3 * capacity) + positions / 4 + (1 << 20);
  Offset entries = 16;
  while (entries < 2 * capacity) entries *= 2;
  return 8 * entries + 4 * capacity;
}

/// How gradients travel. A coded row is its values, then its curvature (float32); each part is padded with zeros to
/// whole words. A gradient that is not finite is not finite either when decoded: in that column (none, fp16, topk), in
/// the 32 columns' of its sign (onebit), or in all (int8). So is one that fp16 cannot hold.
enum class Compression : int {
  none,    ///< float32 [dim]
  fp16,    ///< fp16 [dim], rounded to the nearest
  int8,    ///< scale = largest size / 127, then [dim] bytes: value / scale, rounded to the nearest
  topk,    ///< the `keep` values of largest size, of equal ones the first: float32 [keep], then columns uint16 [keep]
  onebit,  ///< for each 32 columns: means of the values below 0 and of the others, a bit a column: set for the others
};
struct GradientCodec {
  Compression kind = Compression::none;
  int dim = 0;
  int keep = 0;  ///< topk only: from 1 to dim
  GS_HD int row_bytes() const {
    const int none = 4 * dim, fp16 = (2 * dim + 3) / 4 * 4, int8 = 4 + (dim + 3) / 4 * 4;
    const int topk = 4 * keep + (2 * keep + 3) / 4 * 4, onebit = (dim + 31) / 32 * 12;
    return 4 + (kind == Compression::none   ? none
                : kind == Compression::fp16 ? fp16
                : kind == Compression::int8 ? int8
                : kind == Compression::topk ? topk
                                            : onebit);
  }
};

/// What topk and onebit left out of earlier gradients of a row, added to its next one (error feedback; Seide et al.,
/// "1-bit stochastic gradient descent", 2014): rows below residual.count have one, of others what is left out is lost.
/// Empty: none. Other codecs do not touch it.
struct Feedback {
  Rows<float> residual;    ///< [rows, dim]
  Span<const RowId> rows;  ///< [n] the coded gradients' global rows, none twice unless exec has one thread on the CPU
};

/// How a row takes its gradient g, once clipped and shortened; t counts the row's own steps.
enum class Optimizer : int {
  sgd,       ///< row -= rate g
  momentum,  ///< velocity <- momentum velocity + g; row -= rate velocity
  adagrad,   ///< sum <- sum + mean over columns of g^2; row -= rate g / (sqrt(sum) + epsilon); one sum a row
  adam,      ///< Kingma and Ba, "Adam", 2015, with its two corrections by t; lazy: rows without gradient stand still
};

/// How a row takes one summed gradient. Optimizer state is a row of `state_columns` float32.
struct UpdateRule {
  Optimizer optimizer = Optimizer::sgd;
  float learning_rate = 0;
  float momentum = 0.9f;         ///< momentum's factor; Adam's decay of the first moment
  float second_moment = 0.999f;  ///< Adam's decay of the second moment
  float epsilon = 1e-8f;
  float weight_decay = 0;     ///< decoupled: row -= learning_rate * weight_decay * row
  float clip_gradient = 0;    ///< largest L2 norm of a row's gradient; 0: any
  float curvature_limit = 0;  ///< the gradient is shortened where learning_rate * curvature exceeds this; 0: never
  float max_row_step = 0;     ///< largest L2 norm of a row's step; 0: any
  std::uint64_t seed = 0;     ///< of stochastic rounding, keyed by (seed, step, row, column)
  std::uint32_t step = 0;
  RowSequence rows{};  ///< the local rows' global ones, which key the rounding: the same bits wherever a row lies
  Span<const std::uint32_t> frozen{};  ///< local rows that never move: bit local % 32 of word local / 32; empty: none

  GS_HD bool is_frozen(RowId local) const { return !frozen.empty() && (frozen[local / 32] >> (local % 32) & 1) != 0; }
};
/// Words of a bit a row.
GS_HD constexpr Offset bit_words(Offset rows) { return (rows + 31) / 32; }

GS_HD constexpr int state_columns(Optimizer optimizer, int dim) {
  return optimizer == Optimizer::sgd        ? 0
         : optimizer == Optimizer::momentum ? dim
         : optimizer == Optimizer::adagrad  ? 1
                                            : 2 * dim + 1;  // Adam: two moments and the row's number of steps
}

/// Sums over the rows updated.
struct UpdateTotals {
  double squared_gradient = 0;
  std::uint64_t rows = 0, clipped = 0;          ///< clipped: by clip_gradient or max_row_step
  double gradient_norms = 0, largest_norm = 0;  ///< the sum of the rows' L2 norms, and the largest

  UpdateTotals& operator+=(const UpdateTotals& other) {
    squared_gradient += other.squared_gradient, rows += other.rows, clipped += other.clipped;
    gradient_norms += other.gradient_norms;
    if (other.largest_norm > largest_norm) largest_norm = other.largest_norm;
    return *this;
  }
};

}  // namespace gs::kernels
