#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "graphscale/graph.hpp"
#include "kernels/philox.hpp"

namespace gs {
namespace {

/// Two different rows without order: the lower one in the high half. Sorted keys are pairs in the order of their rows.
using PairKey = std::uint64_t;
PairKey key_of(RowId a, RowId b) { return PairKey(std::min(a, b)) << 32 | std::max(a, b); }
RowId lower(PairKey key) { return RowId(key >> 32); }
RowId higher(PairKey key) { return RowId(key); }

/// What a draw of the split is for: its `epoch`.
enum Purpose : std::uint32_t { kOrder, kCandidate, kChoice, kDirection };

Philox4 split_bits(std::uint64_t seed, Purpose purpose, std::uint64_t index) {
  return draw(seed, purpose, index, 0, Draw::split);
}

bool connected(const Csr& graph, RowId a, RowId b) {
  return graph.has_arc(a, b) || (graph.directed && graph.has_arc(b, a));
}

/// Every pair of different rows with an arc in either direction, once, ascending.
std::vector<PairKey> connected_pairs(const Csr& graph) {
  std::vector<PairKey> pairs;
  for (Offset row = 0; row < graph.num_nodes(); ++row) {
    const RowId from = RowId(row);
    RowId before = kNoRow;  // parallel arcs stand side by side
    for (const RowId to : graph.neighbours(row)) {
      const bool ours = to > from || (to < from && graph.directed && !graph.has_arc(to, from));
      if (ours && to != before) pairs.push_back(key_of(from, to));
      before = to;
    }
  }
  if (graph.directed) std::sort(pairs.begin(), pairs.end());
  return pairs;
}

/// `want` of the pairs in a seeded order, less those that would leave a node without a neighbour where `cover`.
std::vector<PairKey> choose_held_out(const std::vector<PairKey>& pairs, Offset nodes, Offset want, bool cover,
                                     std::uint64_t seed) {
  std::vector<RowId> neighbours(cover ? std::size_t(nodes) : 0);
  if (cover)
    for (const PairKey pair : pairs) ++neighbours[lower(pair)], ++neighbours[higher(pair)];

  const std::uint64_t order = split_bits(seed, kOrder, 0).low();
  std::vector<PairKey> held_out;
  for (std::uint64_t i = 0; i < pairs.size() && Offset(held_out.size()) < want; ++i) {
    const PairKey pair = pairs[shuffled(i, pairs.size(), order)];
    if (cover) {
      if (neighbours[lower(pair)] < 2 || neighbours[higher(pair)] < 2) continue;
      --neighbours[lower(pair)], --neighbours[higher(pair)];
    }
    held_out.push_back(pair);
  }
  return held_out;
}

/// The edges of the graph without the arcs of held-out pairs, an undirected edge once.
EdgeList remaining_edges(const Csr& graph, const std::vector<PairKey>& held_out) {
  std::vector<bool> removed(std::size_t(graph.num_arcs()), false);
  const auto remove = [&](RowId from, RowId to) {
    const Span<const RowId> row = graph.neighbours(from);
    const auto [first, last] = std::equal_range(row.begin(), row.end(), to);
    std::fill(removed.begin() + (first - graph.targets.begin()), removed.begin() + (last - graph.targets.begin()),
              true);
  };
  for (const PairKey pair : held_out) remove(lower(pair), higher(pair)), remove(higher(pair), lower(pair));

  EdgeList edges;
  for (Offset row = 0; row < graph.num_nodes(); ++row) {
    for (Offset arc = graph.offsets[row]; arc < graph.offsets[row + 1]; ++arc) {
      if (removed[std::size_t(arc)] || (!graph.directed && graph.targets[arc] < row)) continue;
      edges.from.push_back(RowId(row)), edges.to.push_back(graph.targets[arc]);
      if (!graph.weights.empty()) edges.weight.push_back(graph.weights[arc]);
    }
  }
  return edges;
}

/// `want` of all `total` pairs that are not among `pairs`: written down one and all, then drawn without replacement.
std::vector<PairKey> choose_of_all_non_edges(const std::vector<PairKey>& pairs, Offset nodes, Offset want,
                                             std::uint64_t seed) {
  std::vector<PairKey> all, chosen;
  auto next = pairs.begin();
  for (Offset low = 0; low < nodes; ++low) {
    for (Offset high = low + 1; high < nodes; ++high) {
      const PairKey pair = key_of(RowId(low), RowId(high));
      if (next != pairs.end() && *next == pair)
        ++next;
      else
        all.push_back(pair);
    }
  }
  const std::uint64_t order = split_bits(seed, kChoice, 0).low();
  for (Offset i = 0; i < want; ++i) chosen.push_back(all[shuffled(std::uint64_t(i), all.size(), order)]);
  return chosen;
}

/// `want` different non-edges by rejection; they must be a fair share of all pairs, or it takes long.
std::vector<PairKey> draw_non_edges(const Csr& graph, Offset want, std::uint64_t seed) {
  const std::uint64_t nodes = std::uint64_t(graph.num_nodes());
  std::vector<PairKey> chosen;
  std::unordered_set<PairKey> seen;
  for (std::uint64_t attempt = 0; Offset(chosen.size()) < want; ++attempt) {
    const Philox4 bits = split_bits(seed, kCandidate, attempt);
    const RowId a = RowId(below(bits.low(), nodes)), b = RowId(below(bits.high(), nodes));
    if (a != b && !connected(graph, a, b) && seen.insert(key_of(a, b)).second) chosen.push_back(key_of(a, b));
  }
  return chosen;
}

/// As many non-edges as `want`, or as there are.
std::vector<PairKey> choose_non_edges(const Csr& graph, const std::vector<PairKey>& pairs, Offset want,
                                      std::uint64_t seed) {
  const Offset nodes = graph.num_nodes(), all_pairs = pair_count(nodes), non_edges = all_pairs - Offset(pairs.size());
  if (non_edges < want)
    log_warn(cat("split: only ", with_commas(non_edges), " non-edges exist: as many negatives instead of ",
                 with_commas(want)));
  want = std::min(want, non_edges);
  // Rejection draws about all_pairs / (non_edges - drawn) candidates a negative. Where that could pass 16, the graph is
  // so dense, or so small, that all its non-edges are few against its edges and can be written down.
  const bool few = non_edges < 2 * want || non_edges < all_pairs / 8;
  return few ? choose_of_all_non_edges(pairs, nodes, want, seed) : draw_non_edges(graph, want, seed);
}

}  // namespace

Offset pair_count(Offset nodes) { return nodes % 2 == 0 ? nodes / 2 * (nodes - 1) : (nodes - 1) / 2 * nodes; }

EdgeSplit split_edges(const Graph& graph, double test_share, bool cover, std::uint64_t seed, int threads) {
  if (!(test_share > 0 && test_share < 1))
    throw Error(Fault::usage, cat("split: test share ", test_share, " is not between 0 and 1"));
  const Csr csr = graph.csr();
  if (csr.num_relations > 0)
    throw Error(Fault::input, "split: the graph has relations: hold out lines of its triples, and ingest the others");
  const std::vector<PairKey> pairs = connected_pairs(csr);
  if (pairs.empty())
    throw Error(Fault::input, "split: the graph has no edge between different nodes, so none can be held out");
  const Offset want = std::max<Offset>(1, std::llround(test_share * double(pairs.size())));
  const std::vector<PairKey> held_out = choose_held_out(pairs, csr.num_nodes(), want, cover, seed);
  if (Offset(held_out.size()) < want)
    log_warn(cat("split: only ", with_commas(Offset(held_out.size())), " of ", with_commas(want),
                 " edges can be held out without taking a node's last neighbour"));

  EdgeSplit split;
  const auto name = [&](RowId row) { return graph.names().name(row); };
  for (const PairKey pair : held_out) {
    const RowId low = lower(pair), high = higher(pair);
    if (csr.has_arc(low, high)) split.positives.emplace_back(name(low), name(high));
    if (csr.directed && csr.has_arc(high, low)) split.positives.emplace_back(name(high), name(low));
  }
  for (const PairKey pair : choose_non_edges(csr, pairs, Offset(split.positives.size()), seed)) {
    // Rows are ranked by degree: without the coin every negative would point from the hub.
    const bool swap = split_bits(seed, kDirection, pair).word[0] & 1;
    split.negatives.emplace_back(name(swap ? higher(pair) : lower(pair)), name(swap ? lower(pair) : higher(pair)));
  }

  IngestOptions build;
  build.directed = csr.directed, build.duplicates = Duplicates::keep, build.threads = threads;
  IngestCounts counts;
  split.train = build_graph(remaining_edges(csr, held_out), graph.copy_names(), build, counts);
  return split;
}

}  // namespace gs
