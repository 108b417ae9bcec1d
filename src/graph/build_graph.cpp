#include "src/graph/build_graph.hpp"

#include <malloc.h>

#include <algorithm>
#include <cmath>

#include "src/graph/node_order.hpp"
#include "src/graph/row_merge.hpp"

namespace gs {
namespace {

constexpr Offset kRowGrain = 1 << 10;  // rows a thread takes at a time: hubs make some costly

/// Edges to rows in five steps. Every step is cut by rows, never by edges: a row's arcs arrive in input order, and no
/// result depends on the number of threads.
class RowBuilder {
 public:
  RowBuilder(std::vector<EdgeList> blocks, BuiltGraph names, const IngestOptions& options, IngestCounts& counts)
      : blocks_(std::move(blocks)),
        names_(std::move(names)),
        directed_(options.directed.value_or(false)),
        keep_self_loops_(options.keep_self_loops),
        threads_(std::max(1, options.threads)),
        nodes_(name_count(names_)),
        counts_(counts) {
    for (const EdgeList& block : blocks_) {
      weighted_input_ = weighted_input_ || !block.weight.empty();
      triples_ = triples_ || !block.relation.empty();
    }
    policy_ = options.duplicates.value_or(weighted_input_ ? Duplicates::sum : Duplicates::first);
    weighted_ = weighted_input_ || (policy_ == Duplicates::sum && !triples_);
  }

  BuiltGraph build() {
    count_arcs();
    Progress progress("build", "arc steps", 3 * arcs());
    place_arcs(progress);
    merge_rows(progress);
    if (triples_) number_relations();
    const std::vector<RowId> ids = ids_by_row(ranking_degrees(), names_, threads_);
    BuiltGraph graph = renumber(ids, progress);
    progress.finish();
    return graph;
  }

 private:
  Offset arcs() const { return ends_.back(); }
  Offset row_begin(Offset row) const { return row == 0 ? 0 : ends_[std::size_t(row) - 1]; }

  /// Calls visit(row, target, edge) for the arcs of `block` whose row is in [first, last), in input order; edge: its
  /// place in the block.
  template <class Visit>
  void each_arc(const EdgeList& block, RowId first, RowId last, const Visit& visit) const {
    const bool both_ways = !directed_ || block.both_ways;
    const RowId rows = last - first;
    for (std::size_t i = 0; i < block.from.size(); ++i) {
      const RowId from = block.from[i], to = block.to[i];
      if (from == to && !keep_self_loops_) continue;
      if (from - first < rows) visit(from, to, i);
      if (both_ways && from != to && to - first < rows) visit(to, from, i);
    }
  }

  /// Step 1. Every thread looks at all edges and counts the arcs of its own rows: sequential reading at memory speed
  /// in return for no atomics and for writes that stay in one part of memory.
  void count_arcs() {
    std::vector<std::uint32_t> degrees(std::size_t(nodes_), 0);
    std::atomic<bool> overflow{false};
    parallel_for(threads_, threads_, 1, [&](Offset first, Offset last, int) {
      const auto begin = RowId(nodes_ * first / threads_), end = RowId(nodes_ * last / threads_);
      for (const EdgeList& block : blocks_)
        each_arc(block, begin, end, [&](RowId row, RowId, std::size_t) {
          if (++degrees[row] == 0) overflow = true;
        });
    });
    if (overflow) throw Error(Fault::input, "a node has 2^32 arcs or more, duplicates among them: merge them first");
    count_self_loops();
    ends_ = offsets_from_degrees(degrees);
  }

  void count_self_loops() {
    std::atomic<Offset> loops{0};
    parallel_for(threads_, Offset(blocks_.size()), 1, [&](Offset first, Offset last, int) {
      for (Offset b = first; b < last; ++b) {
        const EdgeList& block = blocks_[std::size_t(b)];
        Offset found = 0;
        for (std::size_t i = 0; i < block.from.size(); ++i) found += block.from[i] == block.to[i] ? 1 : 0;
        loops += found;
      }
    });
    counts_.self_loops += loops;
    if (!keep_self_loops_) counts_.dropped_self_loops += loops;
  }

  /// Step 2. Arcs to their rows, by the same rule; here rows are dealt out so that each thread has as many arcs.
  /// ends_[row] is the row's begin before and its end, which is the next one's begin, after.
  void place_arcs(Progress& progress) {
    Offset edges = 0;
    for (const EdgeList& block : blocks_) edges += Offset(block.from.size());
    require_memory(build_bytes(edges, arcs(), nodes_, weighted_input_ || triples_, weighted_ || triples_),
                   cat("building ", with_commas(arcs()), " arcs of ", with_commas(nodes_), " nodes"));
    targets_.resize(std::size_t(arcs()));
    if (weighted_) weights_.resize(std::size_t(arcs()));
    if (triples_) relations_.resize(std::size_t(arcs()));

    const auto first_row = [&](Offset thread) {  // of those that begin at or behind the thread's share of the arcs
      if (thread == threads_) return RowId(nodes_);
      return RowId(std::lower_bound(ends_.begin(), ends_.end() - 1, arcs() / threads_ * thread) - ends_.begin());
    };
    std::vector<RowId> bounds;
    for (int thread = 0; thread <= threads_; ++thread) bounds.push_back(first_row(thread));
    on_threads(threads_, [&](int thread) {
      for (const EdgeList& block : blocks_) {
        Offset placed = 0;
        each_arc(block, bounds[std::size_t(thread)], bounds[std::size_t(thread) + 1],
                 [&](RowId row, RowId target, std::size_t edge) {
                   const auto at = std::size_t(ends_[row]++);
                   targets_[at] = target;
                   if (weighted_) weights_[at] = block.weight.empty() ? 1.0f : block.weight[edge];
                   if (triples_) relations_[at] = block.relation[edge];
                   ++placed;
                 });
        progress.advance(placed);
      }
    });
    blocks_ = {};
    malloc_trim(0);  // thousands of block-sized pieces lie in several arenas: hand them back before the next arrays
  }

