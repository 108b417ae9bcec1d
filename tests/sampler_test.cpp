#include "graphscale/sampler.hpp"

#include "tests/support/backends.hpp"
#include "tests/support/chi_square.hpp"
#include "tests/support/graphs.hpp"

namespace gs {
namespace {

Config with_power(double power) {
  Config config;
  config.sampler.negative_power = power;
  return config;
}

// -------------------------------------------------------------------------------------------------------- alias tables

/// The probability of each slot that a table gives, exactly.
std::vector<double> probabilities_of(const std::vector<kernels::AliasSlot>& table) {
  std::vector<double> probability(table.size(), 0);
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double own = double(table[i].threshold) / 4294967296.0;
    probability[i] += own / double(table.size());
    probability[table[i].alias] += (1 - own) / double(table.size());
  }
  return probability;
}

TEST(AliasTable, GivesEveryWeightItsShare) {
  for (const std::vector<double>& weights :
       {std::vector<double>{1}, {1, 1, 1}, {0, 3, 1, 0}, {5, 1e-9, 2, 0, 0, 1e3}, {1e-300, 1e-300, 2e-300}}) {
    double sum = 0;
    for (const double w : weights) sum += w;

    const std::vector<double> got = probabilities_of(alias_table(weights));

    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(got[i], weights[i] / sum, 1e-9);
      EXPECT_EQ(got[i] == 0, weights[i] == 0) << "weight " << weights[i];
    }
  }
}

TEST(AliasTable, GivesManyWeightsTheirShares) {
  std::vector<double> weights(10007);
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] = i % 7 == 0 ? 0 : std::pow(double(1 + i), -0.8);

  const std::vector<double> got = probabilities_of(alias_table(weights));

  for (std::size_t i = 0; i < weights.size(); ++i) ASSERT_NEAR(got[i], weights[i] / sum, 1e-9) << i;
}

TEST(AliasTable, RefusesWeightsThatAreNoDistribution) {
  EXPECT_THROW(alias_table(std::vector<double>{0, 0}), Error);
  EXPECT_THROW(alias_table(std::vector<double>{1, -1}), Error);
  EXPECT_THROW(alias_table(std::vector<double>{1, std::nan("")}), Error);
}

// --------------------------------------------------------------------------------------------------------------- walks

std::vector<RowId> walks_of(TestDevice& on, const SmallGraph& graph, kernels::WalkBatch batch, bool weighted = true) {
  const WalkTopology topology(graph.csr(), {weighted}, on.exec);
  Values<RowId> nodes(on, batch.count * batch.length, RowId(0xABABABAB));
  on.ops.make_walks(topology.view(), batch, nodes.span(), on.exec);
  return nodes.host();
}

class Walks : public OnBackends {};

TEST_P(Walks, FollowArcsAndStartAtEveryNodeOnceAPass) {
  TestDevice on(GetParam());
  const SmallGraph graph = random_graph(101, 400, false, 3);

  const std::vector<RowId> walks = walks_of(on, graph, {5, 2, 0, 3 * 101, 12});

  std::vector<int> starts(101, 0);
  for (std::size_t w = 0; w < 3 * 101; ++w) {
    ++starts[walks[w * 12]];
    for (std::size_t i = 1; i < 12; ++i)
      ASSERT_TRUE(graph.csr().has_arc(walks[w * 12 + i - 1], walks[w * 12 + i])) << "walk " << w << " step " << i;
  }
  for (const int count : starts) EXPECT_EQ(count, 3);
}

