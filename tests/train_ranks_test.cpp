// Exchanged training: the same bits on any number of ranks, what it learns, how stale it is, how it ends.
#include <algorithm>
#include <cmath>

#include "tests/support/graphs.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

struct Trained {
  std::vector<float> values;  ///< [n, dim]
  double first_loss = 0, last_loss = 0;
  Offset walks = 0, pairs = 0;
  std::vector<StageTime> stages;
};

/// Trains on `ranks` threads of one CPU thread each.
Trained train_on(int ranks, const Csr& graph, const Config& config) {
  Trained result;
  run_on_ranks(ranks, [&](Comm& comm) {
    RankTrainer trainer(graph, config, comm, Device{}, 1);
    Training::Step sum;
    while (!trainer.done()) {
      const Training::Step step = trainer.step();
      if (comm.rank() != 0) continue;
      sum.walks += step.walks, sum.pairs += step.pairs, sum.loss += step.loss;
      if (step.pairs == 0) continue;
      if (result.first_loss == 0) result.first_loss = step.loss / double(step.pairs);
      result.last_loss = step.loss / double(step.pairs);
    }
    const Offset n = graph.num_nodes();
    std::vector<float> values(std::size_t(comm.rank() == 0 ? n * config.model.dim : 0));
    trainer.gather(0, {values.data(), n, config.model.dim, config.model.dim});
    if (comm.rank() != 0) return;
    result.values = std::move(values), result.walks = sum.walks, result.pairs = sum.pairs;
    result.stages = trainer.stages();
  });
  return result;
}

Config exchanged_config() {
  Config config = small_config();
  config.exchange.method = "rows";
  config.training.step_walks = 48;
  return config;
}

// ----------------------------------------------------------------------------------------------------------
// determinism

class Deterministic : public testing::TestWithParam<const char*> {
 protected:
  static Config config() {
    Config config = exchanged_config();
    config.training.deterministic = true, config.training.staleness = 0;
    const std::string what = GetParam();
    if (what == "partition") config.store.placement = "partition";
    if (what == "partitioned topology") config.sampler.topology = "partitioned";
    if (what == "staleness 3") config.training.staleness = 3;
    if (what == "cold rows") config.store.hot_rows = 7;
    if (what == "adam" || what == "momentum" || what == "adagrad") config.training.optimizer = what;
    if (what == "bf16" || what == "fp16") config.model.dtype = what;
    return config;
  }
};

TEST_P(Deterministic, RunsHaveTheSameBitsOnAnyNumberOfRanks) {
  const BuiltGraph graph = generate(block_model(150, 900, 3, 0.9));
  const std::vector<float> one = train_on(1, graph.csr(), config()).values;

  for (const int ranks : {2, 3, 8}) EXPECT_EQ(train_on(ranks, graph.csr(), config()).values, one) << ranks << " ranks";
}