  /// Step 3. Each row sorted by target (and relation), parallel arcs merged; row r keeps the first kept_[r] of its
  /// arcs.
  void merge_rows(Progress& progress) {
    kept_.resize(std::size_t(nodes_));
    std::atomic<Offset> duplicate_arcs{0}, duplicate_loops{0};
    each_row_piece(progress, [&](Offset first, Offset last) {
      RowMerger merger(policy_, names_);
      for (Offset row = first; row < last; ++row) {
        const Offset begin = row_begin(row);
        const Span<RowId> targets(targets_.data() + begin, ends_[std::size_t(row)] - begin);
        kept_[std::size_t(row)] =
            std::uint32_t(triples_ ? merger.merge_triples(RowId(row), targets, relations_.data() + begin)
                                   : merger.merge(RowId(row), targets, weighted_ ? weights_.data() + begin : nullptr));
      }
      duplicate_arcs += merger.duplicate_arcs(), duplicate_loops += merger.duplicate_loops();
      return row_begin(last) - row_begin(first);
    });
    counts_.duplicate_edges += duplicate_arcs / (directed_ ? 1 : 2) + duplicate_loops;
  }

  /// Relations in their final order, in names_ and relations_.
  void number_relations() {
    BuiltGraph names;
    names.name_bytes = std::move(names_.relation_bytes), names.name_bounds = std::move(names_.relation_bounds);
    std::vector<Offset> triples(std::size_t(name_count(names)));
    for (Offset row = 0; row < nodes_; ++row)
      for (Offset i = row_begin(row), end = i + kept_[std::size_t(row)]; i < end; ++i)
        ++triples[relations_[std::size_t(i)]];
    const std::vector<RowId> ids = ids_by_row(triples, names, threads_);
    reorder_names(names, ids, threads_);
    names_.relation_bytes = std::move(names.name_bytes), names_.relation_bounds = std::move(names.name_bounds);
    std::vector<RowId> number_of(ids.size());
    for (std::size_t number = 0; number < ids.size(); ++number) number_of[ids[number]] = RowId(number);
    parallel_for(threads_, arcs(), 1 << 16, [&](Offset first, Offset last, int) {
      for (Offset i = first; i < last; ++i) relations_[std::size_t(i)] = number_of[relations_[std::size_t(i)]];
    });
  }

  /// Step 4. What rows are ranked by: arcs out, plus arcs in where the graph is directed.
  std::vector<Offset> ranking_degrees() const {
    std::vector<Offset> degrees(kept_.begin(), kept_.end());
    if (!directed_) return degrees;
    parallel_for(threads_, nodes_, kRowGrain, [&](Offset first, Offset last, int) {
      for (Offset row = first; row < last; ++row)
        for (Offset i = row_begin(row), end = i + kept_[std::size_t(row)]; i < end; ++i)
          std::atomic_ref(degrees[targets_[std::size_t(i)]]).fetch_add(1, std::memory_order_relaxed);
    });
    return degrees;
  }

