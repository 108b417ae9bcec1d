// A graph: text and arrays in, compressed sparse rows in a versioned store out.
#pragma once

#include <optional>

#include "graphscale/files.hpp"
#include "kernels/views.hpp"

namespace gs {

/// Compressed sparse rows: the arcs of `row` are targets[offsets[row] .. offsets[row + 1]), ascending.
/// An undirected edge is two arcs, an undirected self-loop one.
struct Csr {
  Span<const Offset> offsets;  ///< [n + 1]
  Span<const RowId> targets;   ///< [arcs]
  Span<const float> weights;   ///< [arcs], or empty: every arc weighs 1
  bool directed = false;
  /// [arcs], or empty: of a knowledge graph, each triple an arc from head to tail; arcs of a head ascend by (tail,
  /// relation), none twice.
  Span<const RowId> relations{};
  Offset num_relations = 0;

  Offset num_nodes() const { return offsets.size ? offsets.size - 1 : 0; }
  Offset num_arcs() const { return targets.size; }
  Offset degree(Offset row) const { return offsets[row + 1] - offsets[row]; }
  Span<const RowId> neighbours(Offset row) const { return targets.subspan(offsets[row], degree(row)); }
  bool has_arc(RowId from, RowId to) const;  ///< binary search
};

/// offsets[i] = degrees[0] + ... + degrees[i - 1], in 64 bits; [n + 1]
std::vector<Offset> offsets_from_degrees(Span<const std::uint32_t> degrees);

/// The names of rows, as bytes. Integer names (canonical unsigned 64-bit decimal in every name) are kept as numbers.
class NodeNames {
 public:
  virtual ~NodeNames() = default;
  virtual Offset size() const = 0;
  virtual std::string name(Offset row) const = 0;
  virtual std::optional<RowId> find(std::string_view name) const = 0;
  /// Up to `count` names close to `name` (another case, a small edit distance, a longer one that begins so), nearest
  /// first, among the first two million rows; for messages.
  virtual std::vector<std::string> similar(std::string_view name, int count) const = 0;
};

/// Names that are views: of numbers [n], or of bytes and their bounds [n + 1]. `owner` keeps that memory alive; without
/// one the caller does. `find` builds a hash index at its first call (8 to 16 bytes a name); safe from any thread.
std::shared_ptr<NodeNames> names_of_numbers(Span<const std::uint64_t> numbers,
                                            std::shared_ptr<const void> owner = nullptr);
std::shared_ptr<NodeNames> names_of_bytes(Span<const char> bytes, Span<const Offset> bounds,
                                          std::shared_ptr<const void> owner = nullptr);

/// Names as bytes, one after another.
struct NameList {
  std::vector<char> bytes;
  std::vector<Offset> bounds{0};  ///< [n + 1]

