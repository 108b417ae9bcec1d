// The training loop: what it repeats, counts, holds, learns and refuses.
#include "graphscale/train.hpp"

#include <cmath>
#include <limits>

#include "graphscale/eval.hpp"

#include "tests/support/folder.hpp"
#include "tests/support/graphs.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

// ------------------------------------------------------------------------------------------------------ learning rate

TEST(LearningRate, OfAStepIsThatAtItsFirstWalk) {
  const BuiltGraph graph = generate(block_model(100, 500, 4, 0.9));
  Config config = small_config();
  config.training.step_walks = 60;
  Trainer trainer(graph.csr(), config, Device{}, 1);

  while (!trainer.done()) {
    const double share = double(trainer.walks_done()) / double(trainer.walks_total());
    EXPECT_DOUBLE_EQ(trainer.step().learning_rate, learning_rate_at(config.training, share));
  }
}

// -------------------------------------------------------------------------------------------------------- determinism

TEST(Deterministic, GivesTheSameBitsForAnyNumberOfThreads) {
  const BuiltGraph graph = generate(block_model(500, 3000, 4, 0.9));
  Config config = small_config();
  config.training.deterministic = true;

  const std::vector<float> one = trained(graph.csr(), config, 1);

  EXPECT_EQ(trained(graph.csr(), config, 2), one);
  EXPECT_EQ(trained(graph.csr(), config, 5), one);
}

TEST(Deterministic, RepeatsForASeedAndDiffersForAnother) {
  const BuiltGraph graph = generate(block_model(500, 3000, 4, 0.9));
  Config config = small_config(), other = config;
  config.training.deterministic = other.training.deterministic = true;
  other.training.seed = 2;

  const std::vector<float> values = trained(graph.csr(), config, 2);

  EXPECT_EQ(trained(graph.csr(), config, 2), values);
  EXPECT_NE(trained(graph.csr(), other, 2), values);
}

TEST(Deterministic, WeightedGraphsAreTrainedAlikeForAnyNumberOfThreads) {
  const SmallGraph graph = random_graph(300, 2000, true, 5);
  Config config = small_config();
  config.training.deterministic = true;

  EXPECT_EQ(trained(graph.csr(), config, 3), trained(graph.csr(), config, 1));
}

TEST(Deterministic, IsRefusedOnAGpu) {
  const BuiltGraph graph = generate(block_model(100, 500, 4, 0.9));
  Config config = small_config();
  config.training.deterministic = true;

  EXPECT_SAYS(sentence_of(Fault::usage,
                          [&] {
                            Trainer(graph.csr(), config, Device{Device::Kind::cuda, 0}, 1);
                          }),
              "training.deterministic needs device cpu");
}

// ------------------------------------------------------------------------------------------------------------ counts

TEST(Trainer, WalksFromEveryNodeInEveryEpoch) {
  const BuiltGraph graph = generate(block_model(101, 500, 4, 0.9));
  Config config = small_config();
  config.training.epochs = 3, config.training.step_walks = 64;
  Trainer trainer(graph.csr(), config, Device{}, 1);
  const Offset an_epoch = 101 * config.sampler.walks_per_node;
  std::map<int, Offset> walks;

  Offset steps = 0;
  for (; !trainer.done(); ++steps) {
    const Trainer::Step step = trainer.step();
    walks[trainer.epoch()] += step.walks;
  }

  EXPECT_EQ(walks, (std::map<int, Offset>{{0, an_epoch}, {1, an_epoch}, {2, an_epoch}}));
  EXPECT_EQ(trainer.walks_total(), 3 * an_epoch);
  EXPECT_EQ(trainer.walks_done(), 3 * an_epoch);
  EXPECT_EQ(trainer.steps_done(), steps);
  EXPECT_EQ(steps, 3 * ((an_epoch + 63) / 64)) << "steps end with their epoch";
}

TEST(Trainer, CountsAboutThePairsThatAreExpected) {
  const BuiltGraph graph = generate(block_model(1000, 8000, 4, 0.9));
  const Config config = small_config();
  Trainer trainer(graph.csr(), config, Device{}, 2);

  Offset pairs = 0;
  while (!trainer.done()) pairs += trainer.step().pairs;

  const double expected = double(trainer.walks_total()) * expected_pairs(tile_shape(config));
  EXPECT_NEAR(double(pairs) / expected, 1, 0.02) << "windows are drawn: a standard error is about 0.002";
}