INSTANTIATE_TEST_SUITE_P(Ranks, Deterministic,
                         testing::Values("cyclic", "partition", "partitioned topology", "staleness 3", "cold rows",
                                         "momentum", "adagrad", "adam", "bf16", "fp16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(DeterministicRoles, ChangeNoBit) {
  const BuiltGraph graph = generate(block_model(150, 900, 3, 0.9));
  Config config = exchanged_config();
  config.training.deterministic = true;
  const std::vector<float> one = train_on(1, graph.csr(), config).values;

  config.ranks.storage = "0,3", config.ranks.compute = "1-2";
  EXPECT_EQ(train_on(4, graph.csr(), config).values, one);
}

// -------------------------------------------------------------------------------------------------------------
// learning

TEST(RankTrainer, TrainsEveryWalkOnce) {
  const BuiltGraph graph = generate(block_model(150, 900, 3, 0.9));
  Config config = exchanged_config();
  config.training.epochs = 2;

  for (const int ranks : {1, 3, 8}) {
    const Trained result = train_on(ranks, graph.csr(), config);
    EXPECT_EQ(result.walks, 2 * 150 * 4);
    Trainer in_place(
        graph.csr(),
        [&] {
          Config c = config;
          c.exchange.method = "auto";
          return c;
        }(),
        Device{}, 1);
    Offset pairs = 0;
    while (!in_place.done()) pairs += in_place.step().pairs;
    EXPECT_EQ(result.pairs, pairs) << ranks << " ranks";  // the same walks and windows
  }
}

/// Share of nodes whose nearest other node is of their own block.
double nearest_in_block(const std::vector<float>& values, Offset n, int dim, int blocks) {
  Offset hits = 0;
  for (Offset i = 0; i < n; ++i) {
    double best = -INFINITY;
    Offset nearest = -1;
    for (Offset j = 0; j < n; ++j) {
      if (j == i) continue;
      double dot = 0, norm = 1e-30;
      for (int c = 0; c < dim; ++c) {
        const double v = values[std::size_t(j * dim + c)];
        dot += v * values[std::size_t(i * dim + c)], norm += v * v;
      }
      if (dot / std::sqrt(norm) > best) best = dot / std::sqrt(norm), nearest = j;
    }
    hits += i * blocks / n == nearest * blocks / n;
  }
  return double(hits) / double(n);
}

struct Variant {
  const char* name;
  std::function<void(Config&)> change;
};

class Learning : public testing::TestWithParam<Variant> {};

TEST_P(Learning, FindsTheBlocksOfAGraphOnThreeRanks) {
  const BuiltGraph graph = generate(block_model(240, 2400, 3, 0.95));
  // Rows are numbered by degree: the block of a row is that of its name.
  std::vector<Offset> node_of_row;
  for (Offset row = 0; row < 240; ++row) node_of_row.push_back(Offset(graph.name_numbers[std::size_t(row)]));
  Config config = exchanged_config();
  config.training.epochs = 10, config.training.step_walks = 64;
  GetParam().change(config);

  const Trained result = train_on(3, graph.csr(), config);

  std::vector<float> by_node(result.values.size());
  for (Offset row = 0; row < 240; ++row)
    std::copy_n(result.values.begin() + row * 16, 16, by_node.begin() + node_of_row[std::size_t(row)] * 16);
  EXPECT_LT(result.last_loss, result.first_loss);
  EXPECT_GT(nearest_in_block(by_node, 240, 16, 3), 0.9) << "by chance .33";
}

INSTANTIATE_TEST_SUITE_P(
    Variants, Learning,
    testing::Values(
        Variant{"Synchronous", [](Config& c) { c.training.staleness = 0; }},
        Variant{"Stale", [](Config& c) { c.training.staleness = 8; }},
        Variant{"Partition", [](Config& c) { c.store.placement = "partition"; }},
        Variant{"PartitionedTopology", [](Config& c) { c.sampler.topology = "partitioned"; }},
        Variant{"Uva", [](Config& c) { c.sampler.topology = "uva"; }},
        Variant{"GlobalNegatives", [](Config& c) { c.sampler.negatives_from = "global"; }},
        Variant{"Head", [](Config& c) { c.store.replicated_rows = 20, c.store.replicate_every = 2; }},
        Variant{"Allreduce", [](Config& c) { c.exchange.method = "allreduce"; }},
        Variant{"Fp16", [](Config& c) { c.exchange.compression = "fp16", c.exchange.row_type = "fp16"; }},
        Variant{"Int8", [](Config& c) { c.exchange.compression = "int8", c.exchange.row_type = "bf16"; }},
        Variant{"TopK", [](Config& c) { c.exchange.compression = "topk"; }},
        Variant{"OneBit", [](Config& c) { c.exchange.compression = "onebit"; }},
        Variant{"HalfRows", [](Config& c) { c.model.dtype = "fp16"; }},
        Variant{"Bfloat", [](Config& c) { c.model.dtype = "bf16"; }},
        Variant{"Momentum", [](Config& c) { c.training.optimizer = "momentum", c.training.learning_rate = .01; }},
        Variant{"Adagrad", [](Config& c) { c.training.optimizer = "adagrad", c.training.learning_rate = .3; }},
        Variant{"Adam", [](Config& c) { c.training.optimizer = "adam", c.training.learning_rate = .01; }},
        Variant{"Roles", [](Config& c) { c.ranks.storage = "0", c.ranks.compute = "1,2"; }}),
    [](const auto& info) { return std::string(info.param.name); });

// ------------------------------------------------------------------------------------------------------------- the
// ends

TEST(RankTrainer, OfNoEpochsHoldsTheVectorsOfOneRank) {
  const BuiltGraph graph = generate(block_model(50, 200, 2, 0.9));
  Config config = small_config();
  config.training.epochs = 0;
  const std::vector<float> in_place = trained(graph.csr(), config);
  config.exchange.method = "rows";

  for (const int ranks : {1, 3}) EXPECT_EQ(train_on(ranks, graph.csr(), config).values, in_place);
}

TEST(RankTrainer, TrainsMoreRanksThanRows) {
  const SmallGraph triangle = graph_of(3, {{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}});

  for (const char* placement : {"cyclic", "partition"}) {
    Config config = exchanged_config();
    config.store.placement = placement;
    EXPECT_EQ(train_on(8, triangle.csr(), config).values.size(), std::size_t(3 * config.model.dim));
  }
}

TEST(RankTrainer, NamesTheRankThatDiverges) {
  const BuiltGraph graph = generate(block_model(150, 900, 3, 0.9));
  Config config = exchanged_config();
  config.training.learning_rate = 1e30, config.training.schedule = "constant";
  config.training.max_row_step = config.training.curvature_limit = 0;

  try {
    train_on(3, graph.csr(), config);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::internal);
    EXPECT_NE(std::string(error.what()).find("training diverged at step"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("rank "), 0u) << error.what();
  }
}

TEST(RankTrainer, EndsTheOthersWhereOneRankThrowsBetweenSteps) {
  const BuiltGraph graph = generate(block_model(150, 900, 3, 0.9));
  const Config config = exchanged_config();
  std::atomic<int> ended{0};

  const auto run = [&] {
    run_on_ranks(3, [&](Comm& comm) {
      try {
        RankTrainer trainer(graph.csr(), config, comm, Device{}, 1);
        while (!trainer.done()) {
          trainer.step();
          if (comm.rank() == 1 && trainer.steps_done() == 2) throw Error(Fault::output, "the disk is full");
        }
      } catch (const Error&) {
        ++ended;
        throw;
      }
    });
  };

  EXPECT_THROW(
      {
        try {
          run();
        } catch (const Error& error) {
          EXPECT_STREQ(error.what(), "rank 1: the disk is full");
          throw;
        }
      },
      Error);
  EXPECT_EQ(ended, 3);
}

TEST(RankTrainer, TellsHowLongItsStagesWorkedAndWaited) {
  const BuiltGraph graph = generate(block_model(150, 900, 3, 0.9));

  const Trained result = train_on(2, graph.csr(), exchanged_config());

  ASSERT_EQ(result.stages.size(), 4u);
  for (const StageTime& stage : result.stages) EXPECT_GT(stage.busy_s, 0) << stage.name;
}

// ------------------------------------------------------------------------------------------------------------
// staleness

/// Context rows start at 0, so centres move in no step that misses every update.
TEST(Staleness, IsHowManyStepsOfUpdatesAFetchMisses) {
  const BuiltGraph graph = generate(block_model(150, 900, 3, 0.9));
  for (const int ranks : {1, 3})
    for (const int staleness : {0, 1, 4}) {
      Config config = exchanged_config();
      config.training.staleness = staleness;
      const auto after_steps = [&](int steps) {
        config.training.step_walks = (150 * 4 + steps - 1) / steps;
        return train_on(ranks, graph.csr(), config).values;
      };
      config.training.epochs = 0;
      const std::vector<float> first = after_steps(1);
      config.training.epochs = 1;

      EXPECT_EQ(after_steps(staleness + 1), first) << "staleness " << staleness;
      EXPECT_NE(after_steps(staleness + 2), first) << "staleness " << staleness;
    }
}

}  // namespace
}  // namespace gs
