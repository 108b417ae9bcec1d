// Walks of second order against exact probabilities: p and q of node2vec, weights, directions, parallel arcs.
#include "graphscale/sampler.hpp"

#include "tests/support/backends.hpp"
#include "tests/support/chi_square.hpp"
#include "tests/support/second_order.hpp"

namespace gs {
namespace {

std::vector<RowId> walks_of(TestDevice& on, const SmallGraph& graph, const kernels::WalkBatch& batch,
                            const WalkRule& rule) {
  const WalkTopology topology(graph.csr(), rule, on.exec);
  Values<RowId> nodes(on, batch.count * batch.length, RowId(0xABABABAB));
  on.ops.make_walks(topology.view(), batch, nodes.span(), on.exec);
  return nodes.host();
}

/// Of a step from `node`, come from `from`, to each node: the definition, arc by arc.
std::vector<double> probabilities(const SmallGraph& graph, const WalkRule& rule, RowId from, RowId node) {
  std::vector<double> to(std::size_t(graph.csr().num_nodes()), 0);
  double sum = 0;
  for (Offset arc = graph.offsets[node]; arc < graph.offsets[node + 1]; ++arc) {
    const RowId x = graph.targets[std::size_t(arc)];
    const double bias = x == from ? rule.return_bias : graph.csr().has_arc(from, x) ? 1 : rule.out_bias;
    const double weight = rule.weighted && !graph.weights.empty() ? graph.weights[std::size_t(arc)] : 1;
    to[x] += bias * weight, sum += bias * weight;
  }
  for (double& p : to) p = sum > 0 ? p / sum : 0;
  return to;
}

constexpr double kManyPairsLimit = 5;  // sigmas; of thousands of pairs, see chi_square_sigmas

/// Counts every step by where it came from.
void expect_probabilities(const SmallGraph& graph, const WalkRule& rule, const std::vector<RowId>& walks, int length) {
  std::map<std::pair<RowId, RowId>, std::vector<double>> counts;
  for (std::size_t i = 2; i < walks.size(); ++i) {
    if (i % std::size_t(length) < 2 || walks[i - 1] == kNoRow) continue;
    auto& to = counts[{walks[i - 2], walks[i - 1]}];
    to.resize(std::size_t(graph.csr().num_nodes() + 1), 0);
    ++to[walks[i] == kNoRow ? to.size() - 1 : walks[i]];
  }
  ASSERT_GE(counts.size(), 8u);
  for (const auto& [pair, to] : counts) {
    std::vector<double> expected = probabilities(graph, rule, pair.first, pair.second);
    expected.push_back(std::count_if(expected.begin(), expected.end(), [](double p) { return p > 0; }) == 0);
    EXPECT_LT(chi_square_sigmas(to, expected), kManyPairsLimit)
        << "from " << pair.second << ", come from " << pair.first;
  }
}

/// A hub with loops and leaves of few arcs, some of them parallel, loops or of weight 0: their lists are looked up in
/// its own. Row 3, so that rows stand before it in its list.
SmallGraph hub_multigraph() {
  constexpr RowId kHub = 3, kNodes = 41;
  std::vector<Arc> edges = {{kHub, kHub, 2}, {kHub, kHub, 0.5f}, {kHub, 7, 3}, {kHub, 7, 1}, {7, 7, 1}, {9, 9, 0.5f}};
  for (RowId leaf = 0; leaf < kNodes; ++leaf)
    if (leaf != kHub) edges.push_back({kHub, leaf, 0.25f + float(leaf % 5)});
  for (RowId leaf = 4; leaf + 3 < kNodes; leaf += 3) {
    edges.push_back({leaf, leaf + 3, 1}), edges.push_back({leaf, leaf + 2, float(leaf % 2)});
    if (leaf % 4 == 0) edges.push_back({leaf, leaf + 3, 0.5f});
  }
  return undirected_graph(kNodes, edges, true);
}

constexpr double kParameters[] = {1e-6, 0.25, 1, 4, 1e6};

class SecondOrderWalks : public OnBackends {};

TEST_P(SecondOrderWalks, MatchTheirProbabilities) {
  TestDevice on(GetParam(), 2);
  const std::pair<const char*, SmallGraph> graphs[] = {
      {"directed", directed_multigraph(true)},
      {"undirected", undirected_multigraph(true)},
      {"star", star_with_edges(30, 15)},
  };
  for (const auto& [name, graph] : graphs)
    for (const bool weighted : {false, true})
      for (const double p : kParameters)
        for (const double q : kParameters) {
          if (weighted && graph.weights.empty()) continue;
          SCOPED_TRACE(cat(name, weighted ? ", weighted" : "", ", p ", p, ", q ", q));
          const WalkRule rule{weighted, float(1 / p), float(1 / q)};
          expect_probabilities(graph, rule, walks_of(on, graph, {7, 1, 0, 12000, 5}, rule), 5);
        }
}

TEST_P(SecondOrderWalks, MatchTheirProbabilitiesOnAHub) {
  TestDevice on(GetParam(), 2);
  const SmallGraph graph = hub_multigraph();
  for (const bool weighted : {false, true})
    for (const auto& [p, q] : {std::pair{0.25, 4.0}, {4, 0.25}, {1, 4}, {1e6, 4}, {0.25, 1e6}, {1e6, 1e6}}) {
      SCOPED_TRACE(cat("weighted ", weighted, ", p ", p, ", q ", q));
      const WalkRule rule{weighted, float(1 / p), float(1 / q)};
      expect_probabilities(graph, rule, walks_of(on, graph, {7, 1, 0, 300'000, 5}, rule), 5);
    }
}

TEST_P(SecondOrderWalks, AreTheSameForAnyThreadsBatchesAndBackend) {
  TestDevice one_thread(Backend::cpu), on(GetParam(), 3);
  for (const SmallGraph& graph : {random_graph(257, 3000, true, 4), hub_multigraph()})
    for (const auto& [p, q] : {std::pair{0.25, 4.0}, {1e6, 1e-6}, {1, 1e6}, {1e6, 4}}) {
      const WalkRule rule{true, float(1 / p), float(1 / q)};
      const std::vector<RowId> whole = walks_of(one_thread, graph, {9, 1, 0, 700, 9}, rule);

      std::vector<RowId> parts = walks_of(on, graph, {9, 1, 0, 131, 9}, rule);
      const std::vector<RowId> rest = walks_of(on, graph, {9, 1, 131, 569, 9}, rule);

      parts.insert(parts.end(), rest.begin(), rest.end());
      EXPECT_EQ(parts, whole) << "p " << p << ", q " << q << ", directed " << graph.directed;
    }
}

TEST_P(SecondOrderWalks, OfEqualBiasesAreThoseOfTheFirstOrder) {
  TestDevice on(GetParam());
  const SmallGraph graph = random_graph(257, 3000, true, 4);
  Config config;
  const std::vector<RowId> deepwalk = walks_of(on, graph, {9, 1, 0, 700, 9}, walk_rule(config));

  config.model.kind = "node2vec";
  EXPECT_EQ(walks_of(on, graph, {9, 1, 0, 700, 9}, walk_rule(config)), deepwalk);
  config.sampler.p = 4;
  EXPECT_NE(walks_of(on, graph, {9, 1, 0, 700, 9}, walk_rule(config)), deepwalk);
  config.model.kind = "deepwalk";  // which p and q are not options of
  EXPECT_EQ(walks_of(on, graph, {9, 1, 0, 700, 9}, walk_rule(config)), deepwalk);
}

/// Weights so far apart that a difference of sums would lose the small ones, which biases then raise.
TEST_P(SecondOrderWalks, KeepSmallWeightsBesideLargeOnes) {
  TestDevice on(GetParam());
  std::vector<Arc> arcs;
  for (RowId x = 0; x < 8; ++x)
    if (x != 1) arcs.push_back({1, x, x == 0 ? 1 : 1e-12f * float(x)}), arcs.push_back({x, 1, 1});
  const SmallGraph graph = graph_of(8, arcs, true);
  const WalkRule rule{true, 1e-6f, 1e6f};

  expect_probabilities(graph, rule, walks_of(on, graph, {7, 1, 0, 40000, 3}, rule), 3);
}

TEST_P(SecondOrderWalks, AreTheSameByBareWords) {  // degrees in the offsets, arcs not known to be distinct
  TestDevice on(GetParam());
  const WalkRule rule{true, 4, 0.25f};
  for (const bool weighted : {false, true}) {
    const SmallGraph graph = undirected_multigraph(weighted);
    const WalkTopology topology(graph.csr(), rule, on.exec);
    std::vector<kernels::PackedArcs> words;
    for (Offset row = 0; row < graph.csr().num_nodes(); ++row)
      words.push_back(kernels::kManyArcs << kernels::kDegreeShift | std::uint64_t(graph.offsets[std::size_t(row)]));
    Values<kernels::PackedArcs> arcs(on, words);
    kernels::WalkGraph view = topology.view();
    view.arcs = arcs.span();
    Values<RowId> nodes(on, 200 * 9, kNoRow);

    on.ops.make_walks(view, {9, 1, 0, 200, 9}, nodes.span(), on.exec);

    EXPECT_EQ(nodes.host(), walks_of(on, graph, {9, 1, 0, 200, 9}, rule));
  }
}

/// The step of every walker at `at`, come from `from`, by the parts that hold these: row r lies in part r % parts.
std::vector<RowId> moves_over_parts(TestDevice& on, const std::vector<WalkTopology>& parts,
                                    const kernels::WalkBatch& batch, const std::vector<kernels::Walker>& walkers) {
  const kernels::Ops& ops = on.ops;
  const auto count = RowId(parts.size());
  std::vector<RowId> next(walkers.size(), kNoRow);
  for (RowId part = 0; part < count; ++part) {
    std::vector<std::size_t> here, open;
    std::vector<kernels::Walker> list;
    for (std::size_t i = 0; i < walkers.size(); ++i) {
      if (walkers[i].local_row % count != part) continue;
      here.push_back(i), list.push_back(walkers[i]);
      list.back().local_row /= count;
    }
    Values<kernels::Walker> walkers_here(on, list);
    const Buffer<kernels::Move> moves(on.ledger, Offset(here.size()), "moves");
    Values<RowId> asked(on, Offset(here.size()) * kernels::kWalkTries, kNoRow);
    ops.propose_moves(parts[part].view(), batch, walkers_here.span(), moves.span(), asked.span(), on.exec);
    const std::vector<kernels::Move> proposed(moves.data(), moves.data() + moves.size());
    const std::vector<RowId> rows = asked.host();
    std::vector<kernels::Walker> open_walkers;
    std::vector<Offset> lists;
    std::vector<RowId> listed;
    for (std::size_t k = 0; k < here.size(); ++k) {
      const kernels::Walker& walker = list[k];
      next[here[k]] = proposed[k].next;
      bool is_open = proposed[k].is_open;
      if (walker.from == kNoRow) continue;
      std::vector<kernels::ArcQuestion> questions;
      for (std::size_t a = 0; a < proposed[k].asked; ++a)
        questions.push_back({walker.from / count, rows[k * kernels::kWalkTries + a]});
      const kernels::WalkGraph& from_graph = parts[walker.from % count].view();
      Values<kernels::ArcQuestion> asks(on, questions);
      Values<std::uint8_t> found(on, Offset(questions.size()), std::uint8_t(7));
      ops.find_arcs(from_graph, asks.span(), found.span(), on.exec);
      const std::vector<std::uint8_t> answers = found.host();
      for (std::size_t a = questions.size(); a-- > 0;)
        if ((answers[a] == 1) == from_graph.takes_near()) next[here[k]] = questions[a].target, is_open = false;
      if (!is_open) continue;
      open.push_back(here[k]), open_walkers.push_back(walker);
      const Offset first = from_graph.offsets[walker.from / count], last = from_graph.offsets[walker.from / count + 1];
      lists.push_back(Offset(listed.size())), lists.push_back(last - first);
      listed.insert(listed.end(), from_graph.targets.data + first, from_graph.targets.data + last);
    }
    Values<kernels::Walker> drawn_walkers(on, open_walkers);
    Values<Offset> drawn_lists(on, lists);
    Values<RowId> all_listed(on, listed), drawn(on, Offset(open.size()), kNoRow);
    ops.draw_moves(parts[part].view(), batch, drawn_walkers.span(), drawn_lists.span(), all_listed.span(), drawn.span(),
                   on.exec);
    const std::vector<RowId> exact = drawn.host();
    for (std::size_t k = 0; k < open.size(); ++k) next[open[k]] = exact[k];
  }
  return next;
}

TEST_P(SecondOrderWalks, OverPartsAreThoseOnTheWholeGraph) {
  if (GetParam() == Backend::cuda) GTEST_SKIP() << "reads the graph from the host; see PartitionedTopology's tests";
  TestDevice on(GetParam());
  const kernels::WalkBatch batch{5, 2, 0, 300, 9};
  for (const SmallGraph& graph : {directed_multigraph(true), hub_multigraph()})
    for (const auto& [p, q] : {std::pair{0.25, 4.0}, {1e6, 1e-6}, {1, 1e6}, {1e6, 4}}) {
      const WalkRule rule{true, float(1 / p), float(1 / q)};
      const std::vector<RowId> whole = walks_of(on, graph, batch, rule);
      std::vector<WalkTopology> parts;
      for (const RowId part : {0, 1}) {
        SmallGraph local = part_of(graph, part, 2);
        local.directed = graph.directed;
        parts.emplace_back(local.csr(), rule, on.exec);
      }
      std::vector<kernels::Walker> walkers;
      std::vector<RowId> wanted;
      for (std::size_t walk = 0; walk < 300; ++walk)
        for (std::uint32_t step = 1; step < 9; ++step) {
          const RowId* at = &whole[walk * 9 + step - 1];
          if (*at == kNoRow) break;
          const RowId from = step > 1 ? at[-1] : kNoRow;
          walkers.push_back(
              {Offset(walk), *at, step, from, from == kNoRow ? 0 : std::uint32_t(graph.csr().degree(from))});
          wanted.push_back(at[1]);
        }

      EXPECT_EQ(moves_over_parts(on, parts, batch, walkers), wanted)
          << "p " << p << ", q " << q << ", directed " << graph.directed;
    }
}

TEST_P(SecondOrderWalks, HoldWhatIsPredicted) {
  const SmallGraph graph = random_graph(50, 600, true, 8);
  for (const WalkRule& rule : {WalkRule{false}, {true}, {false, 4, 1}, {true, 1, 4}}) {
    TestDevice on(GetParam());
    const WalkTopology topology(graph.csr(), rule, on.exec);
    Offset held = 0;
    for (const auto& [purpose, bytes] : on.ledger.held()) held += bytes;
    EXPECT_EQ(held, WalkTopology::bytes(50, 600, rule));
  }
}

GS_ON_ALL_BACKENDS(SecondOrderWalks);

}  // namespace
}  // namespace gs
