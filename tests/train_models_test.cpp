// Every kind of model: that it learns, holds what was planned, and is the same on any number of ranks.
#include <cmath>

#include "tests/support/folder.hpp"
#include "tests/support/graphs.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

constexpr Offset kNodes = 60;

/// People in a circle: relation 0 leads to the next, 1 to the one opposite (both ways), 2 to either neighbour.
struct Circle {
  Circle() {
    std::vector<std::array<RowId, 3>> triples;  // head, tail, relation
    for (RowId i = 0; i < kNodes; ++i) {
      const auto at = [&](int away) { return RowId((Offset(i) + kNodes + away) % kNodes); };
      triples.push_back({i, at(1), 0}), triples.push_back({i, at(kNodes / 2), 1});
      triples.push_back({i, at(1), 2}), triples.push_back({i, at(-1), 2});
    }
    std::sort(triples.begin(), triples.end());
    graph.offsets.assign(kNodes + 1, 0);
    for (const auto& [head, tail, relation] : triples) {
      ++graph.offsets[head + 1];
      graph.targets.push_back(tail), relations.push_back(relation);
    }
    for (std::size_t i = 0; i < kNodes; ++i) graph.offsets[i + 1] += graph.offsets[i];
  }
  Csr csr() const {
    Csr csr = graph.csr();
    csr.relations = relations, csr.num_relations = 3;
    return csr;
  }
  SmallGraph graph;
  std::vector<RowId> relations;
};

Config config_of(const std::string& kind) {
  if (is_knowledge_graph_model(kind)) {
    Config config = default_config(kind);
    config.model.dim = 16, config.model.negatives = kind == "transe" || kind == "rotate" ? 1 : 16;
    config.sampler.triples_per_tile = 5, config.sampler.shared_negatives = 16;
    config.training.epochs = 40, config.training.step_walks = 8;
    return config;
  }
  Config config = small_config();
  config.model.kind = kind.substr(0, kind.find(' '));
  if (kind == "line first") config.model.order = "first";
  if (kind == "line second") config.model.order = "second";
  config.sampler.q = 0.5, config.training.learning_rate = 0.2, config.training.epochs = 20;
  return config;
}

class Models : public testing::TestWithParam<const char*> {
 protected:
  Config config_ = config_of(GetParam());
  Circle circle_;
};

TEST_P(Models, LearnInPlace) {
  Trainer trainer(circle_.csr(), config_, Device{}, 1);
  Training::Step first, last;
  while (!trainer.done()) {
    const Training::Step step = trainer.step();
    if (trainer.epoch() == 0) first.loss += step.loss, first.pairs += step.pairs;
    if (trainer.epoch() == config_.training.epochs - 1) last.loss += step.loss, last.pairs += step.pairs;
  }

  EXPECT_LT(last.loss_a_pair(), 0.95 * first.loss_a_pair());
  EXPECT_LT(first.loss_a_pair(), 1.1 * untrained_loss(config_));
  if (is_knowledge_graph_model(config_.model.kind)) {
    EXPECT_EQ(last.pairs, 2 * circle_.csr().num_arcs()) << "queries";
  }
}

TEST_P(Models, HoldWhatIsPlanned) {
  for (const bool filters : {false, true}) {
    config_.sampler.filter_negatives = filters;
    const Trainer trainer(circle_.csr(), config_, Device{}, 1);
    Offset planned = 0;
    for (const PlanEntry& entry : trainer.plan().entries) {
      EXPECT_EQ(trainer.ledger().held_bytes(entry.purpose), entry.bytes) << entry.purpose;
      planned += entry.bytes;
    }
    EXPECT_EQ(trainer.ledger().peak_bytes(), planned);
  }
}

std::vector<float> exchanged(int ranks, const Csr& graph, const Config& config) {
  std::vector<float> result;
  run_on_ranks(ranks, [&](Comm& comm) {
    RankTrainer trainer(graph, config, comm, Device{}, 1);
    while (!trainer.done()) trainer.step();
    const Offset rows = trainer.dense_rows() + graph.num_nodes();
    std::vector<float> values(std::size_t(comm.rank() == 0 ? rows * config.model.dim : 0));
    trainer.gather(0, {values.data(), rows, config.model.dim, config.model.dim});
    if (comm.rank() == 0) result = std::move(values);
  });
  return result;
}

TEST_P(Models, HaveTheSameBitsOnAnyNumberOfRanks) {
  config_.exchange.method = "rows";
  config_.training.deterministic = true, config_.training.epochs = 2, config_.training.staleness = 0;
  config_.model.reciprocal = config_.sampler.filter_negatives = is_knowledge_graph_model(config_.model.kind);
  const std::vector<float> one = exchanged(1, circle_.csr(), config_);

  for (const int ranks : {2, 3}) EXPECT_EQ(exchanged(ranks, circle_.csr(), config_), one) << ranks << " ranks";
  config_.store.placement = "partition";
  EXPECT_EQ(exchanged(3, circle_.csr(), config_), one) << "placed by METIS";
}

INSTANTIATE_TEST_SUITE_P(Kinds, Models,
                         testing::Values("node2vec", "line first", "line second", "transe", "distmult", "complex",
                                         "rotate"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(TriplesOnRanks, LearnAsInPlace) {
  const Circle circle;
  Config config = config_of("complex");
  const auto mean_margin = [&](const std::vector<float>& values) {  // of triples of relation 0 over the same, reversed
    const int half = config.model.dim / 2;
    const auto at = [&](Offset row, int c) { return double(values[std::size_t(row * config.model.dim + c)]); };
    const auto score = [&](Offset h, Offset r, Offset t) {
      double sum = 0;
      for (int c = 0; c < half; ++c) {
        const double re = at(h, c) * at(r, c) - at(h, half + c) * at(r, half + c);
        const double im = at(h, c) * at(r, half + c) + at(h, half + c) * at(r, c);
        sum += re * at(t, c) + im * at(t, half + c);
      }
      return sum;
    };
    double sum = 0;
    for (Offset i = 0; i < kNodes; ++i) {
      const Offset next = (i + 1) % kNodes;
      sum += score(3 + i, 0, 3 + next) - score(3 + next, 0, 3 + i);
    }
    return sum / double(kNodes);
  };

  const double in_place = mean_margin(trained(circle.csr(), config));
  config.exchange.method = "rows";
  EXPECT_GT(in_place, 1);
  for (const int ranks : {1, 3}) EXPECT_GT(mean_margin(exchanged(ranks, circle.csr(), config)), in_place / 2) << ranks;
}

TEST(TriplesOnRanks, AreRefusedWithoutRelations) {
  const SmallGraph graph = random_graph(20, 60, false, 1);
  EXPECT_SAYS(sentence_of(Fault::input, [&] { Trainer(graph.csr(), config_of("transe"), Device{}, 1); }),
              "the graph has no relations; ingest it with --triples");
}

}  // namespace
}  // namespace gs
