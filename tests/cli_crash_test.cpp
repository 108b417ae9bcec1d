// kill -9 at random moments, and disks that fill up: nothing is lost, nothing is left half-written.
#include <sys/mount.h>

#include "tests/support/moments.hpp"
#include "tests/support/ranks.hpp"

namespace gs {
namespace {

// ------------------------------------------------------------------------------------------------------ graph stores

class KilledStore : public WithMoments {
 protected:
  KilledStore() {
    for (const auto& [name, seed] : {std::pair("one", 1), {"two", 2}}) {
      succeed(cat("graph generate er --nodes 20000 --edges 150000 --seed ", seed, " --text ", name, ".txt"));
      succeed(cat("graph ingest ", name, ".txt --out ", name));
    }
    one_ = hash("one"), two_ = hash("two");
  }

  /// Of the content; of a store that opens, every array whole.
  std::string hash(const std::string& store) const { return Graph::open(path(store)).info().content_hash; }

  Command ingest(const std::string& text) const { return {program(cat("graph ingest ", text, " --out s"))}; }

  void expect_whole_versions() const {
    for (const VersionInfo& version : versions(path("s"))) EXPECT_EQ(version.damage, "") << version.id;
  }

  std::string one_, two_;
};

TEST_F(KilledStore, AnIngestLeavesTheWholeGraphOrNone) {
  const double whole_s = time(ingest("one.txt"));

  kill_often(
      ingest("one.txt"), whole_s, [&] { fs::remove_all(folder_ / "s"); },
      [&] {
        if (fs::exists(folder_ / "s/CURRENT")) {
          EXPECT_EQ(hash("s"), one_);
        }
        EXPECT_EQ(run("graph info s").status, fs::exists(folder_ / "s/CURRENT") ? 0 : 3);

        time(ingest("one.txt"));

        EXPECT_EQ(hash("s"), one_);
        expect_whole_versions();
        EXPECT_EQ(leftovers(), std::vector<std::string>{});
      });
}

TEST_F(KilledStore, ANewVersionIsCurrentOrTheOldOneIs) {
  time(ingest("one.txt"));
  const double whole_s = time(ingest("two.txt"));

  kill_often(
      ingest("two.txt"), whole_s, [&] { rollback(path("s"), "v0001"); },
      [&] {
        EXPECT_PRED1([&](const std::string& now) { return now == one_ || now == two_; }, hash("s"));
        expect_whole_versions();

        time(ingest("two.txt"));

        EXPECT_EQ(hash("s"), two_);
        EXPECT_EQ(leftovers(), std::vector<std::string>{});
      });
}

TEST_F(KilledStore, ARollbackIsDoneOrNot) {
  time(ingest("one.txt"));
  time(ingest("two.txt"));
  const Command back = {program("graph rollback s v0001")};
  const double whole_s = time(back);

  kill_often(
      back, whole_s, [&] { rollback(path("s"), "v0002"); },
      [&] {
        EXPECT_PRED1([&](const std::string& now) { return now == one_ || now == two_; }, hash("s"));

        time(back);

        EXPECT_EQ(hash("s"), one_);
        EXPECT_EQ(leftovers(), std::vector<std::string>{});
      });
}

// ------------------------------------------------------------------------------------------------------------ export

class KilledExport : public WithMoments, public testing::WithParamInterface<const char*> {};

TEST_P(KilledExport, LeavesNothingOrTheWhole) {
  succeed("graph generate er --nodes 20000 --edges 40000 --out s");
  succeed("train --graph s --out r --device cpu --dim 32 --epochs 0 --checkpoint.keep 0");
  const Command command = {program(cat("export r --out e --format ", GetParam()))};
  const double whole_s = time(command);
  const auto exported = [&] {
    return fs::is_directory(path("e")) ? bytes_of(folder_ / "e/embeddings.npy") + bytes_of(folder_ / "e/names.txt")
                                       : bytes_of(folder_ / "e");
  };
  const std::string whole = exported();

  kill_often(
      command, whole_s, [&] { fs::remove_all(folder_ / "e"); },
      [&] {
        if (fs::exists(folder_ / "e")) {
          EXPECT_TRUE(exported() == whole);
        }
        fs::remove_all(folder_ / "e");

        time(command);

        EXPECT_TRUE(exported() == whole);
        EXPECT_EQ(leftovers(), std::vector<std::string>{});
      });
}

INSTANTIATE_TEST_SUITE_P(Formats, KilledExport, testing::Values("word2vec", "npy"),
                         [](const auto& info) { return std::string(info.param); });

// ---------------------------------------------------------------------------------------------------------- training

class KilledRun : public WithMoments {
 protected:
  KilledRun() { succeed("graph generate sbm --nodes 200 --edges 2000 --out s"); }

