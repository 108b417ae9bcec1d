#include <algorithm>
#include <new>

#include "src/graph/build_graph.hpp"
#include "src/graph/decimal.hpp"
#include "src/graph/edge_parser.hpp"
#include "src/graph/node_order.hpp"

namespace gs {
namespace {

constexpr Offset kBlocksBetweenMemoryChecks = 64;

/// Names without an edge to ids, a batch at a time.
class NodeBatch {
 public:
  explicit NodeBatch(IdMap& ids) : ids_(ids) {}

  void add(std::string_view name) {
    if (const auto number = canonical_number(name)) {
      batch_.add(*number, count_++);
    } else {
      batch_.add(words_.emplace_back(name), count_++);
    }
    if (count_ == kMost) flush();
  }

  void flush() {
    unused_.resize(count_);
    ids_.resolve(batch_, unused_.data());
    words_.clear();
    count_ = 0;
  }

 private:
  static constexpr std::uint32_t kMost = 1 << 16;
  IdMap& ids_;
  IdMap::Batch batch_;
  std::deque<std::string> words_;
  std::vector<RowId> unused_;
  std::uint32_t count_ = 0;
};

/// One run of ingest: blocks are read and parsed on all threads, kept in input order, then built into rows.
class Ingest {
 public:
  Ingest(const std::vector<fs::path>& files, const IngestOptions& options, IngestCounts& counts)
      : options_(options), counts_(counts), threads_(std::max(1, options.threads)), reader_(files, options) {
    for (const fs::path& file : files) {
      std::error_code unknown;  // a pipe has no size: then there is no share and no ETA
      const auto bytes = fs::file_size(file, unknown);
      if (!fs::exists(file)) throw Error(Fault::input, cat(file.string(), ": no such file"));
      if (!unknown) total_bytes_ += Offset(bytes);
    }
  }

  BuiltGraph run() {
    read_edges();
    say_ignored_columns();
    check_entries();
    const bool directed = decide_direction();
    const Offset named = ids_.size();
    add_matrix_nodes();
    add_listed_nodes();
    counts_.listed_only_nodes = ids_.size() - named;
    if (ids_.size() == 0) fail_without_edges();

    IngestOptions options = options_;
    options.directed = directed;
    options.threads = threads_;
    std::vector<EdgeList> edges;
    for (ParsedBlock& block : blocks_) edges.push_back(std::move(block.edges));
    blocks_ = {};
    BuiltGraph names = ids_.take_names(threads_);
    add_relation_names(names);
    return build_rows(std::move(edges), std::move(names), options, counts_);
  }

 private:
  struct Failure {
    Offset block;
    const EdgeFile* file;
    BadLine line;              // where error is empty
    std::exception_ptr error;  // anything else
  };

  // ------------------------------------------------------------------------------------------------------ reading

  void read_edges() {
    Progress progress("read", "bytes", total_bytes_);
    start_s_ = now_s();
    on_threads(threads_, [&](int) { read_blocks(progress); });
    if (!failures_.empty()) fail_first();
    progress.finish(rate());
  }

  void read_blocks(Progress& progress) {
    EdgeParser parser(ids_, relation_ids_, options_);
    Block block;
    try {
      while (!failed_ && reader_.next(block)) {
        ParsedBlock parsed;
        parser.parse(block, parsed);
        progress.advance(block.file_bytes, keep(block, std::move(parsed)));
      }
    } catch (const BadLine& line) {
      fail({block.number, block.file, line, nullptr});
    } catch (...) {
      fail({block.number, block.file, {}, std::current_exception()});
    }
  }

  /// Puts the block in its place. Returns the reading rate, for the progress line.
  std::string keep(const Block& block, ParsedBlock parsed) {
    const std::lock_guard lock(mutex_);
    counts_.bytes += block.file_bytes;
    counts_.lines += parsed.lines;
    counts_.skipped_lines += parsed.skipped_lines;
    counts_.header_lines += parsed.header_lines;
    counts_.edges += Offset(parsed.edges.from.size());
    counts_.dropped_weights += parsed.dropped_weights;
    if (block.number >= Offset(blocks_.size())) blocks_.resize(std::size_t(block.number) + 1);
    blocks_[std::size_t(block.number)] = std::move(parsed);
    if (block.number % kBlocksBetweenMemoryChecks == kBlocksBetweenMemoryChecks - 1) check_memory();
    return rate();
  }

