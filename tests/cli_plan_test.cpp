// `graphscale plan`: what it says, and how it ends.
#include <gtest/gtest.h>

#include "tests/support/program.hpp"

namespace gs {
namespace {

class PlanCommand : public WithProgram {
 protected:
  nlohmann::json role(const std::string& arguments) const { return json("plan " + arguments)["roles"][0]; }
};

const std::string kBillion =
    "plan --nodes 1000000000 --arcs 184000000000 --dim 128 --dtype fp16 --optimizer momentum --ranks 10 "
    "--host-memory 700GB";

TEST_F(PlanCommand, OfABillionNodesShowsRowsAndStateAndWhatTheGraphNeeds) {
  const Outcome outcome = run(kBillion);

  EXPECT_EQ(outcome.status, 4);
  EXPECT_SAYS(outcome.out, "rows 512 GB + momentum state 1,024 GB = 1,536 GB");
  EXPECT_SAYS(outcome.out, "graph: targets");
  EXPECT_SAYS(outcome.out, "fits with                 sampler.topology partitioned");
  EXPECT_SAYS(outcome.last_line(), "set sampler.topology partitioned");
}

TEST_F(PlanCommand, OfABillionNodesFitsOnceTheGraphIsPartitioned) {
  const Outcome outcome = succeed(kBillion + " --topology partitioned");

  EXPECT_SAYS(outcome.out, "fits                    yes");
}

TEST_F(PlanCommand, OfAGpuNeedsNoneWhereItsMemoryIsGiven) {
  const std::string gpu =
      "--nodes 100000000 --arcs 2000000000 --ranks 8 --device cuda --device-memory 80GiB "
      "--host-memory 1TB --ranks-per-machine 4 --dim 256 --step-walks 16384";

  const nlohmann::json part = role(gpu);

  EXPECT_GT(part["hot_rows"], 0);
  EXPECT_LE(part["device_bytes"], std::int64_t(80) << 30);
  EXPECT_TRUE(part["fits"]);
}

TEST_F(PlanCommand, OfRowsThatExceedAGpuPutsTheRestInHostMemory) {
  const nlohmann::json part = role(
      "--nodes 10000000 --arcs 20000000 --ranks 2 --device cuda --device-memory 4GiB "
      "--host-memory 100GB --step-walks 1024");

  EXPECT_GT(part["hot_rows"], 0);
  EXPECT_LT(part["hot_rows"], part["local_rows"]);
  EXPECT_EQ(part["host_bytes"], 2 * 512 * (part["local_rows"].get<Offset>() - part["hot_rows"].get<Offset>()));
}

TEST_F(PlanCommand, OfStepsTooLargeForAGpuNamesStepsThatFit) {
  const std::string gpu =
      "plan --nodes 10000000 --arcs 20000000 --ranks 2 --device cuda --device-memory 4GiB "
      "--host-memory 100GB";

  EXPECT_SAYS(run(gpu).last_line(), "lower training.step_walks (here 16384)");
  EXPECT_SAYS(run(gpu).out, "fits with                 training.step_walks 8192");
}

TEST_F(PlanCommand, OfAStoreSamplesItsFirstSteps) {
  succeed("graph generate rmat --nodes 256 --edges 2000 --out store");

  const nlohmann::json out = json("plan --graph store --ranks 3 --step-walks 16");

  EXPECT_EQ(out["traffic_from"], "sampled steps");
  EXPECT_GT(out["sent_bytes_per_step"]["rows"], 0.0);
  EXPECT_EQ(out["steps_per_epoch"], 256 * 10 / 16);
  EXPECT_EQ(json("plan --graph store")["ranks"], 1);
}

TEST_F(PlanCommand, SaysWhatItDoesNotCount) {
  const std::string walks = "plan --nodes 1000 --arcs 9000 --ranks 2 --kind node2vec --topology partitioned ";

  EXPECT_EQ(json(walks)["not_counted"].size(), 1u) << "the copy of a checkpoint";
  EXPECT_EQ(json(walks + "--q 2")["not_counted"].size(), 2u);
  EXPECT_SAYS(succeed(walks + "--q 2 --valid pairs.txt").out, "not counted               validations (eval.valid)");
}

TEST_F(PlanCommand, OfRolesIsOneTableARole) {
  const nlohmann::json roles =
      json("plan --nodes 1000 --arcs 9000 --ranks 4 --ranks.storage 0,1 --ranks.compute 1-3")["roles"];

  ASSERT_EQ(roles.size(), 3u);
  EXPECT_EQ(roles[0]["role"], "stores");
  EXPECT_EQ(roles[2]["ranks"], 2);
}

TEST_F(PlanCommand, AFasterLinkTakesLess) {
  const std::string slow = "plan --nodes 1000000 --arcs 9000000 --ranks 4 --link-gbps ";

  EXPECT_LT(json(slow + "100")["estimated_step_seconds"], json(slow + "0.1")["estimated_step_seconds"]);
  EXPECT_EQ(json(slow + "0.1")["bottleneck"], "push: link");
}

TEST_F(PlanCommand, RefusesWhatIsNoQuestion) {
  EXPECT_SAYS(refusal(2, "plan"), "--graph STORE, or --nodes N and --arcs M");
  EXPECT_SAYS(refusal(2, "plan --nodes 5 --arcs 8 --host-memory lots"), "\"lots\" is no size such as 80GiB or 700GB");
  EXPECT_SAYS(refusal(3, "plan --nodes 5"), "no edges");
}

}  // namespace
}  // namespace gs
