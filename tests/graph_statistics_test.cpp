#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graphscale/graph.hpp"

#include "tests/support/built_graph.hpp"

namespace gs {
namespace {

TEST(Statistics, SmallDirectedGraphByHand) {
  const BuiltGraph graph = graph_of({{"a", "b"}, {"a", "c"}, {"b", "a"}, {"d", "d"}}, true, {}, {"e"});

  const GraphStatistics s = statistics(graph.csr(), 2);

  EXPECT_EQ(s.self_loops, 1);
  EXPECT_EQ(s.isolated, 1);    // e; c has an arc in
  EXPECT_EQ(s.sinks, 2);       // c and e
  EXPECT_EQ(s.components, 3);  // abc, d, e
  EXPECT_EQ(s.largest_component, 3);
  EXPECT_DOUBLE_EQ(s.mean_degree, 4.0 / 5);
  EXPECT_EQ(s.degree_max, 2);
}

TEST(Statistics, ANodeWithZeroWeightsAloneIsASink) {
  const BuiltGraph graph = graph_of({{"a", "b"}, {"a", "c"}, {"e", "f"}}, false, {0, 3, 0});

  EXPECT_EQ(statistics(graph.csr(), 1).sinks, 3);  // b, e, f
}

TEST(Statistics, AnEmptyGraphHasNothing) {
  const std::vector<Offset> offsets{0};

  const GraphStatistics s = statistics({offsets, {}, {}, false}, 2);

  EXPECT_EQ(s.components, 0);
  EXPECT_EQ(s.mean_degree, 0);
}

/// Slow twin: labels spread along arcs until nothing changes.
Offset components_by_spreading(const Csr& graph) {
  std::vector<Offset> label(std::size_t(graph.num_nodes()));
  for (std::size_t row = 0; row < label.size(); ++row) label[row] = Offset(row);
  for (bool changed = true; changed;) {
    changed = false;
    for (Offset row = 0; row < graph.num_nodes(); ++row) {
      for (const RowId to : graph.neighbours(row)) {
        const Offset least = std::min(label[std::size_t(row)], label[to]);
        changed = changed || label[std::size_t(row)] != label[to];
        label[std::size_t(row)] = label[to] = least;
      }
    }
  }
  std::sort(label.begin(), label.end());
  return std::unique(label.begin(), label.end()) - label.begin();
}

TEST(Statistics, ComponentsAndPercentilesAgreeWithTheirSlowTwins) {
  for (const Offset edges : {500, 1500, 4000, 20000}) {
    GeneratorOptions options;
    options.kind = "er", options.nodes = 3000, options.edges = edges;
    const BuiltGraph graph = generate(options);
    std::vector<Offset> degrees;
    for (Offset row = 0; row < 3000; ++row) degrees.push_back(graph.csr().degree(row));
    std::sort(degrees.begin(), degrees.end());

    const GraphStatistics s = statistics(graph.csr(), 4);

    EXPECT_EQ(s.components, components_by_spreading(graph.csr()));
    EXPECT_EQ(s.degree_p50, degrees[1499]);  // nearest rank: value 1500 of 3000
    EXPECT_EQ(s.degree_p90, degrees[2699]);
    EXPECT_EQ(s.degree_p99, degrees[2969]);
    EXPECT_EQ(s.degree_max, degrees[2999]);
    EXPECT_EQ(s.isolated, std::count(degrees.begin(), degrees.end(), 0));
  }
}

}  // namespace
}  // namespace gs
