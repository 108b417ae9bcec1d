#include "src/store/partition.hpp"

#include <metis.h>

#include <algorithm>
#include <limits>

namespace gs {
namespace {

/// The graph as METIS wants it: every arc both ways, none twice, none to itself.
struct Undirected {
  std::vector<idx_t> offsets, targets;
};

/// The sources of each row's incoming arcs, ascending, as a graph's arcs.
struct Incoming {
  explicit Incoming(const Csr& graph) : offsets(std::size_t(graph.num_nodes() + 1), 0) {
    for (const RowId target : graph.targets) ++offsets[target + 1];
    for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
    sources.resize(std::size_t(graph.num_arcs()));
    std::vector<Offset> next(offsets.begin(), offsets.end() - 1);
    for (Offset row = 0; row < graph.num_nodes(); ++row)
      for (const RowId target : graph.neighbours(row)) sources[std::size_t(next[target]++)] = RowId(row);
  }
  Span<const RowId> of(Offset row) const {
    return Span<const RowId>(sources).subspan(offsets[std::size_t(row)],
                                              offsets[std::size_t(row + 1)] - offsets[std::size_t(row)]);
  }
  std::vector<Offset> offsets;
  std::vector<RowId> sources;
};

Undirected undirected(const Csr& graph) {
  const Incoming incoming(graph.directed ? graph : Csr{});
  Undirected out;
  out.offsets.push_back(0);
  std::vector<RowId> both;
  for (Offset row = 0; row < graph.num_nodes(); ++row) {
    const Span<const RowId> to = graph.neighbours(row), from = graph.directed ? incoming.of(row) : Span<const RowId>();
    both.clear();
    std::merge(to.begin(), to.end(), from.begin(), from.end(), std::back_inserter(both));
    both.erase(std::unique(both.begin(), both.end()), both.end());
    for (const RowId neighbour : both)
      if (Offset(neighbour) != row) out.targets.push_back(idx_t(neighbour));
    out.offsets.push_back(idx_t(out.targets.size()));
  }
  return out;
}

void check_countable(const Csr& graph) {
  constexpr Offset kMost = std::numeric_limits<idx_t>::max();
  const Offset arcs = graph.num_arcs() * (graph.directed ? 2 : 1);
  if (arcs <= kMost && graph.num_nodes() < kMost) return;
  throw Error(Fault::usage, cat("store.placement partition: the graph has ", with_commas(graph.num_nodes()),
                                " nodes and ", with_commas(arcs), " arcs in both directions, and METIS counts up to ",
                                with_commas(kMost), "; use store.placement cyclic"));
}

}  // namespace

std::vector<int> partition(const Csr& graph, int parts) {
  const Offset rows = graph.num_nodes();
  std::vector<int> part(std::size_t(rows), 0);
  for (Offset row = 0; row < rows; ++row) part[std::size_t(row)] = int(row % parts);
  if (parts == 1 || parts >= rows) return part;

  check_countable(graph);
  Undirected whole = undirected(graph);
  if (whole.targets.empty()) return part;
  std::vector<idx_t> load;  // of a row: itself, and the arcs that lie with it
  for (Offset row = 0; row < rows; ++row) load.insert(load.end(), {1, idx_t(graph.degree(row))});

  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  idx_t count = idx_t(rows), constraints = 2, part_count = parts, cut = 0;
  std::vector<idx_t> found(static_cast<std::size_t>(rows));
  const int status = METIS_PartGraphKway(&count, &constraints, whole.offsets.data(), whole.targets.data(), load.data(),
                                         nullptr, nullptr, &part_count, nullptr, nullptr, options, &cut, found.data());
  if (status != METIS_OK)
    throw Error(
        status == METIS_ERROR_MEMORY ? Fault::memory : Fault::internal,
        cat("store.placement partition: METIS could not divide ", with_commas(rows), " nodes into ", parts,
            status == METIS_ERROR_MEMORY ? " parts for want of memory" : " parts", "; use store.placement cyclic"));
  std::copy(found.begin(), found.end(), part.begin());
  return part;
}

}  // namespace gs
