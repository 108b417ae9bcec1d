#include <cstring>

#include "graphscale/store.hpp"

#include "tests/support/backends.hpp"
#include "tests/support/graphs.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/second_order.hpp"

namespace gs {
namespace {

/// Walks of a replicated graph.
std::vector<RowId> replicated(const SmallGraph& graph, const WalkRule& rule, const kernels::WalkBatch& batch) {
  TestDevice on(Backend::cpu);
  const WalkTopology topology(graph.csr(), rule, on.exec);
  std::vector<RowId> nodes(std::size_t(batch.count * batch.length));
  on.ops.make_walks(topology.view(), batch, nodes, on.exec);
  return nodes;
}

/// The walks of a step by ranks that share it, each with its arcs alone; chosen: by the owner of their start.
std::vector<RowId> partitioned(const SmallGraph& graph, const WalkRule& rule, const kernels::WalkBatch& step,
                               const Config& config, int ranks, bool chosen = false) {
  std::vector<RowId> all(std::size_t(step.count * step.length), 7);
  run_on_ranks(ranks, [&](Comm& comm) {
    const Placement placement = Placement::make(config, graph.csr(), comm);
    MemoryLedger ledger((Device()));
    const Exec exec{{}, 1, nullptr, &ledger};
    PartitionedTopology topology(graph.csr(), rule, placement, comm, exec);
    const int index = placement.compute_index(comm.rank()), computing = int(placement.compute().size());
    WalkShare share;
    if (index >= 0)
      share = chosen ? share_by_start(step, graph.csr().num_nodes(), index, computing,
                                      [&](RowId row) { return placement.owners().owner(row) % computing; })
                     : share_of_walks(step.first, step.count, index, computing, false);
    kernels::WalkBatch batch = step;
    batch.first = share.first, batch.count = share.count, batch.chosen = share.chosen;
    std::vector<RowId> nodes(std::size_t(batch.count * batch.length));
    for (int again = 0; again < 2; ++again) topology.make_walks(batch, nodes);
    for (Offset i = 0; i < batch.count; ++i)
      std::copy_n(nodes.begin() + i * step.length, step.length,
                  all.begin() + (batch.walk(i) - step.first) * step.length);
  });
  return all;
}

Config with_placement(const char* placement) {
  Config config;
  config.store.placement = placement;
  return config;
}

TEST(PartitionedTopology, WalksAsAReplicatedGraphOnAnyRanks) {
  const SmallGraph graph = random_graph(101, 700, true, 3);
  const kernels::WalkBatch step{5, 2, 90, 130, 9};
  for (const bool weighted : {false, true}) {
    const std::vector<RowId> expected = replicated(graph, {weighted}, step);
    for (const char* placement : {"cyclic", "partition"})
      for (const int ranks : {1, 2, 3, 8})
        for (const bool chosen : {false, true})
          EXPECT_EQ(partitioned(graph, {weighted}, step, with_placement(placement), ranks, chosen), expected)
              << placement << " on " << ranks << " ranks, weighted " << weighted << ", chosen " << chosen;
  }
}

TEST(PartitionedTopology, WalksEndAtSinks) {
  const SmallGraph graph = graph_of(
      11, {{0, 1, 1}, {0, 2, 1}, {1, 3, 1}, {2, 0, 1}, {3, 2, 1}, {3, 5, 1}, {4, 4, 1}, {5, 6, 0}, {7, 0, 1}}, true);
  const kernels::WalkBatch step{1, 0, 0, 44, 12};
  for (const bool weighted : {false, true}) {
    const std::vector<RowId> expected = replicated(graph, {weighted}, step);
    EXPECT_GT(std::count(expected.begin(), expected.end(), kNoRow), 100);
    for (const int ranks : {1, 2, 3, 8})
      EXPECT_EQ(partitioned(graph, {weighted}, step, with_placement("cyclic"), ranks), expected) << ranks;
  }
}

TEST(PartitionedTopology, ServesWithoutWalksAndWalksWithoutRows) {
  const SmallGraph graph = random_graph(101, 700, false, 3);
  const kernels::WalkBatch step{5, 2, 0, 50, 9};
  const std::vector<RowId> expected = replicated(graph, {false}, step);
  for (const char* placement : {"cyclic", "partition"}) {
    Config config = with_placement(placement);
    config.ranks.storage = "0,2";
    config.ranks.compute = "1,3";
    EXPECT_EQ(partitioned(graph, {false}, step, config, 4), expected) << placement;
  }
}

TEST(PartitionedTopology, TakesMoreRanksThanRowsOrWalks) {
  const SmallGraph graph = random_graph(5, 12, false, 3);
  for (const Offset walks : {0, 3}) {
    const kernels::WalkBatch step{5, 2, 7, walks, 4};
    for (const char* placement : {"cyclic", "partition"})
      EXPECT_EQ(partitioned(graph, {false}, step, with_placement(placement), 8), replicated(graph, {false}, step));
  }
}

TEST(PartitionedTopology, WalksFarIntoAnEpochAndOfOneNode) {
  const SmallGraph graph = random_graph(101, 700, false, 3);
  const kernels::WalkBatch far{5, 2, Offset(1) << 40, 60, 5}, starts{5, 2, 0, 60, 1};
  EXPECT_EQ(partitioned(graph, {false}, far, with_placement("cyclic"), 3), replicated(graph, {false}, far));
  EXPECT_EQ(partitioned(graph, {false}, starts, with_placement("cyclic"), 3), replicated(graph, {false}, starts));
}

TEST(PartitionedTopology, WalksBySecondOrderAsAReplicatedGraphOnAnyRanks) {
  const std::pair<const char*, SmallGraph> graphs[] = {
      {"directed", directed_multigraph(true)},
      {"undirected", undirected_multigraph(true)},
      {"random", random_graph(60, 1500, true, 3)},
      {"star", star_with_edges(50, 30)},
  };
  const kernels::WalkBatch step{5, 2, 90, 130, 9};
  for (const auto& [name, graph] : graphs)
    for (const auto& [p, q] : {std::pair{0.25, 4.0}, {4, 0.25}, {1e-6, 1e6}, {1, 1e6}, {1e6, 1e-6}})
      for (const bool weighted : {false, true}) {
        const WalkRule rule{weighted, float(1 / p), float(1 / q)};
        const std::vector<RowId> expected = replicated(graph, rule, step);
        for (const int ranks : {1, 2, 3, 8})
          EXPECT_EQ(partitioned(graph, rule, step, with_placement("cyclic"), ranks, ranks == 3), expected)
              << name << ", p " << p << ", q " << q << " on " << ranks << " ranks, weighted " << weighted;
      }
}

TEST(PartitionedTopology, WalksBySecondOrderWherePartsAndRolesDiffer) {
  const SmallGraph graph = undirected_multigraph(true);
  const kernels::WalkBatch step{5, 2, 0, 50, 9};
  const WalkRule rule{true, 4, 0.25f};
  Config config = with_placement("partition");
  config.ranks.storage = "0,2";
  config.ranks.compute = "1,3";
  EXPECT_EQ(partitioned(graph, rule, step, config, 4), replicated(graph, rule, step));
}

TEST(PartitionedTopology, HoldsWeightsAndRoomForQuestionsWhereWalksAreOfSecondOrder) {
  const SmallGraph graph = random_graph(100, 1000, true, 3);
  const WalkRule rule{true, 4, 0.25f};
  run_on_ranks(2, [&](Comm& comm) {
    const Placement placement = Placement::cyclic(100, 2);
    MemoryLedger ledger((Device()));
    PartitionedTopology topology(graph.csr(), rule, placement, comm, {{}, 1, nullptr, &ledger});
    std::vector<RowId> nodes(50 * 9);
    topology.make_walks({5, 2, Offset(50 * comm.rank()), 50, 9}, nodes);
    Offset held = 0;
    for (const auto& [purpose, bytes] : ledger.held()) held += bytes;
    EXPECT_EQ(held, PartitionedTopology::bytes(50, placement.part_of(comm.rank(), graph.csr()).local_arcs, rule));
  });
}

TEST(PartitionedTopology, HoldsItsOwnArcsAndSendsTwelveBytesAMove) {
  const SmallGraph graph = random_graph(100, 1000, false, 3);
  const kernels::WalkBatch step{5, 2, 0, 100, 9};
  std::vector<Offset> held(2), predicted(2), sent(2);
  run_on_ranks(2, [&](Comm& comm) {
    const auto rank = std::size_t(comm.rank());
    const Placement placement = Placement::cyclic(100, 2);
    MemoryLedger ledger((Device()));
    PartitionedTopology topology(graph.csr(), {false}, placement, comm, {{}, 1, nullptr, &ledger});
    Offset arcs = 0;
    for (Offset i = 0; i < placement.rows_of(comm.rank()); ++i)
      arcs += graph.csr().degree(placement.sequence_of(comm.rank())[i]);
    for (const auto& [purpose, bytes] : ledger.held()) held[rank] += bytes;
    predicted[rank] = PartitionedTopology::bytes(placement.rows_of(comm.rank()), arcs, {false});
    std::vector<RowId> nodes(50 * 9);
    const Offset before = comm.traffic().sent_bytes;

    topology.make_walks({5, 2, Offset(50 * rank), 50, 9}, nodes);

    sent[rank] = comm.traffic().sent_bytes - before;
  });

  EXPECT_EQ(held, predicted);
  const std::vector<RowId> nodes = replicated(graph, {false}, step);
  Offset expected = 2 * (2 + 9) * Offset(sizeof(Offset));  // counts of walks and of each step's mail
  for (Offset walk = 0; walk < 100; ++walk)
    for (Offset at = 0; at < 9; ++at) {
      const RowId from = at == 0 ? RowId(walk / 50) : nodes[std::size_t(walk * 9 + at - 1)];
      const RowId to = nodes[std::size_t(walk * 9 + at)];
      const RowId home = RowId(walk / 50);
      const bool moves = at < 8 && from % 2 != to % 2, tells = from % 2 != home && (at == 8 || to % 2 != home);
      expected += (moves ? 12 : 0) + (tells ? 8 : 0);
    }
  EXPECT_EQ(sent[0] + sent[1], expected);
}

}  // namespace
}  // namespace gs
