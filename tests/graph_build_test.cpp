#include <gtest/gtest.h>

#include <random>

#include "graphscale/graph.hpp"

#include "src/graph/build_graph.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/slow_graph.hpp"

namespace gs {
namespace {

BuiltGraph numbers_below(Offset count) {
  BuiltGraph names;
  for (Offset i = 0; i < count; ++i) names.name_numbers.push_back(std::uint64_t(i));
  return names;
}

// ------------------------------------------------------------------------------------------------------------- offsets

TEST(Offsets, StartAtZeroAndEndAtTheSum) {
  const std::vector<std::uint32_t> degrees = {3, 0, 2};

  const auto offsets = offsets_from_degrees(degrees);

  EXPECT_EQ(offsets, (std::vector<Offset>{0, 3, 3, 5}));
}

TEST(Offsets, OfNoNodesAreOneZero) {
  const std::vector<std::uint32_t> degrees;

  EXPECT_EQ(offsets_from_degrees(degrees), std::vector<Offset>{0});
}

TEST(Offsets, AscendPast31And32Bits) {
  for (const Offset total : {(Offset{1} << 31) + 10, (Offset{1} << 32) + 10}) {
    std::vector<std::uint32_t> degrees(1000, std::uint32_t(total / 1000));
    degrees.back() += std::uint32_t(total % 1000);

    const auto offsets = offsets_from_degrees(degrees);

    EXPECT_EQ(offsets.back(), total);
    EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end()));
    EXPECT_EQ(offsets[999], total / 1000 * 999);
  }
}

TEST(Offsets, HoldTwoDegreesOf32BitsEach) {
  const std::vector<std::uint32_t> degrees = {0xFFFFFFFFu, 0xFFFFFFFFu};

  EXPECT_EQ(offsets_from_degrees(degrees).back(), 2 * Offset{0xFFFFFFFF});
}

TEST(HasArc, IsTrueForExactlyTheArcsOfTheRow) {
  const std::vector<Offset> offsets = {0, 2, 2, 3};
  const std::vector<RowId> targets = {1, 2, 0};
  const Csr csr{offsets, targets, {}, true};
  const std::set<std::pair<RowId, RowId>> arcs = {{0, 1}, {0, 2}, {2, 0}};

  for (RowId from = 0; from < 3; ++from)
    for (RowId to = 0; to < 3; ++to) EXPECT_EQ(csr.has_arc(from, to), arcs.count({from, to}) == 1) << from << to;
}

// ------------------------------------------------------------------------------------------------------ against the
// twin

struct BuildCase {
  bool directed;
  Duplicates duplicates;
  bool keep_self_loops;
};

class BuildTwin : public testing::TestWithParam<BuildCase> {};

TEST_P(BuildTwin, GivesTheSameRowsOnRandomGraphsWithAnyThreads) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    std::mt19937_64 random(seed);
    const int nodes = 1 + int(random() % 40), count = int(random() % 300);
    const bool weighted = seed % 3 != 0;
    EdgeList edges;
    std::vector<NamedEdge> named_edges;
    for (int e = 0; e < count; ++e) {
      const RowId from = RowId(random() % std::uint64_t(nodes)), to = RowId(random() % std::uint64_t(nodes));
      const float weight = weighted ? float(random() % 5) * 0.3f : 1.0f;
      edges.from.push_back(from), edges.to.push_back(to);
      if (weighted) edges.weight.push_back(weight);
      named_edges.push_back({std::to_string(from), std::to_string(to), weight});
    }
    std::vector<std::string> all;
    for (int node = 0; node < nodes; ++node) all.push_back(std::to_string(node));
    IngestOptions options;
    options.directed = GetParam().directed;
    options.duplicates = GetParam().duplicates;
    options.keep_self_loops = GetParam().keep_self_loops;
    const NamedGraph expected =
        slow_graph(named_edges, all, *options.directed, *options.duplicates, options.keep_self_loops);

    for (const int threads : {1, 2, 8}) {
      options.threads = threads;
      IngestCounts counts;
      const BuiltGraph graph = build_graph(edges, numbers_below(nodes), options, counts);

      EXPECT_EQ(named(graph), expected) << "seed " << seed << ", " << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, BuildTwin,
    testing::Values(BuildCase{false, Duplicates::sum, true}, BuildCase{false, Duplicates::max, true},
                    BuildCase{false, Duplicates::first, true}, BuildCase{false, Duplicates::keep, true},
                    BuildCase{true, Duplicates::sum, true}, BuildCase{true, Duplicates::max, false},
                    BuildCase{true, Duplicates::first, true}, BuildCase{true, Duplicates::keep, false},
                    BuildCase{false, Duplicates::sum, false}));