  std::string train(const std::string& run, const std::string& options) const {
    return cat("train --graph s --device cpu --threads 1 --dim 16 --deterministic --step-walks 200 --epochs 2 ",
               "--checkpoint.every_steps 3 --out ", run, " ", options);
  }

  std::string vectors_of(const std::string& run) const {
    return bytes_of(folder_ / run / "embeddings/embeddings.npy") + bytes_of(folder_ / run / "embeddings/names.txt");
  }

  /// Kills the run, and the one that goes on with it, and so on; every second time it may then come to its end, which
  /// must be that of the run `whole`.
  void kill_and_resume(const Command& command) {
    fs::rename(folder_ / "r", folder_ / "first");
    const double whole_s = time(command);
    const std::string whole = vectors_of("r");
    EXPECT_TRUE(whole == vectors_of("first"));
    bool goes_on = false;
    kill_often(
        command, whole_s,
        [&] {
          if (!goes_on) fs::remove_all(folder_ / "r");
        },
        [&] {
          for (const fs::path& checkpoint : list_checkpoints(folder_ / "r"))
            EXPECT_NO_THROW(Checkpoint(checkpoint).verify()) << checkpoint;
          if (fs::exists(folder_ / "r/embeddings")) {
            EXPECT_NO_THROW(Embeddings::open(folder_ / "r/embeddings"));
          }
          goes_on = !goes_on;
          if (goes_on) return;

          time(command);

          EXPECT_TRUE(vectors_of("r") == whole);
          const auto newest = newest_sound(folder_ / "r");
          ASSERT_TRUE(newest);
          EXPECT_TRUE(newest->state().complete);
          EXPECT_EQ(leftovers(), std::vector<std::string>{});
        });
  }
};

TEST_F(KilledRun, InPlaceEndsAsIfItHadNotBeen) {
  time({program(train("r", "--resume"))});
  kill_and_resume({program(train("r", "--resume"))});
}

TEST_F(KilledRun, WithValidationsEndsWithTheBestVectors) {
  std::string pairs;
  for (int i = 0; i < 40; ++i) pairs += cat(i, "\t", i + 1, "\n");
  make("valid.tsv", pairs);
  const std::string options = "--resume --eval.valid valid.tsv --eval.every 0.2";
  time({program(train("r", options))});
  kill_and_resume({program(train("r", options))});
}

TEST_F(KilledRun, OnRanksAsThreadsEndsAsIfItHadNotBeen) {
  const std::string options = "--resume --run.ranks 3 --staleness 0 --method rows";
  time({program(train("r", options))});
  kill_and_resume({program(train("r", options))});
}

TEST_F(KilledRun, OnRanksAsProcessesEndsAsIfItHadNotBeen) {
  Command command;
  const int port = free_port();
  for (int rank = 0; rank < 3; ++rank)
    command.push_back(cat("env RANK=", rank, " WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=", port, " ",
                          program(train("r", "--resume --staleness 0 --method rows --timeout-s 8"))));
  time(command);
  kill_and_resume(command);
}

// --------------------------------------------------------------------------------------------------------- full disks

class FullForCheckpoints : public WithProgram, public testing::WithParamInterface<const char*> {
 protected:
  FullForCheckpoints() { succeed("graph generate sbm --nodes 200 --edges 2000 --out s"); }

