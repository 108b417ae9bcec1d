// train --resume as a user runs it: with the run's own settings, on the version of the graph that it began on.
#include "tests/support/launched.hpp"
#include "tests/support/program.hpp"

namespace gs {
namespace {

class ResumeCommand : public WithProgram {
 protected:
  ResumeCommand() { succeed("graph generate sbm --nodes 200 --edges 2000 --out s"); }

  std::string vectors(const std::string& run) const {
    return bytes_of(folder_ / run / "embeddings" / "embeddings.npy");
  }

  const std::string train_ = "train --graph s --device cpu --dim 8 --deterministic --every-steps 100 ";
};

TEST_F(ResumeCommand, TakesTheRunsOwnSettingsAndMoreEpochs) {
  succeed(train_ + "--out r --epochs 2 --window 3");
  const std::string log = succeed("train --graph s --out r --resume --epochs 3").err;

  EXPECT_SAYS(log, "dim 8, window 3");
  EXPECT_SAYS(log, "resume: from r/checkpoints/step-");
  EXPECT_SAYS(log, "resume: training.epochs was 2, is now 3");
  EXPECT_SAYS(bytes_of(folder_ / "r" / "config.json"), "\"epochs\": 3");
  EXPECT_SAYS(succeed("train --graph s --out r --resume").err, "the run is complete");
}

TEST_F(ResumeCommand, StaysWithTheVersionOfTheGraphThatItBeganOn) {
  succeed(train_ + "--out r --epochs 1");
  succeed("graph generate sbm --nodes 200 --edges 1000 --out s");
  EXPECT_SAYS(succeed("train --graph s --out r --resume --epochs 2").err, "graph: s v0001");
  EXPECT_SAYS(refusal(3, "train --graph s --graph-version v0002 --out r --resume --epochs 3"),
              "is of graph version v0001");
}

TEST_F(ResumeCommand, GoesOnAfterASignalWithTheBitsOfARunWithoutOne) {
  for (const std::string more : {"--epochs 40", "--epochs 10 --ranks 3 --method rows"}) {
    SCOPED_TRACE(more);
    const std::string options = cat("--log-steps 1 --overwrite ", more);
    succeed(train_ + options + " --out whole");
    Launched process(folder_, "run", cat("'", GS_BINARY, "' ", train_, options, " --out r"));
    const fs::path metrics = folder_ / "r" / "metrics.jsonl";
    ASSERT_TRUE(comes_true([&] { return says(bytes_of(metrics), "\"step\":13,"); }));
    process.send(SIGUSR1);
    ASSERT_EQ(process.wait(), 0) << process.err();
    EXPECT_SAYS(process.err(), "; --resume goes on");
    EXPECT_SAYS(bytes_of(metrics), "\"end\":\"stopped\"");
    EXPECT_NE(vectors("r"), vectors("whole"));

    succeed("train --graph s --out r --resume");
    EXPECT_EQ(vectors("r"), vectors("whole"));
    fs::remove_all(folder_ / "r");
  }
}

TEST_F(ResumeCommand, ContradictsOverwrite) {
  EXPECT_SAYS(refusal(2, train_ + "--out r --resume --overwrite"), "--overwrite");
}

}  // namespace
}  // namespace gs