TEST(Build, TreatsBlocksAsOneListInTheirOrder) {
  std::vector<EdgeList> blocks = {
      {{0, 1}, {1, 2}, {5, 1}, false}, {{}, {}, {}, false}, {{1, 2}, {0, 1}, {7, 2}, false}};
  IngestOptions options;
  options.duplicates = Duplicates::first;
  IngestCounts counts;

  const BuiltGraph graph = build_rows(blocks, numbers_below(3), options, counts);

  EXPECT_EQ(named(graph), slow_graph({{"0", "1", 5}, {"1", "2", 1}, {"1", "0", 7}, {"2", "1", 2}}, {}, false,
                                     Duplicates::first, true));
  EXPECT_EQ(counts.duplicate_edges, 2);
}

TEST(Build, PlacesSymmetricEntriesBothWaysInADirectedGraph) {
  IngestOptions options;
  options.directed = true;
  IngestCounts counts;

  const BuiltGraph graph = build_graph({{0, 1}, {1, 1}, {}, true}, numbers_below(2), options, counts);

  EXPECT_TRUE(graph.csr().has_arc(0, 1) && graph.csr().has_arc(1, 0));
  EXPECT_EQ(graph.csr().num_arcs(), 3);
}

TEST(Build, CountsDuplicatesAndSelfLoopsAsEdges) {
  const EdgeList edges = {{0, 1, 0, 2, 2}, {1, 0, 1, 2, 2}, {}, false};
  IngestOptions options;
  IngestCounts counts;

  build_graph(edges, numbers_below(3), options, counts);

  EXPECT_EQ(counts.edges, 5);
  EXPECT_EQ(counts.duplicate_edges, 3);
  EXPECT_EQ(counts.self_loops, 2);
  EXPECT_EQ(counts.dropped_self_loops, 0);
}

TEST(Build, SummingUnweightedEdgesMakesTheirNumberTheWeight) {
  IngestOptions options;
  options.duplicates = Duplicates::sum;
  IngestCounts counts;

  const BuiltGraph graph = build_graph({{0, 1, 0, 1}, {1, 0, 1, 1}, {}, false}, numbers_below(2), options, counts);

  EXPECT_EQ(named(graph), (NamedGraph{{"1", "0"}, {{"1", "1", 1.0f}, {"1", "0", 3.0f}, {"0", "1", 3.0f}}}));
}

TEST(Build, OfNodesWithoutEdgesHasARowForEach) {
  IngestOptions options;
  options.threads = 4;
  IngestCounts counts;

  const BuiltGraph graph = build_graph({}, numbers_below(3), options, counts);

  EXPECT_EQ(graph.offsets, (std::vector<Offset>{0, 0, 0, 0}));
}

TEST(Build, RanksALargeGraphByDegreeThenName) {
  // Enough nodes of one degree that their sort is cut into a piece a thread and merged.
  constexpr Offset kNodes = 300000;
  EdgeList ring;
  for (Offset i = 0; i < kNodes; ++i) ring.from.push_back(RowId(i)), ring.to.push_back(RowId((i + 1) % kNodes));
  BuiltGraph names = numbers_below(kNodes);
  std::shuffle(names.name_numbers.begin(), names.name_numbers.end(), std::mt19937_64(5));
  IngestOptions options;
  options.threads = 3;
  IngestCounts counts;

  const BuiltGraph graph = build_graph(std::move(ring), std::move(names), options, counts);

  EXPECT_EQ(graph.name_numbers, numbers_below(kNodes).name_numbers);
}

TEST(Build, RefusesASumThatAFloatCannotHold) {
  const EdgeList edges = {{0, 1}, {1, 0}, {3e38f, 3e38f}, false};
  IngestOptions options;
  IngestCounts counts;

  const std::string sentence =
      sentence_of(Fault::input, [&] { build_graph(edges, numbers_below(2), options, counts); });

  EXPECT_SAYS(sentence, "the weights of the edge 0 - 1 add up to 6e+38");
}

TEST(Build, RefusesIdsBeyondTheNames) {
  IngestOptions options;
  IngestCounts counts;

  const auto sentence = sentence_of(Fault::internal, [&] {
    build_graph({{0}, {2}, {}, false}, numbers_below(2), options, counts);
  });

  EXPECT_SAYS(sentence, "id 2 of 2 nodes");
}

TEST(Memory, IsRefusedInOneLineThatSaysForWhatAndHowMuch) {
  const auto sentence = sentence_of(Fault::memory, [] { require_memory(Offset{1} << 60, "building 7 arcs"); });

  EXPECT_SAYS(sentence, "building 7 arcs needs 1024.0 PiB more memory");
}

}  // namespace
}  // namespace gs
