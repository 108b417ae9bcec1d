#include <gtest/gtest.h>

#include <set>

#include "graphscale/store.hpp"

#include "tests/support/graphs.hpp"
#include "tests/support/ranks.hpp"

namespace gs {
namespace {

/// What `config` makes of the graph on each of `ranks` ranks.
std::vector<Placement> placements(const Config& config, const Csr& graph, int ranks) {
  std::vector<Placement> all(static_cast<std::size_t>(ranks));
  run_on_ranks(ranks, [&](Comm& comm) { all[std::size_t(comm.rank())] = Placement::make(config, graph, comm); });
  return all;
}

/// Every node's row has one owner and one local row there, and all ways back lead to it.
void expect_bijection(const Placement& placement, Offset nodes) {
  const kernels::Owners owners = placement.owners();
  std::set<std::pair<int, RowId>> places;
  for (Offset row = placement.dense_rows(); row < placement.rows(); ++row) {
    const int owner = owners.owner(RowId(row));
    const RowId local = owners.local_row(RowId(row));
    ASSERT_GE(owner, 0);
    ASSERT_LT(owner, owners.count);
    ASSERT_LT(Offset(local), placement.rows_of(owner)) << "row " << row;
    ASSERT_TRUE(places.emplace(owner, local).second) << "row " << row;
    ASSERT_EQ(placement.sequence_of(owner)[local], RowId(row));
  }
  Offset sum = 0;
  for (int owner = 0; owner < owners.count; ++owner) {
    sum += placement.rows_of(owner);
    for (Offset local = 1; local < placement.rows_of(owner); ++local)  // ascending: by degree
      ASSERT_LT(placement.sequence_of(owner)[local - 1], placement.sequence_of(owner)[local]);
  }
  EXPECT_EQ(sum, nodes);
  EXPECT_EQ(placement.nodes(), nodes);
}

/// Two complete graphs of `size` nodes, the lower rows and the upper ones, and one edge between them.
SmallGraph two_cliques(RowId size) {
  std::vector<Arc> arcs{{0, size}, {size, 0}};
  for (RowId a = 0; a < 2 * size; ++a)
    for (RowId b = a / size * size; b < (a / size + 1) * size; ++b)
      if (a != b) arcs.push_back({a, b});
  SmallGraph graph = graph_of(2 * size, arcs);
  graph.directed = false;
  return graph;
}

Config with_placement(const std::string& placement) {
  Config config;
  config.store.placement = placement;
  return config;
}

TEST(Placement, GivesEveryRowOneOwnerAndOneLocalRow) {
  const SmallGraph graph = random_graph(13, 60, false, 1);
  for (const char* kind : {"cyclic", "partition"})
    for (const int ranks : {1, 2, 3, 8, 20}) {
      SCOPED_TRACE(cat(kind, " on ", ranks));
      for (const Placement& placement : placements(with_placement(kind), graph.csr(), ranks)) {
        EXPECT_EQ(placement.ranks(), ranks);
        EXPECT_EQ(placement.rows(), 13);
        EXPECT_EQ(placement.owners().count, ranks);
        expect_bijection(placement, 13);
      }
    }
}

TEST(Placement, CyclicIsRowModRanks) {
  const Placement placement = Placement::cyclic(10, 3);
  EXPECT_EQ(placement.owners().owner(7), 1);
  EXPECT_EQ(placement.owners().local_row(7), 2u);
  EXPECT_EQ(placement.rows_of(0), 4);
  EXPECT_EQ(placement.rows_of(2), 3);
  EXPECT_FALSE(placement.is_partition());
}

TEST(Placement, IsTheSameOnAllRanksAndInEveryRun) {
  const SmallGraph graph = random_graph(200, 1500, false, 2);
  std::set<std::vector<RowId>> seen;
  for (int run = 0; run < 2; ++run)
    for (const Placement& placement : placements(with_placement("partition"), graph.csr(), 3))
      seen.insert(std::vector<RowId>(placement.positions().begin(), placement.positions().end()));
  EXPECT_EQ(seen.size(), 1u);
}

TEST(Placement, PartitionFindsTheCutBetweenTwoCliques) {
  const SmallGraph graph = two_cliques(20);

  const Placement placement = placements(with_placement("partition"), graph.csr(), 2)[0];

  for (RowId row = 0; row < 40; ++row)
    EXPECT_EQ(placement.owners().owner(row), placement.owners().owner(row / 20 * 20)) << "row " << row;
  const Placement::Balance balance = placement.balance(graph.csr());
  EXPECT_EQ(balance.least_rows, 20);
  EXPECT_EQ(balance.most_rows, 20);
  EXPECT_EQ(balance.least_arcs, 20 * 19 + 1);
  EXPECT_DOUBLE_EQ(balance.inside_share, 1 - 2.0 / double(graph.csr().num_arcs()));
}

TEST(Placement, PartitionIsNearlyEvenInRowsAndArcs) {
  SmallGraph graph = random_graph(3000, 30000, false, 4);  // directed: METIS sees it both ways
  const Placement::Balance balance = placements(with_placement("partition"), graph.csr(), 4)[0].balance(graph.csr());
  EXPECT_GT(balance.least_rows, 3000 / 4 * 0.9);
  EXPECT_LT(balance.most_rows, 3000 / 4 * 1.1);
  EXPECT_GT(balance.least_arcs, 30000 / 4 * 0.9);
  EXPECT_LT(balance.most_arcs, 30000 / 4 * 1.1);
}

TEST(Placement, PartitionTakesGraphsThatMetisDoesNot) {
  const std::vector<SmallGraph> graphs{graph_of(1, {}),
                                       graph_of(9, {}),
                                       graph_of(9, {{3, 3}, {3, 3}, {4, 4}}),  // nothing between two rows
                                       graph_of(9, {{0, 1}, {0, 1}, {1, 0}, {2, 2}}),
                                       graph_of(9, {{0, 8}}),
                                       graph_of(0, {})};
  for (std::size_t g = 0; g < graphs.size(); ++g)
    for (const int ranks : {1, 2, 8, 9, 10}) {
      SCOPED_TRACE(cat("graph ", g, " on ", ranks));
      const Csr graph = graphs[g].csr();
      expect_bijection(placements(with_placement("partition"), graph, ranks)[0], graph.num_nodes());
    }
}

TEST(Placement, DenseRowsComeBeforeTheNodesAndChangeNoNodesPlace) {
  constexpr Offset kRelations = 5;
  const SmallGraph graph = random_graph(60, 400, false, 1);
  Csr with_relations = graph.csr();
  with_relations.num_relations = kRelations;
  for (const char* kind : {"cyclic", "partition"}) {
    Config config = with_placement(kind);
    const Placement plain = placements(config, with_relations, 3)[1];
    config.model.kind = "transe";

    const Placement dense = placements(config, with_relations, 3)[1];

    EXPECT_EQ(plain.dense_rows(), 0) << "no relations in this model";
    EXPECT_EQ(dense.dense_rows(), kRelations);
    EXPECT_EQ(dense.rows(), kRelations + 60);
    expect_bijection(dense, 60);
    for (RowId node = 0; node < 60; ++node) {
      EXPECT_EQ(dense.owners().owner(kRelations + node), plain.owners().owner(node));
      EXPECT_EQ(dense.owners().local_row(kRelations + node), plain.owners().local_row(node));
    }
    EXPECT_EQ(dense.part_of(1, with_relations).local_arcs, plain.part_of(1, with_relations).local_arcs);
    EXPECT_EQ(dense.part_of(1).rows(), kRelations + 60);
    EXPECT_EQ(dense.balance(with_relations).inside_share, plain.balance(with_relations).inside_share);
    EXPECT_EQ(dense.balance(with_relations).most_arcs, plain.balance(with_relations).most_arcs);
  }
}

TEST(Placement, AReciprocalModelHasTwoRowsARelation) {
  Config config;
  config.model.kind = "complex";
  EXPECT_EQ(dense_rows_of(config, 7), 7);
  config.model.reciprocal = true;
  EXPECT_EQ(dense_rows_of(config, 7), 14);
  config.model.kind = "deepwalk";
  EXPECT_EQ(dense_rows_of(config, 7), 0);
}

TEST(Placement, RolesNameTheRanks) {
  const SmallGraph graph = random_graph(50, 300, false, 1);
  for (const char* kind : {"cyclic", "partition"}) {
    Config config = with_placement(kind);
    config.ranks.storage = "1,3";
    config.ranks.compute = "0-1";

    const Placement placement = placements(config, graph.csr(), 4)[2];

    EXPECT_EQ(placement.storage(), (std::vector<int>{1, 3}));
    EXPECT_EQ(placement.compute(), (std::vector<int>{0, 1}));
    EXPECT_EQ(placement.owners().count, 2);
    EXPECT_EQ(placement.owner_index(3), 1);
    EXPECT_EQ(placement.owner_index(0), -1);
    EXPECT_EQ(placement.compute_index(1), 1);
    EXPECT_EQ(placement.compute_index(3), -1);
    expect_bijection(placement, 50);
  }
}

TEST(ParseRanks, TakesNumbersAndRanges) {
  const std::vector<std::pair<const char*, std::vector<int>>> table{{"", {0, 1, 2, 3, 4, 5, 6, 7}},
                                                                    {"0", {0}},
                                                                    {"7", {7}},
                                                                    {"0-3,6", {0, 1, 2, 3, 6}},
                                                                    {"6,0-3", {0, 1, 2, 3, 6}},
                                                                    {"2-2", {2}},
                                                                    {"1,1,0-2", {0, 1, 2}},
                                                                    {"00007", {7}}};
  for (const auto& [text, ranks] : table) EXPECT_EQ(parse_ranks(text, 8, "ranks.storage"), ranks) << text;
}

TEST(ParseRanks, SaysWhatItFoundAndWhatThereIs) {
  for (const char* text : {"8", "0-8", "-1", "3-1", "0-", "-", ",", "0,", ",0", "a", "0 ", " 0", "0--1", "1.5", "0-3-5",
                           "99999999999999999999", "0;1"}) {
    try {
      parse_ranks(text, 8, "ranks.storage");
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::usage);
      const std::string what = error.what();
      EXPECT_EQ(what.find("ranks.storage: \"" + std::string(text) + "\""), 0u) << what;
      EXPECT_NE(what.find("ranks 0 to 7"), std::string::npos) << what;
    }
  }
}

TEST(HotRows, AreThoseAskedForOrThoseThatFit) {
  const Device gpu{Device::Kind::cuda, 0}, cpu{};
  Config config;
  EXPECT_EQ(choose_hot_rows(config, 1000, 512, 1 << 20, cpu), 1000);
  EXPECT_EQ(choose_hot_rows(config, 1000, 512, 512 * 100, gpu), 80);  // store.device_share is .8
  EXPECT_EQ(choose_hot_rows(config, 1000, 512, Offset(1) << 40, gpu), 1000);
  EXPECT_EQ(choose_hot_rows(config, 1000, 512, -5, gpu), 0);
  config.store.hot_rows = 30;
  EXPECT_EQ(choose_hot_rows(config, 1000, 512, 0, gpu), 30);
  EXPECT_EQ(choose_hot_rows(config, 1000, 512, 0, cpu), 30);
  EXPECT_EQ(choose_hot_rows(config, 20, 512, 0, cpu), 20);
}

}  // namespace
}  // namespace gs
