#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "graphscale/graph.hpp"

#include "tests/support/built_graph.hpp"
#include "tests/support/folder.hpp"

namespace gs {
namespace {

class Split : public InFolder {
 protected:
  Graph stored(const BuiltGraph& graph) {
    publish(folder_ / "store", graph, "a test");
    return Graph::open(folder_ / "store");
  }
  Graph generated(const std::string& kind, Offset nodes, Offset edges) {
    GeneratorOptions options;
    options.kind = kind, options.nodes = nodes, options.edges = edges;
    return stored(generate(options));
  }
};

using NameSet = std::set<NamePair>;

NamePair unordered(const NamePair& pair) {
  return {std::min(pair.first, pair.second), std::max(pair.first, pair.second)};
}

NameSet unordered(const std::vector<NamePair>& pairs) {
  NameSet set;
  for (const NamePair& pair : pairs) set.insert(unordered(pair));
  return set;
}

/// All pairs with an arc, without order; self-pairs too.
NameSet pairs_of(const Csr& graph, const NodeNames& names) {
  NameSet set;
  for (Offset row = 0; row < graph.num_nodes(); ++row)
    for (const RowId to : graph.neighbours(row)) set.insert(unordered({names.name(row), names.name(to)}));
  return set;
}

std::shared_ptr<NodeNames> names_of(const BuiltGraph& graph) {
  return graph.name_bounds.empty() ? names_of_numbers(graph.name_numbers)
                                   : names_of_bytes(graph.name_bytes, graph.name_bounds);
}

NameSet train_pairs(const EdgeSplit& split) { return pairs_of(split.train.csr(), *names_of(split.train)); }

bool disjoint(const NameSet& a, const NameSet& b) {
  return std::none_of(a.begin(), a.end(), [&](const NamePair& pair) { return b.count(pair) > 0; });
}

/// What must hold of every split of every graph.
void expect_no_leak(const Graph& graph, const EdgeSplit& split) {
  const NameSet all = pairs_of(graph.csr(), graph.names()), train = train_pairs(split);
  const NameSet positives = unordered(split.positives), negatives = unordered(split.negatives);
  EXPECT_TRUE(disjoint(positives, train));
  EXPECT_TRUE(disjoint(negatives, all));
  EXPECT_EQ(negatives.size(), split.negatives.size()) << "a negative twice";
  for (const NamePair& pair : negatives) EXPECT_NE(pair.first, pair.second);
  NameSet together = train;
  together.insert(positives.begin(), positives.end());
  EXPECT_EQ(together, all);
  EXPECT_EQ(split.train.csr().num_nodes(), graph.csr().num_nodes());
}

TEST_F(Split, HoldsOutTheShareAskedForAndLeaksNothing) {
  const Graph graph = generated("rmat", 500, 5000);
  Offset pairs = 0;
  for (const auto& [a, b] : pairs_of(graph.csr(), graph.names())) pairs += a != b;

  const EdgeSplit split = split_edges(graph, 0.2, false, 1);

  EXPECT_EQ(split.positives.size(), std::size_t(std::llround(0.2 * double(pairs))));
  EXPECT_EQ(split.negatives.size(), split.positives.size());
  expect_no_leak(graph, split);
}

TEST_F(Split, AHeldOutPairTakesItsReverseAndItsParallelArcsAlong) {
  Pairs pairs;
  for (int i = 0; i < 40; ++i) {
    pairs.emplace_back(cat(i), cat(i + 1));
    pairs.emplace_back(cat(i + 1), cat(i));
    pairs.emplace_back(cat(i), cat(i + 1));
  }
  const Graph graph = stored(graph_of(pairs, true));
  ASSERT_EQ(graph.csr().num_arcs(), 120);

  const EdgeSplit split = split_edges(graph, 0.25, false, 1);

  EXPECT_EQ(split.positives.size(), 20u);  // 10 of 40 pairs, both directions of each
  EXPECT_EQ(split.train.csr().num_arcs(), 90);
  EXPECT_TRUE(split.train.directed);
  expect_no_leak(graph, split);
}

TEST_F(Split, ADirectedPositiveKeepsItsDirection) {
  Pairs pairs;
  for (int i = 0; i < 50; ++i) pairs.emplace_back(cat("source", i), cat("target", i % 7));
  const Graph graph = stored(graph_of(pairs, true));

  for (const auto& [from, to] : split_edges(graph, 0.5, false, 1).positives) {
    EXPECT_EQ(from.substr(0, 6), "source");
    EXPECT_EQ(to.substr(0, 6), "target");
  }
}

TEST_F(Split, WeightsAndSelfLoopsStayInTrain) {
  const Graph graph = stored(graph_of({{"a", "a"}, {"a", "b"}, {"b", "c"}}, false, {7, 2, 2}));

  const EdgeSplit split = split_edges(graph, 0.5, false, 1);

  std::vector<float> weights = split.train.weights;
  std::sort(weights.begin(), weights.end());
  EXPECT_EQ(weights, (std::vector<float>{2, 2, 7}));
}

TEST_F(Split, CoverLeavesEveryNodeANeighbour) {
  const Graph graph = generated("er", 300, 700);
  const auto lonely = [](const Csr& csr) {
    Offset count = 0;
    for (Offset row = 0; row < csr.num_nodes(); ++row) count += csr.degree(row) == 0;
    return count;
  };

  const EdgeSplit covered = split_edges(graph, 0.5, true, 1), bare = split_edges(graph, 0.5, false, 1);

  EXPECT_EQ(lonely(covered.train.csr()), lonely(graph.csr()));
  EXPECT_GT(lonely(bare.train.csr()), lonely(graph.csr()));
  expect_no_leak(graph, covered);
}

TEST_F(Split, CoverOfAStarHoldsOutNothing) {
  const Graph graph = generated("star", 20, 0);

  const EdgeSplit split = split_edges(graph, 0.5, true, 1);

  EXPECT_TRUE(split.positives.empty());
  EXPECT_EQ(split.train.csr().num_arcs(), graph.csr().num_arcs());
}

TEST_F(Split, TheSeedDecidesTheSplit) {
  const Graph graph = generated("er", 300, 2000);

  const EdgeSplit a = split_edges(graph, 0.1, false, 1), again = split_edges(graph, 0.1, false, 1);
  const EdgeSplit b = split_edges(graph, 0.1, false, 2);

  EXPECT_EQ(a.positives, again.positives);
  EXPECT_EQ(a.negatives, again.negatives);
  EXPECT_EQ(a.train.targets, again.train.targets);
  EXPECT_NE(a.positives, b.positives);
  EXPECT_NE(a.negatives, b.negatives);
}

TEST_F(Split, ACompleteGraphHasNoNegatives) {
  Pairs pairs;
  for (int a = 0; a < 5; ++a)
    for (int b = 0; b < 5; ++b)
      if (a != b) pairs.emplace_back(cat(a), cat(b));
  const Graph graph = stored(graph_of(pairs, true));

  const EdgeSplit split = split_edges(graph, 0.3, false, 1);

  EXPECT_EQ(split.positives.size(), 6u);
  EXPECT_TRUE(split.negatives.empty());
}

TEST_F(Split, TheLastNonEdgesOfADenseGraphAreAllFound) {
  Pairs pairs;
  for (int a = 0; a < 60; ++a)
    for (int b = a + 1; b < 60; ++b)
      if (a + b != 59) pairs.emplace_back(cat(a), cat(b));  // 30 pairs are missing
  const Graph graph = stored(graph_of(pairs));

  const EdgeSplit split = split_edges(graph, 0.5, false, 1);

  EXPECT_EQ(split.negatives.size(), 30u);
  expect_no_leak(graph, split);
}

TEST_F(Split, GraphsOfOneEdgeOrNoneEnd) {
  const Graph one = stored(graph_of({{"a", "b"}}));
  EXPECT_EQ(split_edges(one, 0.1, false, 1).positives.size(), 1u);
  EXPECT_TRUE(split_edges(one, 0.1, false, 1).negatives.empty());

  const Graph loop = stored(graph_of({{"a", "a"}}));
  EXPECT_SAYS(sentence_of(Fault::input, [&] { split_edges(loop, 0.1, false, 1); }), "no edge between different nodes");
}

TEST_F(Split, AStarsNegativesAreAmongItsLeaves) {
  const Graph graph = generated("star", 50, 0);

  const EdgeSplit split = split_edges(graph, 0.9, false, 1);

  EXPECT_EQ(split.negatives.size(), split.positives.size());
  for (const auto& [a, b] : split.negatives) EXPECT_TRUE(a != "0" && b != "0");
}

TEST_F(Split, NegativesAreUniformOverNonEdges) {
  // A path of 5 has 6 non-edges; half of 4 edges asks for 2 negatives, so each non-edge comes in a third of the seeds.
  const Graph graph = stored(graph_of({{"a", "b"}, {"b", "c"}, {"c", "d"}, {"d", "e"}}));
  std::map<NamePair, int> counts;
  constexpr int kSeeds = 600;

  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    for (const NamePair& pair : split_edges(graph, 0.5, false, seed, 1).negatives) ++counts[unordered(pair)];

  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [pair, count] : counts) EXPECT_NEAR(count, kSeeds / 3, 5 * std::sqrt(kSeeds * 2 / 9.0));
}

TEST_F(Split, SharesOutsideTheirRangeAreRefused) {
  const Graph graph = generated("ring", 10, 0);

  for (const double share : {0.0, 1.0, -0.1, 2.0, std::nan("")})
    sentence_of(Fault::usage, [&] { split_edges(graph, share, false, 1); });
}

TEST(PairCount, IsExactPast32Bits) {
  EXPECT_EQ(pair_count(0), 0);
  EXPECT_EQ(pair_count(1), 0);
  EXPECT_EQ(pair_count(2), 1);
  EXPECT_EQ(pair_count(100000) * 2, Offset{100000} * 99999);
  EXPECT_EQ(pair_count(kMaxRows), 9223372026117357571);
}

}  // namespace
}  // namespace gs
