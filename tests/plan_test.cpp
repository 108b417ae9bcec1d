// What a run will hold, and the refusal of one that does not fit. That the plan is what a run holds: train_test.
#include "graphscale/plan.hpp"

#include <gtest/gtest.h>

#include "tests/support/folder.hpp"

namespace gs {
namespace {

const Device kCpu{}, kGpu{Device::Kind::cuda, 0};

Offset bytes_for(const Plan& plan, const std::string& purpose) {
  for (const PlanEntry& entry : plan.entries)
    if (entry.purpose == purpose) return entry.bytes;
  ADD_FAILURE() << "no entry " << purpose;
  return -1;
}

TEST(Plan, CountsTablesWithTheirPadding) {
  Config config;
  config.model.dim = 17;

  const Plan plan = plan_training(config, {1000, 5000, false}, kCpu);

  EXPECT_EQ(bytes_for(plan, "model: centre table"), 1000 * 32 * 4);
  EXPECT_EQ(bytes_for(plan, "model: context table"), 1000 * 32 * 4);
}

TEST(Plan, CountsAliasSlotsOnlyWhereWeightsAreFollowed) {
  Config config;

  EXPECT_EQ(bytes_for(plan_training(config, {10, 500, true}, kCpu), "graph: arc alias slots"), 8 * 500);
  EXPECT_EQ(bytes_for(plan_training(config, {10, 500, false}, kCpu), "graph: arc alias slots"), 0);
  config.sampler.weighted = false;
  EXPECT_EQ(bytes_for(plan_training(config, {10, 500, true}, kCpu), "graph: arc alias slots"), 0);
}

TEST(Plan, ItsTotalIsTheSumOfItsEntries) {
  const Plan plan = plan_training({}, {12345, 67890, true}, kGpu);

  Offset sum = 0;
  for (const PlanEntry& entry : plan.entries) sum += entry.bytes;

  EXPECT_EQ(plan.total_bytes(), sum);
  EXPECT_GT(sum, 0);
}

TEST(Plan, TakesTheStepAskedForOnAnyDevice) {
  Config config;
  config.training.step_walks = 777;

  EXPECT_EQ(plan_training(config, {5, 8, false}, kCpu).step_walks, 777);
  EXPECT_EQ(plan_training(config, {5, 8, false}, kGpu).step_walks, 777);
}

TEST(Plan, ChoosesStepsThatGrowWithTheGraphWithinBounds) {
  const auto step = [](Offset nodes, Device device) {
    return plan_training({}, {nodes, nodes, false}, device).step_walks;
  };

  EXPECT_EQ(step(1, kCpu), 32);
  EXPECT_EQ(step(10'000, kCpu), 10'000 * 10 / 200);
  EXPECT_EQ(step(kMaxRows, kCpu), 1 << 13);
  EXPECT_EQ(step(1, kGpu), 256);
  EXPECT_EQ(step(kMaxRows, kGpu), 1 << 17);
}

TEST(Plan, OfTheLongestRunThatCanBeConfiguredIsExact) {
  Config config;
  config.sampler.walks_per_node = 1'000'000, config.training.epochs = 1'000'000;

  const Plan plan = plan_training(config, {kMaxRows, Offset(1) << 39, true}, kGpu);

  EXPECT_EQ(plan.step_walks, 1 << 17);
  EXPECT_EQ(bytes_for(plan, "graph: arc alias slots"), Offset(1) << 42);
  EXPECT_EQ(bytes_for(plan, "model: centre table"), kMaxRows * 128 * 4);
}

TEST(Plan, FitsToTheByte) {
  const Plan plan = plan_training({}, {100, 400, false}, kCpu);

  EXPECT_NO_THROW(check_fits(plan, plan.total_bytes()));
  EXPECT_SAYS(sentence_of(Fault::memory, [&] { check_fits(plan, plan.total_bytes() - 1); }), "this run needs");
}

TEST(Plan, ARefusalNamesEveryLargePurposeWhatThereIsAndTheOptionToLower) {
  const std::string what = sentence_of(Fault::memory, [] {
    check_fits(plan_training({}, {10'000'000, 100'000'000, true}, kCpu), Offset(1) << 30);
  });

  for (const char* part :
       {"this run needs 10.9 GiB on cpu", "model: centre table 4.8 GiB", "model: context table 4.8 GiB",
        "graph: targets 381.5 MiB", "graph: arc alias slots 762.9 MiB", "1.0 GiB are free", "lower model.dim"})
    EXPECT_SAYS(what, part);
  EXPECT_FALSE(says(what, "step: totals")) << "less than a hundredth of the whole: " << what;
  EXPECT_FALSE(says(what, "\n"));
}

TEST(Plan, ARefusalNamesTheOptionThatSavesMost) {
  Config config;
  config.model.dim = 1, config.training.step_walks = 1 << 24;

  const std::string what = sentence_of(Fault::memory, [&] {
    check_fits(plan_training(config, {100, 400, false}, kGpu), 1 << 20);
  });

  EXPECT_SAYS(what, "on cuda:0");
  EXPECT_SAYS(what, "lower training.step_walks");
}

}  // namespace
}  // namespace gs
