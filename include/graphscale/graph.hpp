// A graph: text and arrays in, compressed sparse rows in a versioned store out.
#pragma once

#include <optional>

#include "graphscale/files.hpp"

namespace gs {

/// Compressed sparse rows: the arcs of `row` are targets[offsets[row] .. offsets[row + 1]), ascending.
/// An undirected edge is two arcs, an undirected self-loop one.
struct Csr {
  Span<const Offset> offsets;  ///< [n + 1]
  Span<const RowId> targets;   ///< [arcs]
  Span<const float> weights;   ///< [arcs], or empty: every arc weighs 1
  bool directed = false;

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
  /// Up to `count` names close to `name` (edit distance, shared prefix), nearest first; for messages.
  virtual std::vector<std::string> similar(std::string_view name, int count) const = 0;
};

// ------------------------------------------------------------------------------------------------------------ ingest

enum class Duplicates { sum, max, first, keep };
enum class Header { detect, yes, no };
enum class Weights { detect, yes, no };  ///< detect: a third column is read as weights only where asked; said once

struct IngestOptions {
  bool directed = false;
  bool weighted = false;           ///< read the third column as the edge's weight
  std::optional<Duplicates> duplicates;  ///< default: sum where weighted, else first
  bool keep_self_loops = true;
  Delimiter delimiter = Delimiter::detect;
  Header header = Header::detect;
  bool drop_bad_weights = false;   ///< negative, NaN, infinite or unreadable weights: drop and count instead of refusing
  std::string node_list;           ///< file of names, one a line; its nodes get rows though no edge names them
  int threads = 1;
};

struct IngestCounts {
  Offset bytes = 0, lines = 0, skipped_lines = 0, header_lines = 0, edges = 0, duplicate_edges = 0, self_loops = 0,
         dropped_self_loops = 0, dropped_weights = 0, listed_only_nodes = 0;
};

/// A graph in memory, ready to be published.
struct BuiltGraph {
  std::vector<Offset> offsets;
  std::vector<RowId> targets;
  std::vector<float> weights;
  bool directed = false;
  /// Names by row: numbers where every name is a canonical unsigned 64-bit integer, else bytes with their bounds [n + 1].
  std::vector<std::uint64_t> name_numbers;
  std::vector<char> name_bytes;
  std::vector<Offset> name_bounds;

  Csr csr() const { return {offsets, targets, weights, directed}; }
};

/// Edge lists, MatrixMarket and .npy pairs (told by their first bytes), any compression, into rows numbered by
/// descending degree (out plus in where directed), ties by name (integers first, by value, then others by bytes).
/// The result is the same for any order of lines and number of threads (`first` alone looks at line order).
/// Throws input with file and line; memory where the edges cannot fit.
BuiltGraph ingest(const std::vector<fs::path>& files, const IngestOptions& options, IngestCounts& counts);

/// The same last part alone: provisional ids and edges to the final rows. edges: pairs of provisional ids.
struct EdgeList {
  std::vector<RowId> from, to;
  std::vector<float> weight;  ///< as long as `from`, or empty
};

// ------------------------------------------------------------------------------------------------------------- store

/// The store on disk: NAME/vNNNN/{meta.json, offsets.npy, targets.npy, weights.npy, name_*.npy} and NAME/CURRENT, a
/// file that holds the current version's name. Publishing and rollback rename CURRENT and nothing else.
struct VersionInfo {
  std::string id, created, parent, content_hash;
  Offset num_nodes = 0, num_arcs = 0;
  bool directed = false, weighted = false, current = false;
};

class Graph {
 public:
  /// Maps the current version, or the one named ("v0002"). Throws input: no store there, unknown version, a missing or
  /// damaged array (size, offsets not ascending, target out of range are checked), a newer format than this program's.
  static Graph open(const fs::path& store, const std::string& version = "");

  Csr csr() const { return csr_; }
  const NodeNames& names() const { return *names_; }
  const VersionInfo& info() const { return info_; }

 private:
  std::vector<NpyArray> arrays_;
  Csr csr_;
  std::shared_ptr<NodeNames> names_;
  VersionInfo info_;
};

/// Adds a version to the store (made if missing) and makes it current; nothing is seen of it before it is whole.
/// `source` says what made it, for meta.json. Returns the new version.
VersionInfo publish(const fs::path& store, const BuiltGraph& graph, const std::string& source);

std::vector<VersionInfo> versions(const fs::path& store);  ///< oldest first
/// Makes `version` current (empty: the current one's parent). Throws input: no such version or no parent.
VersionInfo rollback(const fs::path& store, const std::string& version);

struct GraphStatistics {
  Offset num_nodes = 0, num_arcs = 0, self_loops = 0, isolated = 0, sinks = 0, components = 0, largest_component = 0;
  double mean_degree = 0;
  Offset degree_p50 = 0, degree_p90 = 0, degree_p99 = 0, degree_max = 0;
};
GraphStatistics statistics(const Csr& graph, int threads);

// -------------------------------------------------------------------------------------------------------- generators

struct GeneratorOptions {
  std::string kind = "rmat";  ///< rmat | er | sbm | ring | star
  Offset nodes = 1 << 10, edges = 1 << 13;
  double a = 0.57, b = 0.19, c = 0.19;       ///< rmat
  int blocks = 4;                            ///< sbm
  double inside_share = 0.9;                 ///< sbm: share of edges inside a block
  std::uint64_t seed = 1;
  int threads = 1;
};

/// Edges first..first+count of the generator's stream, as (from, to) pairs; edge i depends on (seed, i) alone.
void generate_edges(const GeneratorOptions& options, Offset first, Span<RowId> from, Span<RowId> to);

/// The whole graph, undirected, duplicates merged, every one of `nodes` nodes a row, names 0..nodes-1.
BuiltGraph generate(const GeneratorOptions& options);

/// Provisional ids (any order) to final rows; the shared last part of ingest and generate. `names` as in BuiltGraph,
/// by provisional id, numbers or bytes.
BuiltGraph build_graph(EdgeList edges, BuiltGraph names, bool directed, std::optional<Duplicates> duplicates,
                       bool keep_self_loops, int threads, IngestCounts& counts);

// ------------------------------------------------------------------------------------------------------------- split

struct EdgeSplit {
  BuiltGraph train;                                   ///< names and rows numbered anew from what is left
  std::vector<std::pair<std::string, std::string>> positives, negatives;  ///< held-out edges; as many non-edges
};

/// Holds out `test_share` of the edges. No held-out edge, its reverse or a duplicate of it stays in train; with
/// `cover`, no node loses its last edge (fewer are held out where that cannot be; said). Negatives are pairs without an
/// edge of the whole graph in either direction, no pair twice; fewer where fewer exist (said). Ends on every graph.
EdgeSplit split_edges(const Graph& graph, double test_share, bool cover, std::uint64_t seed);

}  // namespace gs
