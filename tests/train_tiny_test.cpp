// Graphs and vectors at the edges of what there is: a node, an edge, a sink, a column.
#include <cmath>

#include "tests/support/graphs.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

struct TinyGraph {
  const char* name;
  Offset nodes;
  std::vector<Arc> arcs;
};

std::vector<Arc> both_ways(std::vector<Arc> arcs) {
  const std::size_t count = arcs.size();
  for (std::size_t i = 0; i < count; ++i) arcs.push_back({arcs[i].to, arcs[i].from});
  return arcs;
}

std::vector<Arc> complete(RowId nodes) {
  std::vector<Arc> arcs;
  for (RowId a = 0; a < nodes; ++a)
    for (RowId b = 0; b < nodes; ++b)
      if (a != b) arcs.push_back({a, b});
  return arcs;
}

std::vector<Arc> star(RowId leaves) {
  std::vector<Arc> arcs;
  for (RowId leaf = 1; leaf <= leaves; ++leaf) arcs.push_back({0, leaf});
  return both_ways(arcs);
}

std::vector<Arc> ring(RowId nodes) {
  std::vector<Arc> arcs;
  for (RowId a = 0; a < nodes; ++a) arcs.push_back({a, (a + 1) % nodes});
  return both_ways(arcs);
}

const std::vector<TinyGraph> kTinyGraphs{{"one_edge", 2, both_ways({{0, 1}})},
                                         {"one_arc", 2, {{0, 1}}},
                                         {"self_loop", 1, {{0, 0}}},
                                         {"complete", 5, complete(5)},
                                         {"star", 1001, star(1000)},
                                         {"ring", 7, ring(7)},
                                         {"sinks_and_an_isolated_node", 5, {{0, 1}, {0, 2}, {1, 3}}}};

class Tiny : public testing::TestWithParam<std::tuple<int, int>> {};  // a graph's place in the list, dim

/// More threads than nodes do no harm, nor negatives that are all masked.
TEST_P(Tiny, EveryRowStaysFiniteAndFull) {
  const auto& [place, dim] = GetParam();
  const TinyGraph& tiny = kTinyGraphs[std::size_t(place)];
  const SmallGraph graph = graph_of(tiny.nodes, tiny.arcs);

  const std::vector<float> values = trained(graph.csr(), small_config(dim), 8);

  ASSERT_EQ(Offset(values.size()), tiny.nodes * dim);
  for (Offset row = 0; row < tiny.nodes; ++row)
    for (int c = 0; c < dim; ++c) {
      const float value = values[std::size_t(row * dim + c)];
      ASSERT_TRUE(std::isfinite(value) && value != 0) << "row " << row << ", column " << c << ": " << value;
    }
}

INSTANTIATE_TEST_SUITE_P(Graphs, Tiny,
                         testing::Combine(testing::Range(0, int(kTinyGraphs.size())), testing::Values(1, 3, 16, 128)),
                         [](const auto& test) {
                           return gs::cat(kTinyGraphs[std::size_t(std::get<0>(test.param))].name, "_dim_",
                                          std::get<1>(test.param));
                         });

class Dims : public testing::TestWithParam<int> {};

TEST_P(Dims, AreTrainedToTheLastColumn) {
  const SmallGraph graph = graph_of(40, ring(40));
  Config config = small_config(GetParam()), untrained = config;
  config.training.deterministic = true, untrained.training.epochs = 0;

  const std::vector<float> values = trained(graph.csr(), config), before = trained(graph.csr(), untrained);

  ASSERT_EQ(values.size(), std::size_t(40 * GetParam()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_TRUE(std::isfinite(values[i]));
    ASSERT_NE(values[i], before[i]) << "row " << i / std::size_t(GetParam()) << ", column "
                                    << i % std::size_t(GetParam()) << " was never trained";
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, Dims, testing::Values(1, 3, 10, 100, 768, 1100, 2048));

std::vector<float> row_of(const std::vector<float>& values, Offset row, int dim) {
  return {values.begin() + row * dim, values.begin() + (row + 1) * dim};
}

TEST(Untrained, AnIsolatedNodeKeepsTheVectorItWasDrawnAndSinksAreTrained) {
  const SmallGraph graph = graph_of(5, {{0, 1}, {0, 2}, {1, 3}});
  Config config = small_config(6), untrained = config;
  untrained.training.epochs = 0;

  const std::vector<float> values = trained(graph.csr(), config), before = trained(graph.csr(), untrained);

  for (Offset row = 0; row < 4; ++row) EXPECT_NE(row_of(values, row, 6), row_of(before, row, 6)) << row;
  EXPECT_EQ(row_of(values, 4, 6), row_of(before, 4, 6));
}

TEST(Untrained, NodesThatOnlyZeroWeightsReachKeepTheVectorTheyWereDrawn) {
  // A = 0 to B = 1 by weight 0, to C = 2 by 3 and D = 3 by 1; E = 4 to F = 5 by 0
  const SmallGraph graph = graph_of(6, {{0, 1, 0}, {0, 2, 3}, {0, 3, 1}, {4, 5, 0}}, true);
  Config config = small_config(6);
  config.sampler.walks_per_node = 100;  // that none of A's follows an arc of 1/4 happens once in 10^12 seeds
  Config untrained = config;
  untrained.training.epochs = 0;

  const std::vector<float> values = trained(graph.csr(), config), before = trained(graph.csr(), untrained);

  for (const Offset row : {0, 2, 3}) EXPECT_NE(row_of(values, row, 6), row_of(before, row, 6)) << row;
  for (const Offset row : {1, 4, 5}) EXPECT_EQ(row_of(values, row, 6), row_of(before, row, 6)) << row;
}

TEST(Untrained, AGraphOfZeroWeightsAloneTrainsNothing) {
  const SmallGraph graph = graph_of(2, {{0, 1, 0}, {1, 0, 0}}, true);
  Config config = small_config(6), untrained = config;
  untrained.training.epochs = 0;

  EXPECT_EQ(trained(graph.csr(), config), trained(graph.csr(), untrained));
}

}  // namespace
}  // namespace gs