  Offset size() const { return Offset(bounds.size()) - 1; }
  void add(std::string_view name) {
    bytes.insert(bytes.end(), name.begin(), name.end());
    bounds.push_back(Offset(bytes.size()));
  }
};
std::shared_ptr<NodeNames> names_of(NameList list);  ///< keeps the list

// ------------------------------------------------------------------------------------------------------------ ingest

/// What becomes of several edges between the same two nodes (undirected: in either direction).
enum class Duplicates { sum, max, first, keep };
enum class Header { detect, yes, no };

struct IngestOptions {
  /// Default: undirected, except that general MatrixMarket files alone make a directed graph.
  std::optional<bool> directed;
  bool weighted = false;  ///< read the third column as the edge's weight
  /// Read exactly three columns, head, relation, tail, into a graph with relations: always directed, unweighted, each
  /// triple once; `directed` = false, `weighted` or `duplicates` with it throw usage.
  bool triples = false;
  /// Default: sum where weighted, else first. An explicit sum of unweighted edges makes their number the weight.
  std::optional<Duplicates> duplicates;
  bool keep_self_loops = true;  ///< false: they are dropped, their nodes stay
  Delimiter delimiter = Delimiter::detect;
  Header header = Header::detect;
  bool drop_bad_weights = false;  ///< lines with a negative, NaN, infinite, unreadable or no weight: drop, not refuse
  std::string node_list;          ///< file of names, one a line; its nodes get rows though no edge names them
  int threads = 1;
};

/// What was read, and what became of it. Edges (or triples) are counted as the input wrote them, not as arcs.
struct IngestCounts {
  Offset bytes = 0;               ///< of the files, as on disk
  Offset lines = 0;               ///< all lines of text inputs
  Offset skipped_lines = 0;       ///< of those, blank lines and comments
  Offset header_lines = 0;        ///< of those, skipped as column headers
  Offset edges = 0;               ///< read
  Offset duplicate_edges = 0;     ///< of those, merged into an equal one (with `keep`: kept beside it); arcs
                                  ///< where a symmetric matrix becomes a directed graph
  Offset self_loops = 0;          ///< of those, from a node to itself
  Offset dropped_self_loops = 0;  ///< of those, dropped
  Offset dropped_weights = 0;     ///< lines dropped for their weight; not among `edges`
  Offset listed_only_nodes = 0;   ///< nodes that have a row, but no edge named them
};

/// A graph in memory, ready to be published.
struct BuiltGraph {
  std::vector<Offset> offsets;
  std::vector<RowId> targets;
  std::vector<float> weights;
  bool directed = false;
  /// Names by row: numbers [n] where every name is a canonical unsigned 64-bit integer, else bytes, bounds [n + 1].
  std::vector<std::uint64_t> name_numbers;
  std::vector<char> name_bytes;
  std::vector<Offset> name_bounds;
  /// Of a knowledge graph, else empty: see Csr. Names of relations are bytes even where all are integers.
  std::vector<RowId> relations;
  std::vector<char> relation_bytes;
  std::vector<Offset> relation_bounds;  ///< [relations + 1]

  Offset num_relations() const { return relation_bounds.empty() ? 0 : Offset(relation_bounds.size()) - 1; }
  Csr csr() const { return {offsets, targets, weights, directed, relations, num_relations()}; }
};

/// Edge lists, MatrixMarket and .npy pairs (told by their first bytes), any compression, into rows numbered by
/// descending degree (out plus in where directed), ties by name (integers first, by value, then others by bytes);
/// relations by descending number of triples, ties likewise.
/// The result is the same for any order of lines and number of threads (`first` alone looks at line order).
/// Throws input with file and line; memory where the edges cannot fit.
BuiltGraph ingest(const std::vector<fs::path>& files, const IngestOptions& options, IngestCounts& counts);

/// Edges as pairs of provisional ids: numbers in [0, nodes) in any order.
struct EdgeList {
  std::vector<RowId> from, to;
  std::vector<float> weight;      ///< as long as `from`, or empty
  bool both_ways = false;         ///< each edge is two arcs even where the graph is directed (a symmetric matrix)
  std::vector<RowId> relation{};  ///< as long as `from`, or empty: provisional ids of relations; then no weights
};

// ------------------------------------------------------------------------------------------------------------- store

// STORE/v0001/{meta.json, offsets.npy, targets.npy, weights.npy, name_numbers.npy | name_bytes.npy + name_bounds.npy}
// and STORE/CURRENT, a text file that holds the current version's name. A version is written under another name and
// renamed into place; publishing and rollback then rename a new CURRENT over the old one and change nothing else.
// A knowledge graph's version also has {relations.npy, relation_bytes.npy, relation_bounds.npy}. Its format is 2, so
// that programs that know no relations refuse it; without relations it is 1.

struct GraphStatistics {
  Offset self_loops = 0;         ///< arcs from a node to itself
  Offset isolated = 0;           ///< nodes without any arc, in or out
  Offset sinks = 0;              ///< nodes that no walk leaves: no arc out, or (weighted) only arcs of weight 0
  Offset components = 0;         ///< connected without regard to direction
  Offset largest_component = 0;  ///< nodes in it
  double mean_degree = 0;        ///< arcs out of a node
  Offset degree_p50 = 0, degree_p90 = 0, degree_p99 = 0, degree_max = 0;  ///< nearest rank
};
GraphStatistics statistics(const Csr& graph, int threads);

/// Calls visit(name, value) once a statistic, in the order of the page; meta.json and `graph info` are its visitors.
template <class S, class Visit>
void each_statistic(S& s, Visit&& visit) {
  visit("self_loops", s.self_loops), visit("isolated", s.isolated), visit("sinks", s.sinks);
  visit("components", s.components), visit("largest_component", s.largest_component);
  visit("mean_degree", s.mean_degree), visit("degree_p50", s.degree_p50), visit("degree_p90", s.degree_p90);
  visit("degree_p99", s.degree_p99), visit("degree_max", s.degree_max);
}

struct VersionInfo {
  std::string id, created, parent, source, content_hash;  ///< created: UTC, ISO 8601; parent: empty for the first
  Offset num_nodes = 0, num_arcs = 0;
  Offset num_relations = 0;  ///< 0: no knowledge graph
  bool directed = false, weighted = false, current = false;
  GraphStatistics statistics;
  std::string damage;  ///< why its meta.json cannot be used; empty where it can
};

class Graph {
 public:
  /// Maps the current version, or the one named ("v0002"). Throws input: no store there, unknown version, a missing or
  /// damaged array (size, offsets not ascending, target or relation out of range, weight not finite), a newer format
  /// than this program's. Reads every array once. The graph stays usable while other versions are published.
  static Graph open(const fs::path& store, const std::string& version = "");

