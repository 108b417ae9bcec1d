#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graphscale/graph.hpp"

#include "tests/support/folder.hpp"

namespace gs {
namespace {

struct Edges {
  std::vector<RowId> from, to;
};

Edges edges_of(const GeneratorOptions& options, Offset first, Offset count) {
  Edges edges{std::vector<RowId>(std::size_t(count)), std::vector<RowId>(std::size_t(count))};
  generate_edges(options, first, edges.from, edges.to);
  return edges;
}

GeneratorOptions options_of(const std::string& kind, Offset nodes, Offset edges) {
  GeneratorOptions options;
  options.kind = kind, options.nodes = nodes, options.edges = edges;
  return options;
}

class EveryGenerator : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, EveryGenerator, testing::Values("rmat", "er", "sbm", "ring", "star"));

TEST_P(EveryGenerator, EdgeIDependsOnSeedAndIAlone) {
  const GeneratorOptions options = options_of(GetParam(), 1000, 900);

  const Edges whole = edges_of(options, 0, 900);

  for (const Offset first : {0, 1, 450, 899}) {
    const Edges part = edges_of(options, first, 900 - first);
    EXPECT_TRUE(std::equal(part.from.begin(), part.from.end(), whole.from.begin() + first));
    EXPECT_TRUE(std::equal(part.to.begin(), part.to.end(), whole.to.begin() + first));
  }
}

TEST_P(EveryGenerator, TheGraphIsTheSameForAnyNumberOfThreads) {
  GeneratorOptions options = options_of(GetParam(), 3000, 600000);
  const BuiltGraph one = generate(options);
  options.threads = 4;

  const BuiltGraph four = generate(options);

  EXPECT_EQ(one.offsets, four.offsets);
  EXPECT_EQ(one.targets, four.targets);
  EXPECT_EQ(one.name_numbers, four.name_numbers);
}

TEST_P(EveryGenerator, EndsAreNodesAndEveryNodeHasARow) {
  for (const Offset nodes : {1, 2, 3, 5, 1000}) {
    GeneratorOptions options = options_of(GetParam(), nodes, 200);
    options.blocks = int(std::min<Offset>(nodes, 4));

    const Edges edges = edges_of(options, 0, generated_edges(options));
    const BuiltGraph graph = generate(options);

    for (const auto& ends : {edges.from, edges.to})
      for (const RowId node : ends) ASSERT_LT(Offset(node), nodes);
    EXPECT_EQ(graph.csr().num_nodes(), nodes);
    EXPECT_EQ(std::set<std::uint64_t>(graph.name_numbers.begin(), graph.name_numbers.end()).size(), std::size_t(nodes));
  }
}

TEST(Generator, AnotherSeedIsAnotherGraph) {
  GeneratorOptions options = options_of("er", 1000, 1000);
  const Edges one = edges_of(options, 0, 1000);
  options.seed = 2;

  EXPECT_NE(edges_of(options, 0, 1000).from, one.from);
}

TEST(Generator, RmatFillsTheQuadrantsInTheirShares) {
  const GeneratorOptions options = options_of("rmat", 1 << 16, 0);
  constexpr int kEdges = 100000;
  const Edges edges = edges_of(options, 0, kEdges);
  int counts[2][2] = {}, inner[2][2] = {};

  for (int i = 0; i < kEdges; ++i) {
    const RowId u = edges.from[std::size_t(i)], v = edges.to[std::size_t(i)];
    ++counts[u >> 15][v >> 15];
    ++inner[u & 1][v & 1];  // the last level is drawn as the first
  }

  constexpr double kFiveSigmas = 5 * 0.5 / 316;  // of a share of 100,000 draws
  for (const auto& c : {counts, inner}) {
    EXPECT_NEAR(c[0][0] / double(kEdges), 0.57, kFiveSigmas);
    EXPECT_NEAR(c[0][1] / double(kEdges), 0.19, kFiveSigmas);
    EXPECT_NEAR(c[1][0] / double(kEdges), 0.19, kFiveSigmas);
    EXPECT_NEAR(c[1][1] / double(kEdges), 0.05, kFiveSigmas);
  }
}

TEST(Generator, RmatOfOneQuadrantAloneEnds) {
  GeneratorOptions options = options_of("rmat", (1 << 20) + 1, 0);
  options.a = options.b = options.c = 0;

  EXPECT_EQ(edges_of(options, 0, 1).from[0], RowId(1 << 20));
}

TEST(Generator, RmatHasHubsAndErHasNone) {
  const GraphStatistics rmat = statistics(generate(options_of("rmat", 4096, 40000)).csr(), 1);
  const GraphStatistics er = statistics(generate(options_of("er", 4096, 40000)).csr(), 1);

  EXPECT_GT(rmat.degree_max, 20 * rmat.mean_degree);
  EXPECT_LT(er.degree_max, 3 * er.mean_degree);
}

TEST(Generator, ErPairsAreUniformAndDifferent) {
  constexpr int kNodes = 5, kEdges = 100000;
  const Edges edges = edges_of(options_of("er", kNodes, kEdges), 0, kEdges);
  int counts[kNodes][kNodes] = {};

  for (std::size_t i = 0; i < kEdges; ++i) ++counts[edges.from[i]][edges.to[i]];

  double chi_square = 0;
  constexpr double kExpected = kEdges / 20.0, kLimit19 = 43.8;  // of 19 degrees of freedom, p = 0.001
  for (int u = 0; u < kNodes; ++u) {
    EXPECT_EQ(counts[u][u], 0);
    for (int v = 0; v < kNodes; ++v)
      if (u != v) chi_square += (counts[u][v] - kExpected) * (counts[u][v] - kExpected) / kExpected;
  }
  EXPECT_LT(chi_square, kLimit19);
}

TEST(Generator, SbmKeepsItsShareInsideEqualBlocks) {
  GeneratorOptions options = options_of("sbm", 1003, 50000);
  options.blocks = 7, options.inside_share = 0.8;
  const Edges edges = edges_of(options, 0, 50000);
  const auto block_of = [](RowId node) {  // slow and obvious
    int block = 0;
    while (Offset{block + 1} * 1003 / 7 <= node) ++block;
    return block;
  };
  int inside = 0;

  for (std::size_t i = 0; i < edges.from.size(); ++i) inside += block_of(edges.from[i]) == block_of(edges.to[i]);

  EXPECT_NEAR(inside / 50000.0, 0.8, 5 * 0.5 / 223);
}

TEST(Generator, ARingIsARingAndAStarAStar) {
  const GraphStatistics ring = statistics(generate(options_of("ring", 100, 0)).csr(), 1);
  const BuiltGraph star = generate(options_of("star", 100, 0));

  EXPECT_EQ(ring.degree_p50, 2);
  EXPECT_EQ(ring.degree_max, 2);
  EXPECT_EQ(ring.largest_component, 100);
  EXPECT_EQ(star.csr().degree(0), 99);
  EXPECT_EQ(star.name_numbers[0], 0u);
  EXPECT_EQ(star.csr().num_arcs(), 2 * 99);
}

TEST(Generator, OptionsOutOfRangeAreRefused) {
  const auto refusal = [](auto&& change) {
    GeneratorOptions options;
    change(options);
    return sentence_of(Fault::usage, [&] { generate(options); });
  };

  EXPECT_SAYS(refusal([](auto& o) { o.kind = "barabasi"; }), "choose rmat, er, sbm, ring or star");
  EXPECT_SAYS(refusal([](auto& o) { o.nodes = 0; }), "0 nodes; 1 to 4294967294 are possible");
  EXPECT_SAYS(refusal([](auto& o) { o.nodes = Offset{1} << 33; }), "8589934592 nodes");
  EXPECT_SAYS(refusal([](auto& o) { o.edges = -1; }), "-1 edges");
  EXPECT_SAYS(refusal([](auto& o) { o.a = 0.9; }), "sum not above 1");
  EXPECT_SAYS(refusal([](auto& o) { o.blocks = 5000; }), "5000 blocks");
  EXPECT_SAYS(refusal([](auto& o) { o.inside_share = 1.5; }), "not in [0, 1]");
}

TEST(Generator, MoreEdgesThanMemoryHoldsAreRefusedAtOnce) {
  GeneratorOptions options = options_of("er", 1000, Offset{1} << 45);

  EXPECT_SAYS(sentence_of(Fault::memory, [&] { generate(options); }), "generate");
}

}  // namespace
}  // namespace gs
