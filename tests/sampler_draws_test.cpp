// Edges by weight and triples in a shuffled order: units of training that are not walks.
#include "graphscale/sampler.hpp"

#include "tests/support/backends.hpp"
#include "tests/support/chi_square.hpp"
#include "tests/support/graphs.hpp"

namespace gs {
namespace {

constexpr RowId kUnwritten = 0xABABABAB;

// --------------------------------------------------------------------------------------------------------------- edges

/// Sources in proportion to the weight of their arcs.
std::vector<kernels::AliasSlot> sources_of(const SmallGraph& graph, bool weighted) {
  std::vector<double> weights(std::size_t(graph.csr().num_nodes()), 0);
  for (std::size_t node = 0; node < weights.size(); ++node)
    for (Offset arc = graph.offsets[node]; arc < graph.offsets[node + 1]; ++arc)
      weights[node] += weighted ? graph.weights[std::size_t(arc)] : 1;
  return alias_table(weights);
}

std::vector<RowId> edges_of(TestDevice& on, const SmallGraph& graph, const kernels::WalkBatch& batch, bool weighted) {
  const WalkTopology topology(graph.csr(), {weighted}, on.exec);
  const Values<kernels::AliasSlot> sources(on, sources_of(graph, weighted));
  Values<RowId> nodes(on, batch.count * batch.length, kUnwritten);
  on.ops.draw_edges(topology.view(), {sources.span()}, batch, nodes.span(), on.exec);
  return nodes.host();
}

class Edges : public OnBackends {};

TEST_P(Edges, AreDrawnInProportionToTheirWeights) {
  TestDevice on(GetParam(), 2);
  SmallGraph graph = random_graph(12, 60, true, 8);  // with parallel arcs
  std::fill(graph.weights.begin() + graph.offsets[7], graph.weights.begin() + graph.offsets[8], 0.0f);
  graph.weights[0] = 0;
  for (const bool weighted : {false, true}) {
    const std::vector<RowId> nodes = edges_of(on, graph, {3, 1, 5, 5000, 14}, weighted);

    std::vector<double> counts(144, 0), probabilities(144, 0);
    double sum = 0;
    for (std::size_t i = 0; i < nodes.size(); i += 2) ++counts[nodes[i] * 12 + nodes[i + 1]];
    for (std::size_t node = 0; node < 12; ++node)
      for (Offset arc = graph.offsets[node]; arc < graph.offsets[node + 1]; ++arc) {
        const double weight = weighted ? graph.weights[std::size_t(arc)] : 1;
        probabilities[node * 12 + graph.targets[std::size_t(arc)]] += weight, sum += weight;
      }
    for (double& p : probabilities) p /= sum;
    EXPECT_LT(chi_square_sigmas(counts, probabilities), kChiSquareLimit) << "weighted " << weighted;
  }
}

TEST_P(Edges, AreTheSameForAnyThreadsBatchesAndBackend) {
  const SmallGraph graph = random_graph(257, 2000, true, 4);
  TestDevice one_thread(Backend::cpu), on(GetParam(), 3);
  for (const bool weighted : {false, true}) {
    const std::vector<RowId> whole = edges_of(one_thread, graph, {9, 1, 0, 300, 8}, weighted);

    std::vector<RowId> parts = edges_of(on, graph, {9, 1, 0, 101, 8}, weighted);
    const std::vector<RowId> rest = edges_of(on, graph, {9, 1, 101, 199, 8}, weighted);

    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, whole);
    EXPECT_NE(edges_of(on, graph, {9, 2, 0, 300, 8}, weighted), whole);
  }
}

TEST_P(Edges, OfASourceWithoutArcsAreNone) {
  TestDevice on(GetParam());
  const SmallGraph graph = graph_of(2, {{0, 1}});
  const WalkTopology topology(graph.csr(), {}, on.exec);
  const Values<kernels::AliasSlot> sources(on, alias_table(std::vector<double>{1, 1}));
  Values<RowId> nodes(on, 2 * 400, kUnwritten);

  on.ops.draw_edges(topology.view(), {sources.span()}, {3, 1, 0, 100, 8}, nodes.span(), on.exec);

  const std::vector<RowId> drawn = nodes.host();
  for (std::size_t i = 0; i < drawn.size(); i += 2)
    EXPECT_TRUE((drawn[i] == 0 && drawn[i + 1] == 1) || (drawn[i] == kNoRow && drawn[i + 1] == kNoRow));
  EXPECT_GT(std::count(drawn.begin(), drawn.end(), kNoRow), 0);
  EXPECT_GT(std::count(drawn.begin(), drawn.end(), RowId(0)), 0);
}

GS_ON_ALL_BACKENDS(Edges);

// ------------------------------------------------------------------------------------------------------------- triples

/// Triple i is (3 i, 3 i + 1, 3 i + 2).
std::vector<RowId> triples_of(TestDevice& on, Offset triples, const kernels::WalkBatch& batch) {
  std::vector<RowId> list[3];
  for (RowId i = 0; i < RowId(3 * triples); ++i) list[i % 3].push_back(i);
  const Values<RowId> heads(on, list[0]), relations(on, list[1]), tails(on, list[2]);
  Values<RowId> nodes(on, batch.count * batch.length, kUnwritten);
  on.ops.draw_triples({heads.span(), relations.span(), tails.span()}, batch, nodes.span(), on.exec);
  return nodes.host();
}

class Triples : public OnBackends {};

TEST_P(Triples, ComeOnceAnEpochInAnOrderOfItsOwn) {
  TestDevice on(GetParam(), 2);
  constexpr Offset kTriples = 101, kUnits = 26;  // of 4: the last has one triple
  std::vector<RowId> orders[2];
  for (const std::uint32_t epoch : {0, 1}) {
    const std::vector<RowId> nodes = triples_of(on, kTriples, {5, epoch, 0, kUnits, 12});

    for (std::size_t i = 0; i < nodes.size(); i += 3) {
      if (i >= 3 * kTriples) {
        EXPECT_EQ(std::count(&nodes[i], &nodes[i] + 3, kNoRow), 3);
        continue;
      }
      ASSERT_EQ(nodes[i] % 3, 0u);
      EXPECT_TRUE(nodes[i + 1] == nodes[i] + 1 && nodes[i + 2] == nodes[i] + 2);
      orders[epoch].push_back(nodes[i] / 3);
    }
    std::vector<RowId> sorted = orders[epoch];
    std::sort(sorted.begin(), sorted.end());
    for (RowId i = 0; i < RowId(kTriples); ++i) ASSERT_EQ(sorted[i], i);
  }
  EXPECT_NE(orders[0], orders[1]);
}

TEST_P(Triples, AreTheSameForAnyThreadsBatchesAndBackend) {
  TestDevice one_thread(Backend::cpu), on(GetParam(), 3);
  const std::vector<RowId> whole = triples_of(one_thread, 1000, {5, 2, 0, 130, 24});
  std::vector<Offset> numbers;
  for (Offset i = 0; i < 130; ++i) numbers.push_back(i * 37 % 130);
  const Values<Offset> chosen(on, numbers);

  EXPECT_EQ(triples_of(on, 1000, {5, 2, 0, 130, 24}), whole);
  const std::vector<RowId> scattered = triples_of(on, 1000, {5, 2, 0, 130, 24, chosen.span()});

  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_TRUE(std::equal(&scattered[i * 24], &scattered[i * 24] + 24, &whole[std::size_t(numbers[i]) * 24])) << i;
}

GS_ON_ALL_BACKENDS(Triples);

}  // namespace
}  // namespace gs