  /// Step 5. Rows in their final order, targets by their final numbers; ids[row] is the provisional id.
  BuiltGraph renumber(const std::vector<RowId>& ids, Progress& progress) {
    BuiltGraph graph;
    graph.directed = directed_;
    reorder_names(names_, ids, threads_);
    std::vector<RowId> row_of(ids.size());
    std::vector<std::uint32_t> degrees(ids.size());
    for (std::size_t row = 0; row < ids.size(); ++row) row_of[ids[row]] = RowId(row), degrees[row] = kept_[ids[row]];
    graph.offsets = offsets_from_degrees(degrees);
    degrees = {};
    graph.targets.resize(std::size_t(graph.offsets.back()));
    if (weighted_) graph.weights.resize(graph.targets.size());
    if (triples_) graph.relations.resize(graph.targets.size());

    each_row_piece(progress, [&](Offset first, Offset last) {
      std::vector<std::uint64_t> arcs;
      Offset placed = 0;
      for (Offset row = first; row < last; ++row) {
        const RowId id = ids[std::size_t(row)];
        placed += ends_[id] - row_begin(id);
        const Offset from = row_begin(id), to = graph.offsets[std::size_t(row)];
        const Offset degree = graph.offsets[std::size_t(row) + 1] - to;
        RowId* const targets = graph.targets.data() + to;
        if (!weighted_ && !triples_) {
          for (Offset i = 0; i < degree; ++i) targets[i] = row_of[targets_[std::size_t(from + i)]];
          std::sort(targets, targets + degree);
          continue;
        }
        arcs.clear();
        for (auto i = std::size_t(from); i < std::size_t(from + degree); ++i) {
          const RowId target = row_of[targets_[i]];
          arcs.push_back(weighted_ ? packed_arc(target, weights_[i]) : packed_triple(target, relations_[i]));
        }
        std::sort(arcs.begin(), arcs.end());
        for (Offset i = 0; i < degree; ++i) {
          const std::uint64_t arc = arcs[std::size_t(i)];
          targets[i] = target_of(arc);
          if (weighted_) graph.weights[std::size_t(to + i)] = weight_of(arc);
          if (triples_) graph.relations[std::size_t(to + i)] = relation_of(arc);
        }
      }
      return placed;
    });
    graph.name_numbers = std::move(names_.name_numbers);
    graph.name_bytes = std::move(names_.name_bytes);
    graph.name_bounds = std::move(names_.name_bounds);
    graph.relation_bytes = std::move(names_.relation_bytes);
    graph.relation_bounds = std::move(names_.relation_bounds);
    return graph;
  }

  /// body(first, last) over all rows in pieces; it returns how many of the arcs placed it has dealt with.
  template <class Body>
  void each_row_piece(Progress& progress, const Body& body) const {
    parallel_for(threads_, nodes_, kRowGrain, [&](Offset first, Offset last, int) {
      for (Offset row = first; row < last; row += kRowGrain)
        progress.advance(body(row, std::min(last, row + kRowGrain)));
    });
  }

  std::vector<EdgeList> blocks_;
  BuiltGraph names_;
  bool directed_, keep_self_loops_, weighted_input_ = false, weighted_ = false, triples_ = false;
  Duplicates policy_ = Duplicates::first;
  int threads_;
  Offset nodes_;
  IngestCounts& counts_;

  std::vector<Offset> ends_;  // [nodes + 1]
  std::vector<RowId> targets_;
  std::vector<float> weights_;
  std::vector<RowId> relations_;
  std::vector<std::uint32_t> kept_;
};

}  // namespace

Offset build_bytes(Offset edges, Offset arcs, Offset nodes, bool valued_edges, bool valued_arcs) {
  constexpr Offset kPlacingNodeBytes = 12;      // degrees, ends
  constexpr Offset kRenumberingNodeBytes = 48;  // ends, kept, ids, their inverse, degrees, offsets, names a second time
  const Offset arc_bytes = arcs * (valued_arcs ? 8 : 4), edge_bytes = edges * (valued_edges ? 12 : 8);
  return std::max(arc_bytes + kPlacingNodeBytes * nodes, 2 * arc_bytes + kRenumberingNodeBytes * nodes - edge_bytes);
}

void require_memory(Offset bytes, const std::string& purpose) {
  const Offset available = available_bytes(Device{});
  if (bytes > available)
    throw Error(Fault::memory, cat(purpose, " needs ", human_bytes(double(bytes)), " more memory, ",
                                   human_bytes(double(available)), " are available: free some, or ingest fewer edges"));
}

BuiltGraph build_rows(std::vector<EdgeList> blocks, BuiltGraph names, const IngestOptions& options,
                      IngestCounts& counts) {
  return RowBuilder(std::move(blocks), std::move(names), options, counts).build();
}

BuiltGraph build_graph(EdgeList edges, BuiltGraph names, const IngestOptions& options, IngestCounts& counts) {
  const Offset nodes = name_count(names);
  GS_EXPECT(edges.from.size() == edges.to.size(), "build_graph: ", edges.from.size(), " sources, ", edges.to.size(),
            " targets");
  GS_EXPECT(edges.weight.empty() || edges.weight.size() == edges.from.size(), "build_graph: ", edges.weight.size(),
            " weights of ", edges.from.size(), " edges");
  for (const auto* ends : {&edges.from, &edges.to})
    for (const RowId id : *ends) GS_EXPECT(Offset(id) < nodes, "build_graph: id ", id, " of ", nodes, " nodes");
  for (const float weight : edges.weight)
    GS_EXPECT(std::isfinite(weight) && !std::signbit(weight), "build_graph: weight ", weight);
  if (!edges.relation.empty()) {
    GS_EXPECT(edges.relation.size() == edges.from.size(), "build_graph: ", edges.relation.size(), " relations of ",
              edges.from.size(), " edges");
    GS_EXPECT(options.directed.value_or(false) && !edges.both_ways && edges.weight.empty(),
              "build_graph: edges with relations are directed and have no weights");
    for (const RowId id : edges.relation)
      GS_EXPECT(Offset(id) < names.num_relations(), "build_graph: relation ", id, " of ", names.num_relations());
  }
  counts.edges += Offset(edges.from.size());
  std::vector<EdgeList> blocks;
  blocks.push_back(std::move(edges));
  return build_rows(std::move(blocks), std::move(names), options, counts);
}

}  // namespace gs