  std::string rate() const {
    return human_count(double(counts_.lines) / std::max(1e-9, now_s() - start_s_)) + " lines/s";
  }

  /// Refuses what cannot fit as soon as the part read tells: the rest is taken to have as many edges a byte, and no
  /// new nodes.
  void check_memory() const {
    if (total_bytes_ == 0 || counts_.bytes == 0) return;
    const double share = std::min(1.0, double(counts_.bytes) / double(total_bytes_));
    const auto edges = Offset(double(counts_.edges) / share);
    const bool sums = options_.duplicates == Duplicates::sum;
    const bool valued = options_.weighted || options_.triples;
    const Offset unread = (edges - counts_.edges) * (valued ? 12 : 8);
    const Offset arcs = options_.directed.value_or(false) ? edges : 2 * edges;
    const Offset build = build_bytes(edges, arcs, ids_.size(), valued, valued || sums);
    require_memory(unread + build, cat("ingest of about ", human_count(double(edges)), " edges"));
  }

  void fail(Failure failure) {
    failed_ = true;  // blocks already handed out are still parsed: the earliest bad line is the one reported
    const std::lock_guard lock(mutex_);
    failures_.push_back(std::move(failure));
  }

  [[noreturn]] void fail_first() {
    const Failure& first = *std::min_element(failures_.begin(), failures_.end(),
                                             [](const auto& a, const auto& b) { return a.block < b.block; });
    if (first.error) std::rethrow_exception(first.error);
    Offset line = first.line.line;  // every block before this one was parsed to its end
    for (Offset block = 0; block < std::min(first.block, Offset(blocks_.size())); ++block)
      if (blocks_[std::size_t(block)].file == first.file) line += blocks_[std::size_t(block)].lines;
    throw Error(Fault::input, cat(first.file->path.string(), ":", line, ": ", first.line.what));
  }

  // ------------------------------------------------------------------------------------------- what the blocks told

  void say_ignored_columns() const {
    const auto say_once = [&](auto told, const std::string& what) {
      const auto block = std::find_if(blocks_.begin(), blocks_.end(), told);
      if (block != blocks_.end()) log_warn(block->file->path.string() + ": " + what);
    };
    say_once([](const ParsedBlock& b) { return b.ignores_weights; },
             "column 3 looks like weights and is ignored; pass --weighted to use it");
    say_once(
        [](const ParsedBlock& b) { return b.ignores_columns; },
        cat("columns behind the ",
            options_.weighted ? "weight are ignored" : "second are ignored; --triples reads head, relation, tail"));
  }

  void check_entries() const {
    std::map<const EdgeFile*, Offset> entries;
    for (const ParsedBlock& block : blocks_)
      entries[block.file] += Offset(block.edges.from.size()) + block.dropped_weights;
    for (const EdgeFile& file : reader_.files())
      if (file.matrix && file.matrix->entries != entries[&file])
        throw Error(Fault::input, cat(file.path.string(), ":", file.matrix->size_line, ": claims ",
                                      file.matrix->entries, " entries, the file holds ", entries[&file]));
  }

  bool decide_direction() const {
    if (options_.directed) return *options_.directed;
    const EdgeFile *general = nullptr, *other = nullptr;
    for (const EdgeFile& file : reader_.files()) (file.matrix && !file.matrix->symmetric ? general : other) = &file;
    if (general && other)
      throw Error(Fault::input, cat(general->path.string(), " is a general matrix, which is a directed graph, and ",
                                    other->path.string(), " is not: pass --directed or --undirected"));
    if (general)
      log_info(general->path.string() + ": a general matrix, read as a directed graph (--undirected: as undirected)");
    return general != nullptr;
  }

