// Walks by single steps: of chosen walks, and of walkers that change ranks between steps.
#include "graphscale/sampler.hpp"

#include "tests/support/backends.hpp"
#include "tests/support/graphs.hpp"

namespace gs {
namespace {

std::vector<RowId> walks_of(TestDevice& on, const SmallGraph& graph, const kernels::WalkBatch& batch, bool weighted) {
  const WalkTopology topology(graph.csr(), {weighted}, on.exec);
  Values<RowId> nodes(on, batch.count * batch.length, RowId(0xABABABAB));
  on.ops.make_walks(topology.view(), batch, nodes.span(), on.exec);
  return nodes.host();
}

/// The batch's walks, every step taken by the part that holds the walker's node.
std::vector<RowId> walks_over_parts(TestDevice& on, const SmallGraph& graph, const kernels::WalkBatch& batch,
                                    bool weighted, RowId parts) {
  std::vector<WalkTopology> topologies;
  for (RowId part = 0; part < parts; ++part)
    topologies.emplace_back(part_of(graph, part, parts).csr(), WalkRule{weighted}, on.exec);
  std::vector<RowId> nodes(std::size_t(batch.count * batch.length), kNoRow);
  const auto place = [&](Offset walk, int step) -> RowId& { return nodes[std::size_t(walk * batch.length + step)]; };
  const auto n = std::uint64_t(graph.csr().num_nodes());
  for (Offset i = 0; i < batch.count; ++i)
    place(i, 0) = start_of_walk(batch.seed, batch.epoch, std::uint64_t(batch.first + i), n);

  for (int step = 1; step < batch.length; ++step)
    for (RowId part = 0; part < parts; ++part) {
      std::vector<kernels::Walker> here;
      for (Offset i = batch.count - 1; i >= 0; --i)  // the order of walkers must not matter
        if (const RowId at = place(i, step - 1); at != kNoRow && at % parts == part)
          here.push_back({batch.first + i, at / parts, std::uint32_t(step)});
      Values<kernels::Walker> walkers(on, here);
      Values<RowId> next(on, Offset(here.size()), RowId(0xABABABAB));
      on.ops.move_walkers(topologies[part].view(), batch, walkers.span(), next.span(), on.exec);
      const std::vector<RowId> moved = next.host();
      for (std::size_t w = 0; w < here.size(); ++w) place(here[w].walk - batch.first, step) = moved[w];
    }
  return nodes;
}

class Walkers : public OnBackends {};

TEST_P(Walkers, OverAnyPartsWalkAsOnTheWholeGraph) {
  TestDevice on(GetParam(), 2);
  for (const bool weighted : {false, true}) {
    SmallGraph graph = random_graph(101, 400, true, 3);
    if (weighted) std::fill(graph.weights.begin() + graph.offsets[7], graph.weights.begin() + graph.offsets[8], 0.0f);
    const kernels::WalkBatch batch{5, 2, 30, 300, 12};
    const std::vector<RowId> whole = walks_of(on, graph, batch, weighted);

    for (const RowId parts : {1, 2, 3}) {
      SCOPED_TRACE(cat(weighted ? "weighted" : "uniform", " over ", parts));
      EXPECT_EQ(walks_over_parts(on, graph, batch, weighted, parts), whole);
    }
  }
}

TEST_P(Walkers, EndAtSinks) {
  TestDevice on(GetParam());
  const SmallGraph graph = graph_of(5, {{0, 1}, {0, 2}, {1, 3}, {4, 0}});
  const kernels::WalkBatch batch{1, 0, 0, 50, 8};
  const std::vector<RowId> whole = walks_of(on, graph, batch, false);

  EXPECT_GT(std::count(whole.begin(), whole.end(), kNoRow), 0);
  for (const RowId parts : {1, 2, 3, 5}) EXPECT_EQ(walks_over_parts(on, graph, batch, false, parts), whole);
}

/// One call moves walkers that are at different places of their walks.
void expect_moves_along(TestDevice& on, const kernels::WalkGraph& graph, const kernels::WalkBatch& batch,
                        const std::vector<RowId>& walks) {
  std::vector<kernels::Walker> list;
  std::vector<RowId> wanted;
  for (Offset walk = 0; walk < batch.count; ++walk) {
    const Offset step = 1 + walk % (batch.length - 1), place = walk * batch.length + step;
    list.push_back({walk, walks[std::size_t(place - 1)], std::uint32_t(step)});
    wanted.push_back(walks[std::size_t(place)]);
  }
  Values<kernels::Walker> walkers(on, list);
  Values<RowId> next(on, batch.count, RowId(0xABABABAB));

  on.ops.move_walkers(graph, batch, walkers.span(), next.span(), on.exec);

  EXPECT_EQ(next.host(), wanted);
}

TEST_P(Walkers, AreKeyedByTheirOwnStep) {
  TestDevice on(GetParam());
  const SmallGraph graph = random_graph(50, 600, false, 8);
  const WalkTopology topology(graph.csr(), {false}, on.exec);
  const kernels::WalkBatch batch{5, 2, 0, 80, 12};

  expect_moves_along(on, topology.view(), batch, walks_of(on, graph, batch, false));
}

/// As of nodes with 2^24 arcs, but with few.
TEST_P(Walkers, LeaveNodesWhoseDegreeStandsInTheOffsets) {
  TestDevice on(GetParam());
  const kernels::WalkBatch batch{5, 2, 0, 80, 12};
  for (const bool weighted : {false, true}) {
    const SmallGraph graph = random_graph(50, 600, true, 8);
    const WalkTopology topology(graph.csr(), {weighted}, on.exec);
    std::vector<kernels::PackedArcs> words;
    for (Offset row = 0; row < 50; ++row)
      words.push_back(kernels::kManyArcs << kernels::kDegreeShift | std::uint64_t(graph.offsets[std::size_t(row)]));
    Values<kernels::PackedArcs> arcs(on, words);
    kernels::WalkGraph view = topology.view();
    view.arcs = arcs.span();
    const std::vector<RowId> whole = walks_of(on, graph, batch, weighted);
    Values<RowId> nodes(on, batch.count * batch.length, kNoRow);

    on.ops.make_walks(view, batch, nodes.span(), on.exec);

    EXPECT_EQ(nodes.host(), whole);
    expect_moves_along(on, view, batch, whole);
  }
}

TEST_P(Walkers, ChosenWalksAreTheEpochs) {
  TestDevice on(GetParam(), 2);
  for (const bool weighted : {false, true}) {
    const SmallGraph graph = random_graph(101, 400, true, 3);
    const std::vector<RowId> whole = walks_of(on, graph, {5, 2, 0, 500, 12}, weighted);
    std::vector<Offset> numbers;
    for (Offset i = 0; i < 200; ++i) numbers.push_back(i * 37 % 500);
    Values<Offset> chosen(on, numbers);

    const std::vector<RowId> walks = walks_of(on, graph, {5, 2, 0, 200, 12, chosen.span()}, weighted);

    for (std::size_t w = 0; w < numbers.size(); ++w)
      for (std::size_t i = 0; i < 12; ++i) ASSERT_EQ(walks[w * 12 + i], whole[std::size_t(numbers[w]) * 12 + i]);
  }
}

GS_ON_ALL_BACKENDS(Walkers);

}  // namespace
}  // namespace gs