  Csr csr() const { return csr_; }
  const NodeNames& names() const { return *names_; }
  const NodeNames& relation_names() const { return *relation_names_; }  ///< none where the graph has no relations
  const VersionInfo& info() const { return info_; }
  BuiltGraph copy_names() const;  ///< a graph in memory with these names of nodes, no relations and no arcs

 private:
  std::map<std::string, NpyArray> arrays_;  // by file name
  Csr csr_;
  std::shared_ptr<NodeNames> names_, relation_names_;
  VersionInfo info_;
};

/// Adds a version to the store (made if missing) and makes it current; nothing is seen of it before it is whole. Two
/// publishers at once both succeed, the later one is current. `source` says what made it. Throws output. Where the disk
/// seems too full, that is said before the first byte is written.
VersionInfo publish(const fs::path& store, const BuiltGraph& graph, const std::string& source,
                    int threads = hardware_threads());

std::vector<VersionInfo> versions(const fs::path& store);  ///< oldest first; throws input where there is no store

/// Makes `version` current (empty: the current one's parent). Throws input: no such version, no parent, or damaged.
VersionInfo rollback(const fs::path& store, const std::string& version);

// ---------------------------------------------------------------------------------------------------------- difference

/// What has come, what has gone, and the first few of each by name.
struct GraphChanges {
  Offset added = 0, removed = 0;
  std::vector<std::string> first_added, first_removed;
};

/// The difference between two graphs. Nodes and relations are the same where their names are; arcs where both ends
/// (and the relation) are, an undirected edge being two. Without weights every arc weighs 1.
struct GraphDiff {
  GraphChanges nodes, relations;
  GraphChanges arcs;  ///< as "FROM TAB TO" or "HEAD TAB RELATION TAB TAIL"; an edge of two undirected graphs once
  Offset reweighted_arcs = 0;
  std::vector<std::string> first_reweighted;  ///< as arcs, with " TAB BEFORE TAB AFTER"
};

/// Lists have at most `list` entries, in the order of rows. Parallel arcs are matched by equal weights, what is left of
/// them in ascending order of weight. Memory: up to 20 bytes a node, and 32 an arc of the largest row of either.
GraphDiff diff(const Graph& before, const Graph& after, Offset list);

// -------------------------------------------------------------------------------------------------------- generators

struct GeneratorOptions {
  std::string kind = "rmat";  ///< rmat | er | sbm | ring | star
  Offset nodes = 1 << 10;
  Offset edges = 1 << 13;               ///< rmat, er, sbm; a ring has `nodes`, a star `nodes` - 1
  double a = 0.57, b = 0.19, c = 0.19;  ///< rmat: shares of the quadrants (low, low), (low, high), (high, low)
  int blocks = 4;                       ///< sbm: equal ranges of the nodes
  double inside_share = 0.9;            ///< sbm: share of edges inside a block
  std::uint64_t seed = 1;
  int threads = 1;
};

void check_generator(const GeneratorOptions& options);    ///< throws usage: names the option and its range
Offset generated_edges(const GeneratorOptions& options);  ///< edges in the generator's stream

/// Edges first .. first + from.size of the stream; edge i depends on (seed, i) alone. rmat may hold self-loops.
void generate_edges(const GeneratorOptions& options, Offset first, Span<RowId> from, Span<RowId> to);

/// The whole graph, undirected, duplicates merged, every one of `nodes` nodes a row, names 0 .. nodes - 1.
BuiltGraph generate(const GeneratorOptions& options);

/// Provisional ids to final rows: the last part of ingest and generate. `names` holds the names by provisional id, as
/// numbers or bytes, those of relations likewise, and no arcs. Of `options` only directed, duplicates, keep_self_loops
/// and threads are read, duplicates not where edges have relations: an edge is there once with each relation.
/// Throws memory where the arrays do not fit; input where a node has 2^32 arcs or a summed weight overflows a float.
BuiltGraph build_graph(EdgeList edges, BuiltGraph names, const IngestOptions& options, IngestCounts& counts);

// ----------------------------------------------------------------------------------------------------- known triples

/// Triples by their numbers in a graph, such as the rows of a validation or test file.
struct Triples {
  std::vector<RowId> heads, relations, tails;  ///< in the order of the file
  /// Lines that name what the graph does not have; they are not among the triples. A line may count in both.
  Offset left_out = 0, unknown_entity_lines = 0, unknown_relation_lines = 0;
  std::vector<std::string> unknown_entities, unknown_relations;  ///< the first few of them, none twice