TEST_P(Walks, AreTheSameForAnyThreadsBatchesAndBackend) {
  for (const bool weighted : {false, true}) {
    const SmallGraph graph = random_graph(257, 2000, true, 4);
    TestDevice one_thread(Backend::cpu, 1), on(GetParam(), 3);
    const std::vector<RowId> whole = walks_of(one_thread, graph, {9, 1, 0, 700, 9}, weighted);

    EXPECT_EQ(walks_of(on, graph, {9, 1, 0, 700, 9}, weighted), whole);
    std::vector<RowId> parts;
    for (const auto& [first, count] : {std::pair<Offset, Offset>{0, 1}, {1, 130}, {131, 569}}) {
      const std::vector<RowId> part = walks_of(on, graph, {9, 1, first, count, 9}, weighted);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_EQ(parts, whole);
  }
}

TEST_P(Walks, SeedsAndEpochsGiveOthers) {
  TestDevice on(GetParam());
  const SmallGraph graph = random_graph(257, 2000, false, 4);

  const std::vector<RowId> base = walks_of(on, graph, {9, 1, 0, 257, 9});

  EXPECT_NE(walks_of(on, graph, {10, 1, 0, 257, 9}), base);
  EXPECT_NE(walks_of(on, graph, {9, 2, 0, 257, 9}), base);
}

TEST_P(Walks, EndAtSinksAndStayEnded) {
  TestDevice on(GetParam());
  const SmallGraph graph = graph_of(4, {{0, 1}, {0, 2}, {1, 3}});

  const std::vector<RowId> walks = walks_of(on, graph, {1, 0, 0, 4, 10});

  for (std::size_t w = 0; w < 4; ++w) {
    bool ended = false;
    for (std::size_t i = 1; i < 10; ++i) {
      const RowId before = walks[w * 10 + i - 1], at = walks[w * 10 + i];
      ended |= before == kNoRow || graph.csr().degree(before) == 0;
      EXPECT_EQ(at == kNoRow, ended) << "walk " << w << " step " << i;
    }
    EXPECT_TRUE(ended);
  }
}

TEST_P(Walks, UniformStepsMatchTheirProbabilities) {
  TestDevice on(GetParam());
  const SmallGraph graph = random_graph(23, 180, false, 8);  // with parallel arcs, which count twice

  const std::vector<RowId> walks = walks_of(on, graph, {3, 0, 0, 4000, 20});

  for (RowId node = 0; node < 23; ++node) {
    std::vector<double> counts(23, 0), probabilities(23, 0);
    for (const RowId target : graph.csr().neighbours(node))
      probabilities[target] += 1.0 / double(graph.csr().degree(node));
    for (std::size_t i = 0; i + 1 < walks.size(); ++i)
      if (i % 20 != 19 && walks[i] == node) ++counts[walks[i + 1]];
    EXPECT_LT(chi_square_sigmas(counts, probabilities), kChiSquareLimit) << "from node " << node;
  }
}

TEST_P(Walks, WeightedStepsMatchTheirProbabilities) {
  TestDevice on(GetParam());
  // Node 0 has a zero and a tiny weight; node 5 only zero weights: a sink. The rest lead back.
  const SmallGraph graph = graph_of(7,
                                    {{0, 1, 0},
                                     {0, 2, 3},
                                     {0, 3, 1},
                                     {0, 4, 1e-9f},
                                     {0, 6, 0.25f},
                                     {1, 0},
                                     {2, 0},
                                     {3, 0},
                                     {4, 0},
                                     {5, 0, 0},
                                     {6, 5}},
                                    true);

  const std::vector<RowId> walks = walks_of(on, graph, {3, 0, 0, 20000, 20});

  std::vector<double> counts(7, 0);
  for (std::size_t i = 0; i + 1 < walks.size(); ++i)
    if (i % 20 != 19) {
      if (walks[i] == 0) ++counts[walks[i + 1]];
      if (walks[i] == 5) {
        EXPECT_EQ(walks[i + 1], kNoRow);
      }
    }
  const double sum = 3 + 1 + 1e-9 + 0.25;
  EXPECT_LT(chi_square_sigmas(counts, {0, 0, 3 / sum, 1 / sum, 1e-9 / sum, 0, 0.25 / sum}), kChiSquareLimit);
}

TEST_P(Walks, AHubBeyondThePackedDegreeIsWalkedEvenly) {
  TestDevice on(GetParam());
  constexpr Offset kLeaves = (1 << 24) + 5;  // the packed word holds degrees below 2^24 - 1
  SmallGraph graph;
  graph.offsets = {0, kLeaves, kLeaves + 1, kLeaves + 2};
  graph.targets.assign(std::size_t(kLeaves), 1);
  std::fill(graph.targets.begin() + kLeaves / 2, graph.targets.end(), 2);  // the upper half leads to 2
  graph.targets.insert(graph.targets.end(), {0, 0});

  const std::vector<RowId> walks = walks_of(on, graph, {3, 0, 0, 3000, 11});

  std::vector<double> counts(3, 0);
  for (std::size_t i = 0; i + 1 < walks.size(); ++i)
    if (i % 11 != 10 && walks[i] == 0) ++counts[walks[i + 1]];
  EXPECT_LT(chi_square_sigmas(counts, {0, 0.5, 0.5}), kChiSquareLimit);
}

GS_ON_ALL_BACKENDS(Walks);

// ----------------------------------------------------------------------------------------------------------- negatives

class Negatives : public OnBackends {};

TEST_P(Negatives, MatchDegreeToThePower) {
  TestDevice on(GetParam());
  std::vector<Arc> arcs;
  for (RowId node = 0; node < 9; ++node)
    for (RowId k = 0; k <= node * node; ++k) arcs.push_back({node, RowId((node + k) % 9)});
  SmallGraph graph = graph_of(10, arcs);  // node 9 has no arc: never drawn
  graph.directed = false;
  const NegativeTable table(graph.csr(), with_power(0.75), 0, on.exec);
  Values<RowId> drawn(on, 3000 * 2 * 16, kNoRow);

  on.ops.draw_negatives(table.view(), {4, 1, 0, 3000, 10}, 2, 16, drawn.span(), on.exec);

  std::vector<double> counts(10, 0), probabilities(10, 0);
  double sum = 0;
  for (RowId node = 0; node < 9; ++node) sum += probabilities[node] = std::pow(1.0 + node * node, 0.75);
  for (double& p : probabilities) p /= sum;
  for (const RowId row : drawn.host()) ++counts[row];
  EXPECT_LT(chi_square_sigmas(counts, probabilities), kChiSquareLimit);
}

TEST_P(Negatives, AreTheSameForAnyBatchesAndBackend) {
  const SmallGraph graph = random_graph(300, 1000, false, 6);
  TestDevice host(Backend::cpu), on(GetParam(), 3);
  const NegativeTable host_table(graph.csr(), with_power(0.5), 0, host.exec),
      table(graph.csr(), with_power(0.5), 0, on.exec);
  Values<RowId> whole(host, 100 * 7, kNoRow), first(on, 33 * 7, kNoRow), rest(on, 67 * 7, kNoRow);

  host.ops.draw_negatives(host_table.view(), {4, 1, 0, 100, 10}, 1, 7, whole.span(), host.exec);
  on.ops.draw_negatives(table.view(), {4, 1, 0, 33, 10}, 1, 7, first.span(), on.exec);
  on.ops.draw_negatives(table.view(), {4, 1, 33, 67, 10}, 1, 7, rest.span(), on.exec);

  std::vector<RowId> joined = first.host();
  const std::vector<RowId> second = rest.host();
  joined.insert(joined.end(), second.begin(), second.end());
  EXPECT_EQ(joined, whole.host());
}

TEST_P(Negatives, DirectedGraphsCountArcsThatArrive) {
  TestDevice on(GetParam());
  const NegativeTable table(graph_of(3, {{0, 1}, {0, 2}, {1, 2}}).csr(), with_power(1), 0, on.exec);
  Values<RowId> drawn(on, 6000, kNoRow);

  on.ops.draw_negatives(table.view(), {4, 1, 0, 6000, 10}, 1, 1, drawn.span(), on.exec);

  std::vector<double> counts(3, 0);
  for (const RowId row : drawn.host()) ++counts[row];
  EXPECT_LT(chi_square_sigmas(counts, {0, 1.0 / 3, 2.0 / 3}), kChiSquareLimit);
}

GS_ON_ALL_BACKENDS(Negatives);

TEST(ExpectedPairs, IsTheMeanOverEveryDrawOfTheWindows) {
  kernels::TileShape shape;
  shape.walk_length = 5, shape.window = 2;
  shape.shrink_window = false;
  EXPECT_DOUBLE_EQ(expected_pairs(shape), 2 * (4 + 3));
  shape.shrink_window = true;
  EXPECT_DOUBLE_EQ(expected_pairs(shape), 2 * (4 + 3 * 0.5));
}

}  // namespace
}  // namespace gs