  std::string train(const std::string& options) const {
    return cat("train --graph s --device cpu --threads 1 --dim 64 --optimizer adam --deterministic --step-walks 100 ",
               "--checkpoint.every_steps 5 ", options);
  }
  static void expect_sound(const std::vector<fs::path>& checkpoints) {
    for (const fs::path& checkpoint : checkpoints) EXPECT_NO_THROW(Checkpoint(checkpoint).verify()) << checkpoint;
  }
};

TEST_P(FullForCheckpoints, TrainingGoesOnAndSavesItsVectors) {
  const std::string options = GetParam();
  succeed(train(cat("--out r --epochs 1 ", options)));
  const std::vector<fs::path> before = list_checkpoints(folder_ / "r");
  fs::copy(folder_ / "r", folder_ / "whole", fs::copy_options::recursive);
  succeed(train(cat("--out whole --epochs 2 --resume ", options)));

  // 75 KiB a file: enough for 200 rows of 64 columns, and not for twice as many of the optimizer's.
  const std::string what = refusal(7, train(cat("--out r --epochs 2 --resume ", options)), "ulimit -f 150 &&");

  EXPECT_SAYS(what, "the embeddings are saved, but the run cannot be resumed where it ended: ");
  EXPECT_SAYS(what, "r/checkpoints/");
  EXPECT_SAYS(what, "_state.npy: writing failed: File too large");
  EXPECT_GT(count_of(bytes_of(folder_ / ".err"), "warning: a checkpoint could not be written"), 2);
  EXPECT_EQ(bytes_of(folder_ / "r/embeddings/embeddings.npy"), bytes_of(folder_ / "whole/embeddings/embeddings.npy"));
  EXPECT_EQ(list_checkpoints(folder_ / "r"), before);
  expect_sound(before);
  succeed(train(cat("--out r --epochs 2 --resume ", options)));
  EXPECT_TRUE(newest_sound(folder_ / "r")->state().complete);
}

INSTANTIATE_TEST_SUITE_P(Ranks, FullForCheckpoints,
                         testing::Values("--run.ranks 1",
                                         "--run.ranks 3 --ranks.storage 0 --method rows --staleness 0"),
                         [](const auto& info) { return says(info.param, "3") ? "Three" : "InPlace"; });

/// A small file system of its own, filled to the last byte on demand.
class SmallDisk : public FullForCheckpoints {
 protected:
  void SetUp() override {
    fs::create_directory(disk_);
    if (::mount("none", disk_.c_str(), "tmpfs", 0, "size=4m") != 0)
      GTEST_SKIP() << "a small file system cannot be mounted: " << std::strerror(errno);
    run_.emplace(folder_, "train", cat("'", GS_BINARY, "' ", train("--epochs 1000000 --out disk/r")));
    ASSERT_TRUE(comes_true([this] { return !list_checkpoints(disk_ / "r").empty(); })) << run_->err();
    ASSERT_TRUE(comes_true([this] { return fill(), says(run_->err(), "a checkpoint could not be written"); }));
    while_full_ = run_->err();
  }
  void TearDown() override {
    run_.reset();
    ::umount(disk_.c_str());
  }

  void fill() const {
    std::ofstream ballast(disk_ / "ballast", std::ios::app);
    for (const std::string page(4096, 'x'); ballast << page << std::flush;) {
    }
  }

  const fs::path disk_ = folder_ / "disk";
  std::optional<Launched> run_;
  std::string while_full_;
};

TEST_F(SmallDisk, ThatWasFullForAWhileCostsNoMoreThanThoseCheckpoints) {
  EXPECT_SAYS(while_full_, "and those before it stay: disk/r/checkpoints/");
  EXPECT_SAYS(while_full_, "No space left on device");
  const std::vector<fs::path> before = list_checkpoints(disk_ / "r");
  expect_sound({before.begin(), before.begin() + 1});  // older ones may be removed meanwhile

  fs::remove(disk_ / "ballast");

  EXPECT_TRUE(comes_true([&] { return list_checkpoints(disk_ / "r").at(0) > before.at(0); })) << run_->err();
  run_->send(SIGTERM);
  const std::optional<int> status = run_->wait();
  EXPECT_TRUE(status == 0 || (status == 7 && says(run_->err(), "metrics.jsonl: lines are missing"))) << run_->err();
  EXPECT_EQ(Embeddings::open(disk_ / "r/embeddings").rows().count, 200);
  expect_sound(list_checkpoints(disk_ / "r"));
}

TEST_F(SmallDisk, ThatStaysFullEndsTheRunWithItsReasonAndKeepsTheCheckpoint) {
  run_->send(SIGTERM);

  EXPECT_EQ(run_->wait(), 7);
  const std::string said = run_->err(), what = said.substr(said.rfind("error: "));
  EXPECT_SAYS(what, "disk/r/");
  EXPECT_SAYS(what, "No space left on device");
  EXPECT_SAYS(what, "--resume goes on there");
  const std::vector<fs::path> left = list_checkpoints(disk_ / "r");
  ASSERT_FALSE(left.empty());
  expect_sound(left);
  fs::remove(disk_ / "ballast");
  const double steps = double(newest_sound(disk_ / "r")->state().walks) / 2000;
  succeed(train(cat("--resume --out disk/r --epochs ", int(steps) + 1)));
  EXPECT_EQ(Embeddings::open(disk_ / "r").rows().count, 200);
}

}  // namespace
}  // namespace gs