  Offset size() const { return Offset(heads.size()); }
};

/// The lines HEAD RELATION TAIL of a text file (any compression; delimiter and header are found as by ingest). Throws
/// input with file and line: not three columns, an empty name.
Triples read_triples(const fs::path& path, const NodeNames& entities, const NodeNames& relations);

/// Triples of a graph and of further lists, sorted for look-up from either side, each once; host memory, 16 bytes a
/// triple and 16 an entity (8 more of either while it is built).
class TripleIndex {
 public:
  /// graph: with relations. further: triples among its entities and relations.
  explicit TripleIndex(const Csr& graph, const std::vector<const Triples*>& further = {},
                       int threads = hardware_threads());

  kernels::KnownTriples view() const;  ///< of this index's memory
  Offset size() const { return Offset(tails_.rows.size()); }
  bool contains(RowId head, RowId relation, RowId tail) const;

 private:
  /// The rows at the other end of each entity's triples, ascending by (relation, row).
  struct Side {
    std::vector<Offset> offsets;
    std::vector<RowId> rows, relations;
  };
  Side tails_, heads_;
};

// ------------------------------------------------------------------------------------------------------------- split

/// Unordered pairs of different nodes: nodes (nodes - 1) / 2, exact up to kMaxRows.
Offset pair_count(Offset nodes);

using NamePair = std::pair<std::string, std::string>;

struct EdgeSplit {
  BuiltGraph train;  ///< every node of the graph, rows numbered anew by the degrees that are left
  std::vector<NamePair> positives, negatives;  ///< held-out edges; as many non-edges
};

/// Holds out `test_share` of the pairs of different nodes that have an edge, at least one. A held-out pair takes all
/// its arcs along: both directions (directed: each that is there is a positive) and parallel ones. With `cover`, no
/// node loses its last neighbour (fewer are held out where that cannot be; said). Negatives are pairs of different
/// nodes without an edge of the whole graph in either direction, no pair twice; fewer where fewer exist (said). Ends on
/// every graph. Throws usage: test_share not in (0, 1); input: no edge between different nodes; a graph with relations.
EdgeSplit split_edges(const Graph& graph, double test_share, bool cover, std::uint64_t seed,
                      int threads = hardware_threads());

}  // namespace gs