TEST(Trainer, OfNoEpochsHoldsTheVectorsAsDrawn) {
  const BuiltGraph graph = generate(block_model(100, 500, 4, 0.9));
  Config config = small_config(5);
  config.training.epochs = 0, config.training.seed = 9;
  MemoryLedger ledger{Device{}};
  const Model untrained(ModelShape::skip_gram(100, 5), 9, Exec{Device{}, 1, nullptr, &ledger});

  const Trainer trainer(graph.csr(), config, Device{}, 2);

  EXPECT_TRUE(trainer.done());
  const std::vector<float> values = values_of(trainer);
  for (Offset i = 0; i < 500; ++i) ASSERT_EQ(values[std::size_t(i)], untrained.centres()(i / 5, int(i % 5)));
}

// -------------------------------------------------------------------------------------------------------------- loss

TEST(Loss, BeginsAtThatOfUntrainedVectors) {
  GeneratorOptions options;
  options.kind = "er", options.nodes = 20000, options.edges = 100000;
  const BuiltGraph graph = generate(options);
  Config config = small_config();
  config.model.negatives = 4;
  config.training.learning_rate = 1e-9, config.training.final_learning_rate = 0;
  Trainer trainer(graph.csr(), config, Device{}, 2);

  const Trainer::Step step = trainer.step();

  // Contexts start at 0, so every score is 0. A negative that is one of its centre's contexts has no loss: one of about
  // 7 nodes of 20000, drawn by degree.
  constexpr double kMasked = 0.002;
  EXPECT_NEAR(step.loss / double(step.pairs) / ((1 + 4) * std::log(2.0)), 1, kMasked);
}

TEST(Loss, Falls) {
  const BuiltGraph graph = generate(block_model(400, 8000, 8, 0.95));
  Config config = small_config();
  config.training.epochs = 5;
  Trainer trainer(graph.csr(), config, Device{}, 2);

  const Trainer::Step first = trainer.step(), last = train_all(trainer);

  EXPECT_LT(last.loss / double(last.pairs), 0.75 * first.loss / double(first.pairs));
}

// ---------------------------------------------------------------------------------------------------------- learning

double cosine(Rows<const float> rows, Offset a, Offset b) {
  double ab = 0, aa = 0, bb = 0;
  for (int c = 0; c < rows.dim; ++c) {
    const double x = rows(a, c), y = rows(b, c);
    ab += x * y, aa += x * x, bb += y * y;
  }
  return ab / std::sqrt(aa * bb);
}

/// A block model trained without locks on all but the last tenth of its edges.
class BlockModel : public testing::Test {
 protected:
  static constexpr Offset kNodes = 400, kEdges = 8000, kHeldOut = 800;
  static constexpr int kBlocks = 8;

  BlockModel() : graph_(generate(block_model(kNodes, kEdges - kHeldOut, kBlocks, 0.95))) {
    Config config = small_config(32);
    config.model.window = 5;
    config.sampler.walk_length = 20, config.sampler.walks_per_node = 10;
    config.training.epochs = 3;
    trainer_ = std::make_unique<Trainer>(graph_.csr(), config, Device{}, 2);
    train_all(*trainer_);
    rows_ = trainer_->table(copy_);
    for (Offset row = 0; row < kNodes; ++row) row_of_[std::size_t(graph_.name_numbers[std::size_t(row)])] = row;
  }

  Offset block_of(Offset row) const { return Offset(graph_.name_numbers[std::size_t(row)]) * kBlocks / kNodes; }

  BuiltGraph graph_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<float> copy_;
  Rows<const float> rows_;
  std::vector<Offset> row_of_ = std::vector<Offset>(std::size_t(kNodes));  // by name
};

TEST_F(BlockModel, NodesOfABlockAreNearerThanOthers) {
  double inside = 0, across = 0;
  Offset inside_count = 0, across_count = 0;

  for (Offset a = 0; a < kNodes; ++a)
    for (Offset b = 0; b < a; ++b) {
      const bool same = block_of(a) == block_of(b);
      (same ? inside : across) += cosine(rows_, a, b);
      ++(same ? inside_count : across_count);
    }

  constexpr double kMargin = 0.4;
  EXPECT_GT(inside / double(inside_count), across / double(across_count) + kMargin);
}

