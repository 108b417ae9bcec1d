// What a step is expected to touch and to take, against sums over every row and plain arithmetic.
#include <gtest/gtest.h>

#include <cmath>

#include "graphscale/plan.hpp"

namespace gs {
namespace {

constexpr Offset kNodes = 3000, kArcs = 60'000;

Config small() {
  Config config;
  config.exchange.method = "rows";
  config.training.step_walks = 100;
  return config;
}

RankPlan plan_of(const Config& config, int ranks) {
  const GraphSize size{kNodes, kArcs, false};
  return plan_rank(config, size, expected_part(config, size, ranks, 0), Device{}, 0);
}

TEST(ExpectedCounts, AreSumsOfChancesOverEveryRow) {
  const Config config = small();
  const RankPlan plan = plan_of(config, 4);

  double nodes = 0, any = 0;  // expected distinct rows that are centres; of one rank's own that are needed at all
  const double walks = 25, n = kNodes;
  for (int row = 0; row < kNodes; ++row) {
    const auto share = [&](double power) {
      return std::pow((row + 1) / n, 1 - 2.0 / 3 * power) - std::pow(row / n, 1 - 2.0 / 3 * power);
    };
    const double no_node = (1 - walks / n) * std::exp(-walks * 39 * (1 - n / kArcs) * share(1));
    nodes += 1 - no_node;
    any += 1 - no_node * std::exp(-walks * 32 * 4 * share(0.75));
  }
  const StepCounts counts = expected_counts(config, {kNodes, kArcs, false}, plan);

  EXPECT_NEAR(counts.remote.centres, nodes * 3 / 4, nodes * 0.002);
  EXPECT_EQ(counts.remote.rows, counts.remote.centres);
  EXPECT_NEAR(counts.local.rows, any / 4, any * 0.002);
  EXPECT_EQ(counts.requested_rows, 25 * (2 * 40 + 32));
}

TEST(ExpectedCounts, OfOneTableAreTheSameRowsOnceAndNoCentres) {
  Config config = small();
  const GraphSize size{kNodes, kArcs, false};
  RankPlan plan = plan_of(config, 4);
  const StepCounts two = expected_counts(config, size, plan);
  plan.shape.one_table = true;

  const StepCounts one = expected_counts(config, size, plan);

  EXPECT_EQ(one.remote.rows, two.remote.rows);
  EXPECT_EQ(one.local.rows, two.local.rows);
  EXPECT_EQ(one.remote.centres + one.local.centres + one.head.centres, 0);
  EXPECT_EQ(one.requested_rows, 25 * (40 + 32));
  EXPECT_EQ(traffic_of(plan, config, one).row_bytes, one.remote.rows * 128 * 4);
}

TEST(ExpectedCounts, OfTriplesAreEntitiesByDegreeAndRelationsOfTheHead) {
  Config config = default_config("distmult");
  config.exchange.method = "rows";
  config.training.step_walks = 100;
  const GraphSize size{kNodes, kArcs, false, 20};
  const RankPart part = expected_part(config, size, 4, 0);
  const RankPlan plan = plan_rank(config, size, part, Device{}, 0);
  const kernels::TileShape& tile = plan.shape.tile;
  ASSERT_EQ(plan.shape.head_rows, 20);

  const StepCounts counts = expected_counts(config, size, plan);

  double others = 0;
  for (int row = 0; row < kNodes; ++row) {
    const double share = std::pow((row + 1) / double(kNodes), 1.0 / 3) - std::pow(row / double(kNodes), 1.0 / 3);
    others += (1 - std::exp(-25 * tile.walk_length * 2 / 3.0 * share)) * 3 / 4;
  }
  EXPECT_NEAR(counts.remote.rows, others, others * 0.002) << "negatives are local";
  EXPECT_NEAR(counts.head.rows, 20, 0.01) << "800 relations are drawn";
  EXPECT_EQ(counts.requested_rows, 25 * (tile.walk_length + tile.shared_negatives));
  const Offset head_bytes = 20 * (config.model.dim + 1) * 4;
  EXPECT_EQ(traffic_of(plan, config, counts).head_bytes, double(head_bytes) * 2 * 3 / 4);
}

TEST(ExpectedCounts, HaveFewerRowsWhereNegativesComeFromTheBatch) {
  Config config = small();
  const GraphSize size{kNodes, kArcs, false};
  const auto rows = [&] { return expected_counts(config, size, plan_of(config, 4)).local.rows; };
  const double by_degree = rows();
  config.sampler.uniform_share = 1;
  const double uniform = rows();
  config.sampler.in_batch_share = 1;

  const StepCounts counts = expected_counts(config, size, plan_of(config, 4));

  EXPECT_GT(uniform, by_degree * 1.1) << "fewer are met twice";
  EXPECT_EQ(counts.local.rows, counts.local.centres);
}

TEST(Traffic, IsRowsTimesTheirBytes) {
  Config config = small();
  config.exchange.compression = "fp16", config.exchange.row_type = "bf16";
  StepCounts counts;
  counts.walks = 1, counts.remote = {300, 200};

  const StepTraffic traffic = traffic_of(plan_of(config, 4), config, counts);

  EXPECT_EQ(traffic.id_bytes, 300 * 4);
  EXPECT_EQ(traffic.row_bytes, 500 * 128 * 2);
  EXPECT_EQ(traffic.gradient_bytes, 500 * (128 * 2 + 4));
  EXPECT_EQ(traffic.received_bytes, traffic.sent_bytes());
}

TEST(Traffic, OfOneRankIsNothing) {
  const Config config = small();
  const RankPlan plan = plan_of(config, 1);

  EXPECT_EQ(traffic_of(plan, config, expected_counts(config, {kNodes, kArcs, false}, plan)).sent_bytes(), 0);
}

TEST(Traffic, OfRolesGoesFromComputeToStorageAndBack) {
  Config config = small();
  config.ranks.storage = "0", config.ranks.compute = "1-3";
  StepCounts counts;
  counts.remote = {10, 10};
  const GraphSize size{kNodes, kArcs, false};
  const auto of = [&](int rank) {
    return traffic_of(plan_rank(config, size, expected_part(config, size, 4, rank), Device{}, 0), config, counts);
  };

  EXPECT_EQ(of(0).id_bytes, 0);
  EXPECT_EQ(of(0).row_bytes, 3 * 20 * 512) << "three ranks ask the one that stores";
  EXPECT_EQ(of(1).row_bytes, 0);
  EXPECT_EQ(of(1).gradient_bytes, 20 * 516);
}

TEST(StepTime, IsTheLargestBoundOfAStageAndStagesOverlapOnceStale) {
  Config config = small();
  const GraphSize size{kNodes, kArcs, false};
  MachineRates rates = cpu_rates(1);
  rates.link_bytes = 1e6;
  const auto of = [&](int staleness) {
    config.training.staleness = staleness;
    const RankPlan plan = plan_of(config, 4);
    const StepCounts counts = expected_counts(config, size, plan);
    return expected_time(config, size, plan, counts, traffic_of(plan, config, counts), rates);
  };

  const StepTime in_turn = of(0), overlapped = of(1);

  double sum_s = 0;
  for (const StageCost& stage : in_turn.stages) sum_s += stage.seconds();
  EXPECT_DOUBLE_EQ(in_turn.step_s, sum_s);
  EXPECT_DOUBLE_EQ(overlapped.step_s, overlapped.stages[1].seconds() + overlapped.stages[3].seconds());
  EXPECT_EQ(overlapped.bottleneck, "push: link");
  EXPECT_EQ(overlapped.steps_per_epoch, kNodes * 10 / 100);
}

TEST(RankPlan, OfTriplesHasOneTableAndItsRelationsOnEveryRank) {
  Config config = default_config("complex");
  config.model.reciprocal = true;
  config.exchange.method = "rows";
  config.training.optimizer = "sgd";
  const GraphSize size{kNodes, kArcs, false, 20};
  for (const char* placement : {"cyclic", "partition"}) {
    config.store.placement = placement;
    const RankPart part = expected_part(config, size, 4, 3);
    const RankPlan plan = plan_rank(config, size, part, Device{}, 0);
    const auto bytes = [&](const std::string& purpose) {
      Offset sum = 0;
      for (const PlanEntry& entry : plan.entries) sum += entry.purpose == purpose ? entry.bytes : 0;
      return sum;
    };

    EXPECT_EQ(bytes("rows: hot rows"), part.local_rows * 512);
    EXPECT_EQ(bytes("head rows: hot rows"), 2 * 20 * 512);
    EXPECT_EQ(bytes("centres: hot rows") + bytes("contexts: hot rows"), 0);
    EXPECT_FALSE(plan.by_start) << "triples have no start";
  }
}

TEST(RankPlan, TakesHotRowsFromWhatAllElseLeaves) {
  const Config config = small();
  const GraphSize size{kNodes, kArcs, false};
  const Device gpu{Device::Kind::cuda, 0};
  const RankPart part = expected_part(config, size, 2, 0);
  const Offset rest = plan_rank(config, size, part, gpu, 0).total_bytes(Tier::device);

  const RankPlan plan = plan_rank(config, size, part, gpu, rest + 1000 * 1024);

  EXPECT_EQ(plan.shape.hot_rows, 800) << "store.device_share is .8, a row of both tables 1024 bytes";
  EXPECT_EQ(plan.total_bytes(Tier::device), rest + 800 * 1024);
  EXPECT_EQ(plan.total_bytes(Tier::host), (1500 - 800) * 1024);
  EXPECT_NO_THROW(check_rank_fits(plan, rest + 1000 * 1024, 700 * 1024));
  EXPECT_THROW(check_rank_fits(plan, rest + 1000 * 1024, 700 * 1024 - 1), Error);
}

}  // namespace
}  // namespace gs