  void add_relation_names(BuiltGraph& names) {
    if (relation_ids_.size() == 0) return;
    const BuiltGraph relations = relation_ids_.take_names(threads_);
    NameList list;
    for (Offset id = 0; id < name_count(relations); ++id) list.add(name_text(relations, RowId(id)));
    names.relation_bytes = std::move(list.bytes), names.relation_bounds = std::move(list.bounds);
  }

  // ----------------------------------------------------------------------------------------- nodes without an edge

  /// Rows of a matrix without an entry are nodes too. A size line may claim anything, so it is believed only up to a
  /// multiple of the entries that are really there.
  void add_matrix_nodes() {
    constexpr Offset kNodesPerEntry = 16, kAlwaysBelieved = 1024;
    for (const EdgeFile& file : reader_.files()) {
      if (!file.matrix) continue;
      const Offset nodes = file.matrix->nodes;
      if (nodes > kNodesPerEntry * file.matrix->entries + kAlwaysBelieved) {
        log_warn(cat(file.path.string(), ": rows without an entry of the ", with_commas(nodes),
                     " claimed get no row here; give those you want by --nodes"));
        continue;
      }
      NodeBatch batch(ids_);
      for (Offset node = 1; node <= nodes; ++node) batch.add(std::to_string(node));
      batch.flush();
    }
  }

  /// The list's columns are cut as the edges' are, so that one name is one field in both.
  void add_listed_nodes() {
    if (options_.node_list.empty()) return;
    Delimiter delimiter = options_.delimiter;
    for (const EdgeFile& file : reader_.files())
      if (delimiter == Delimiter::detect && !file.matrix && !file.pairs) delimiter = file.delimiter;
    TextTable list(options_.node_list, delimiter);
    NodeBatch batch(ids_);
    while (const std::vector<std::string_view>* fields = list.next()) {
      if (fields->size() != 1)
        list.fail(cat("a node list has one name a line, found ", fields->size(),
                      " columns (cut as in the edges' file; --delimiter sets the separator)"));
      if ((*fields)[0].empty()) list.fail("an empty name");
      batch.add((*fields)[0]);
    }
    batch.flush();
  }

  [[noreturn]] void fail_without_edges() const {
    const std::string path = reader_.files().empty() ? "ingest" : reader_.files().front().path.string();
    throw Error(Fault::input, cat(path, ": no edges found (", counts_.lines, " lines, ", counts_.skipped_lines,
                                  " of them blank or comments, ", counts_.header_lines, " headers, ",
                                  counts_.dropped_weights, " dropped for their weight)"));
  }

  const IngestOptions& options_;
  IngestCounts& counts_;
  const int threads_;
  Offset total_bytes_ = 0;
  BlockReader reader_;
  IdMap ids_, relation_ids_;

  std::mutex mutex_;                 // guards what follows, and counts_ while blocks are read
  std::vector<ParsedBlock> blocks_;  // by block number
  std::vector<Failure> failures_;
  std::atomic<bool> failed_{false};
  double start_s_ = 0;
};

void check_triple_options(const IngestOptions& options) {
  if (!options.directed.value_or(true))
    throw Error(Fault::usage, "--triples: a triple leads from its head to its tail; leave --undirected out");
  if (options.weighted)
    throw Error(Fault::usage,
                "--triples: the columns are head, relation, tail, without a weight; leave --weighted out");
  if (options.duplicates) throw Error(Fault::usage, "--triples: of equal triples one is kept; leave --duplicates out");
}

}  // namespace

BuiltGraph ingest(const std::vector<fs::path>& files, const IngestOptions& wanted, IngestCounts& counts) {
  counts = {};
  IngestOptions options = wanted;
  if (options.triples) {
    check_triple_options(options);
    options.directed = true;
  }
  try {
    return Ingest(files, options, counts).run();
  } catch (const std::bad_alloc&) {
    throw Error(Fault::memory, cat("ingest: memory ran out after ", with_commas(counts.edges),
                                   " edges: free some, or ingest fewer edges"));
  }
}

}  // namespace gs
