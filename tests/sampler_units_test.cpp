// Units of training by kind, and negatives that are mixed of several draws.
#include <cmath>
#include <set>

#include "graphscale/sampler.hpp"

#include "tests/support/backends.hpp"
#include "tests/support/graphs.hpp"

namespace gs {
namespace {

TEST(Units, OfAnEpochAreWalksOrTilesOfAllArcs) {
  Config config;
  config.sampler.walks_per_node = 7;
  EXPECT_EQ(units_per_epoch(config, 100, 5000), 700);
  config.model.kind = "line";
  EXPECT_EQ(unit_length(config), 40);
  EXPECT_EQ(units_per_epoch(config, 100, 5000), 250);
  EXPECT_EQ(units_per_epoch(config, 100, 5001), 251);
  config.model.kind = "rotate";
  EXPECT_EQ(unit_length(config), 96);
  EXPECT_EQ(units_per_epoch(config, 100, 65), 3);
  config.model.reciprocal = true;
  EXPECT_EQ(unit_length(config), 128);
  EXPECT_EQ(units_per_epoch(config, 100, 65), 3);
}

class NegativeMix : public OnBackends {};

std::vector<double> drawn_shares(TestDevice& on, const NegativeTable& table, Span<const RowId> step, Offset rows) {
  constexpr Offset kTiles = 20'000;
  constexpr int kEach = 8;
  Values<RowId> negatives(on, kTiles * kEach, kNoRow);
  on.ops.draw_negatives(table.view(step), {5, 0, 0, kTiles, 1}, 1, kEach, negatives.span(), on.exec);
  std::vector<double> shares(std::size_t(rows), 0);
  for (const RowId row : negatives.host()) shares[row] += 1.0 / (kTiles * kEach);
  return shares;
}

/// Five standard errors of a share.
double error_of(double share) { return 5 * std::sqrt(share * (1 - share) / 160'000); }

TEST_P(NegativeMix, MixUniformDrawsWithThoseByDegree) {
  TestDevice on(GetParam());
  const SmallGraph graph = graph_of(4, {{0, 1}, {0, 1}, {0, 1}, {0, 2}});  // directed: 3 and 1 arcs reach rows 1 and 2
  Config config;
  config.sampler.negative_power = 1, config.sampler.uniform_share = 0.4;

  const std::vector<double> shares = drawn_shares(on, NegativeTable(graph.csr(), config, 10, on.exec), {}, 14);

  const double expected[] = {0.1, 0.1 + 0.6 * 0.75, 0.1 + 0.6 * 0.25, 0.1};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(shares[std::size_t(10 + i)], expected[i], error_of(expected[i])) << i;
}

TEST_P(NegativeMix, DrawAShareFromTheStepsNodes) {
  TestDevice on(GetParam());
  SmallGraph graph = graph_of(4, {{0, 1}, {1, 0}});
  graph.directed = false;
  Config config;
  config.sampler.negative_power = 0, config.sampler.in_batch_share = 0.5;
  Values<RowId> step(on, std::vector<RowId>{3, 2, 3, kNoRow});

  const std::vector<double> shares = drawn_shares(on, NegativeTable(graph.csr(), config, 0, on.exec), step.span(), 4);

  const double from_table = 0.5 + 0.5 / 4;  // a quarter of the step's places is empty
  const double expected[] = {from_table / 2, from_table / 2, 0.5 / 4, 0.5 / 2};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(shares[std::size_t(i)], expected[i], error_of(expected[i])) << i;
}

TEST_P(NegativeMix, OfTriplesNeverAreRelations) {
  TestDevice on(GetParam());
  SmallGraph graph = graph_of(3, {{0, 1}, {1, 2}});
  const std::vector<RowId> relations{0, 1};
  Csr csr = graph.csr();
  csr.relations = relations, csr.num_relations = 2;
  Config config = default_config("transe");
  config.sampler.in_batch_share = 1;
  Values<RowId> step(on, std::vector<RowId>{2, 0, 3, 3, 1, 4});  // rows 2 to 4 are the nodes

  const std::vector<double> shares = drawn_shares(on, NegativeTable(csr, config, 2, on.exec), step.span(), 5);

  const double expected[] = {0, 0, 0.25, 0.5, 0.25};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(shares[std::size_t(i)], expected[i], error_of(expected[i])) << i;
}

GS_ON_ALL_BACKENDS(NegativeMix);

}  // namespace
}  // namespace gs