TEST_F(BlockModel, EdgesHeldOutScoreAboveNodesWithoutAnEdge) {
  std::vector<RowId> from(std::size_t{kHeldOut}), to(from.size());
  generate_edges(block_model(kNodes, kEdges, kBlocks, 0.95), kEdges - kHeldOut, from, to);
  std::vector<double> positive, negative;

  for (std::size_t i = 0; i < from.size(); ++i) positive.push_back(cosine(rows_, row_of_[from[i]], row_of_[to[i]]));
  for (Offset a = 0; a < kNodes; ++a)
    for (Offset b = 0; b < a; b += 7)
      if (!graph_.csr().has_arc(RowId(a), RowId(b))) negative.push_back(cosine(rows_, a, b));

  // Of the held-out edges .95 lie inside a block, of other pairs about 1/9: who knows the blocks and nothing more has
  // an area of about .92.
  EXPECT_GT(link_scores(positive, negative).auc, 0.85);
}

// ------------------------------------------------------------------------------------------------------------ memory

struct HeldCase {
  const char* name;
  int dim, walk_length;
  bool weighted_graph, follow_weights;
  Offset step_walks;
};

class Held : public testing::TestWithParam<HeldCase> {};

TEST_P(Held, IsWhatThePlanSaysToTheByte) {
  const HeldCase& test = GetParam();
  const SmallGraph graph = random_graph(257, 1500, test.weighted_graph, 3);
  Config config = small_config(test.dim);
  config.sampler.walk_length = test.walk_length, config.sampler.weighted = test.follow_weights;
  config.training.step_walks = int(test.step_walks);
  std::map<std::string, Offset> planned;
  const GraphSize size{257, 1500, test.weighted_graph};
  for (const PlanEntry& entry : plan_training(config, size, Device{}).entries)
    if (entry.bytes > 0) planned[entry.purpose] = entry.bytes;

  Trainer trainer(graph.csr(), config, Device{}, 3);
  train_all(trainer);

  EXPECT_EQ(trainer.ledger().held(), planned);
  EXPECT_EQ(trainer.ledger().peak_bytes(), trainer.plan().total_bytes());
}

INSTANTIATE_TEST_SUITE_P(Plans, Held,
                         testing::Values(HeldCase{"plain", 16, 10, false, true, 0},
                                         HeldCase{"weighted", 16, 10, true, true, 0},
                                         HeldCase{"weights_unused", 16, 10, true, false, 0},
                                         HeldCase{"odd_dim", 33, 10, true, true, 0},
                                         HeldCase{"one_column", 1, 2, false, true, 100000},
                                         HeldCase{"walks_cut_into_tiles", 100, 130, false, true, 7}),
                         [](const auto& test) { return test.param.name; });

// ---------------------------------------------------------------------------------------------------------- refusals

TEST(Trainer, RefusesAGraphWithoutArcs) {
  const SmallGraph graph = graph_of(5, {});

  EXPECT_SAYS(sentence_of(Fault::input, [&] { Trainer(graph.csr(), small_config(), Device{}, 1); }), "no edges");
}

TEST(Trainer, RefusesMoreWalksThanCanBeCounted) {
  const BuiltGraph graph = generate(block_model(100, 500, 4, 0.9));
  Config config = small_config();
  config.sampler.walks_per_node = config.training.epochs = std::numeric_limits<int>::max();

  EXPECT_SAYS(sentence_of(Fault::usage, [&] { Trainer(graph.csr(), config, Device{}, 1); }), "make 4.61169e+20 walks");
}

TEST(Trainer, StopsWithinAFewStepsWhereItDiverges) {
  const BuiltGraph graph = generate(block_model(100, 1000, 4, 0.9));
  Config config = small_config();
  config.training.learning_rate = 1e6, config.training.curvature_limit = 0;
  Trainer trainer(graph.csr(), config, Device{}, 2);

  const std::string what = sentence_of(Fault::internal, [&] { train_all(trainer); });

  for (const char* part : {"training diverged at step ", "(epoch 0, learning rate ", "the mean loss a pair is ",
                           "; lower training.learning_rate"})
    EXPECT_SAYS(what, part);
  EXPECT_LE(trainer.steps_done(), 3);
}

TEST(Trainer, NamesTheFirstBadValueWhereItDiverges) {
  const BuiltGraph graph = generate(block_model(100, 1000, 4, 0.9));
  Config config = small_config();
  config.training.learning_rate = 1e9, config.training.curvature_limit = 0;
  Trainer trainer(graph.csr(), config, Device{}, 1);

  const std::string what = sentence_of(Fault::internal, [&] { train_all(trainer); });

  EXPECT_SAYS(what, "first bad value: ");
  EXPECT_SAYS(what, " table");
}

}  // namespace
}  // namespace gs
