// Schedules, and what a configuration makes of a step's rule.
#include "graphscale/optimizer.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

TrainingConfig falling(const std::string& schedule) {
  TrainingConfig training;
  training.schedule = schedule;
  training.learning_rate = 0.4, training.final_learning_rate = 0.1;
  return training;
}

TEST(LearningRate, FallsEvenlyFromTheFirstToTheLast) {
  const TrainingConfig training = falling("linear");

  EXPECT_DOUBLE_EQ(learning_rate_at(training, 0), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate_at(training, 0.5), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_at(training, 1), 0.1);
}

TEST(LearningRate, FollowsHalfACosine) {
  const TrainingConfig training = falling("cosine");

  EXPECT_DOUBLE_EQ(learning_rate_at(training, 0), 0.4);
  EXPECT_NEAR(learning_rate_at(training, 1.0 / 3), 0.1 + 0.3 * 0.75, 1e-12);
  EXPECT_NEAR(learning_rate_at(training, 0.5), 0.25, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate_at(training, 1), 0.1);
}

TEST(LearningRate, StaysWhereConstant) {
  const TrainingConfig training = falling("constant");

  for (const double share : {0.0, 0.5, 1.0}) EXPECT_DOUBLE_EQ(learning_rate_at(training, share), 0.4);
}

TEST(LearningRate, RisesFromZeroWhileWarmingUpAndIsTheSchedulesAfterwards) {
  for (const char* schedule : {"linear", "cosine", "constant"}) {
    const TrainingConfig plain = falling(schedule);
    TrainingConfig warm = plain;
    warm.warm_up_share = 0.2;

    EXPECT_EQ(learning_rate_at(warm, 0), 0) << schedule;
    EXPECT_DOUBLE_EQ(learning_rate_at(warm, 0.05), learning_rate_at(plain, 0.05) / 4) << schedule;
    for (const double share : {0.2, 0.7, 1.0})
      EXPECT_DOUBLE_EQ(learning_rate_at(warm, share), learning_rate_at(plain, share)) << schedule;
  }
}

TEST(LearningRate, RisesOverAWholeRunWhereAllOfItWarmsUp) {
  TrainingConfig training = falling("constant");
  training.warm_up_share = 1;

  EXPECT_EQ(learning_rate_at(training, 0), 0);
  EXPECT_DOUBLE_EQ(learning_rate_at(training, 1), 0.4);
}

TEST(UpdateRule, IsTheConfigurations) {
  TrainingConfig training = falling("linear");
  training.optimizer = "adam";
  training.momentum = 0.8, training.second_moment = 0.99, training.epsilon = 1e-4;
  training.weight_decay = 0.5, training.clip_gradient = 3, training.max_row_step = 0.7, training.seed = 0x123456789;

  const kernels::UpdateRule rule = update_rule(training, 0.5, 17);

  EXPECT_EQ(rule.optimizer, kernels::Optimizer::adam);
  EXPECT_FLOAT_EQ(rule.learning_rate, 0.25f);
  EXPECT_FLOAT_EQ(rule.momentum, 0.8f);
  EXPECT_FLOAT_EQ(rule.second_moment, 0.99f);
  EXPECT_FLOAT_EQ(rule.epsilon, 1e-4f);
  EXPECT_FLOAT_EQ(rule.weight_decay, 0.5f);
  EXPECT_FLOAT_EQ(rule.clip_gradient, 3.0f);
  EXPECT_FLOAT_EQ(rule.max_row_step, 0.7f);
  EXPECT_EQ(rule.seed, 0x123456789u);
  EXPECT_EQ(rule.step, 17u);
}

TEST(UpdateRule, LimitsTheCurvatureOfWhatStepsByTheGradientItself) {
  TrainingConfig training;
  training.curvature_limit = 3;
  for (const auto& [name, limit] : {std::pair("sgd", 3.0f), {"momentum", 3.0f}, {"adagrad", 0.0f}, {"adam", 0.0f}}) {
    training.optimizer = name;
    EXPECT_EQ(update_rule(training, 0, 0).curvature_limit, limit) << name;
  }
}

TEST(OptimizerOf, KnowsEveryName) {
  using kernels::Optimizer;
  TrainingConfig training;
  for (const auto& [name, optimizer] : {std::pair("sgd", Optimizer::sgd),
                                        {"momentum", Optimizer::momentum},
                                        {"adagrad", Optimizer::adagrad},
                                        {"adam", Optimizer::adam}}) {
    training.optimizer = name;
    EXPECT_EQ(optimizer_of(training), optimizer) << name;
  }
}

TEST(NeedsExchange, WhereTheTileCannotTrainInPlace) {
  EXPECT_FALSE(needs_exchange(Config()));
  const auto needs = [](const auto& change) {
    Config config;
    change(config);
    return needs_exchange(config);
  };

  EXPECT_TRUE(needs([](Config& c) { c.run.ranks = 2; }));
  EXPECT_TRUE(needs([](Config& c) { c.exchange.method = "rows"; }));
  EXPECT_TRUE(needs([](Config& c) { c.exchange.method = "allreduce"; }));
  EXPECT_TRUE(needs([](Config& c) { c.training.optimizer = "adagrad"; }));
  EXPECT_TRUE(needs([](Config& c) { c.training.weight_decay = 0.1; }));
  EXPECT_TRUE(needs([](Config& c) { c.training.clip_gradient = 1; }));
  EXPECT_TRUE(needs([](Config& c) { c.model.dtype = "bf16"; }));
  EXPECT_TRUE(needs([](Config& c) { c.store.hot_rows = 0; }));
  EXPECT_TRUE(needs([](Config& c) { c.sampler.topology = "partitioned"; }));
  EXPECT_FALSE(needs([](Config& c) { c.run.ranks = 1, c.sampler.topology = "uva"; }));
}

}  // namespace
}  // namespace gs
