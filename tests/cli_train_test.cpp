// The training road by the program itself: signals, limits of memory and disk, what it prints and what it leaves.
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/support/cgroup.hpp"
#include "tests/support/program.hpp"

namespace gs {
namespace {

class TrainCommand : public WithProgram {
 protected:
  TrainCommand() { succeed("graph generate sbm --nodes 200 --edges 2000 --out s"); }

  const std::string train_ = "train --graph s --out r --device cpu --dim 8 ";
};

// ------------------------------------------------------------------------------------------------------------ signals

/// The program as a process of its own, with its output in files of the folder.
class Process {
 public:
  Process(const fs::path& folder, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), GS_BINARY);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    id_ = ::fork();
    if (id_ != 0) return;
    const int out = ::open((folder / ".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err = ::open((folder / ".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (::chdir(folder.c_str()) == 0 && ::dup2(out, 1) == 1 && ::dup2(err, 2) == 2) ::execv(GS_BINARY, pointers.data());
    ::_exit(127);
  }
  Process(const Process&) = delete;
  ~Process() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    wait();
  }

  void send(int signal) const { ::kill(id_, signal); }

  /// Its exit status, or -1 where a signal ended it.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(id_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t id_;
};

/// False where it has not come true within a minute.
template <class Condition>
bool becomes(Condition&& condition) {
  using namespace std::chrono_literals;
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

class Signal : public TrainCommand, public testing::WithParamInterface<int> {};

TEST_P(Signal, EndsALongRunWellWithWhatWasTrainedSaved) {
  Process process(folder_, {"train", "--graph", "s", "--out", "r", "--device", "cpu", "--dim", "8", "--epochs",
                            "1000000", "--metrics.log_steps", "1"});
  ASSERT_TRUE(becomes([&] { return says(bytes_of(folder_ / "r" / "metrics.jsonl"), "\"step\":3,"); }));

  process.send(GetParam());
  const int status = process.wait();

  EXPECT_EQ(status, 0) << bytes_of(folder_ / ".err");
  EXPECT_SAYS(bytes_of(folder_ / ".err"), "stopped by a signal: ");
  EXPECT_SAYS(bytes_of(folder_ / "r" / "metrics.jsonl"), "{\"end\":\"stopped\"");
  EXPECT_EQ(vectors("r").size(), 200u);
  EXPECT_SAYS(refusal(7, train_), "pass --overwrite");
  succeed(train_ + "--overwrite");
  EXPECT_SAYS(bytes_of(folder_ / "r" / "metrics.jsonl"), "{\"end\":\"complete\"");
}

INSTANTIATE_TEST_SUITE_P(Kinds, Signal, testing::Values(SIGINT, SIGTERM),
                         [](const auto& test) { return test.param == SIGINT ? "SIGINT" : "SIGTERM"; });

TEST_F(TrainCommand, KilledAtAnyMomentLeavesWholeVectorsAndCanBeRunAgain) {
  succeed(train_);
  for (int delay_ms = 0; delay_ms <= 60; delay_ms += 6) {
    Process process(folder_, {"train", "--graph", "s", "--out", "r", "--device", "cpu", "--dim", "8", "--overwrite"});
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    process.send(SIGKILL);
    process.wait();

    const bool is_between_two_renames = !fs::exists(folder_ / "r" / "embeddings");
    EXPECT_EQ(vectors(is_between_two_renames ? "r/embeddings.next" : "r").size(), 200u) << "after " << delay_ms;
  }

  succeed(train_ + "--overwrite");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "r")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"checkpoints", "config.json", "embeddings", "metrics.jsonl"}));
}

// ------------------------------------------------------------------------------------------------------------- output

TEST_F(TrainCommand, LogsToStderrAndPrintsNothingToStdout) {
  const Outcome outcome = succeed(train_);

  EXPECT_EQ(outcome.out, "");
  for (const char* part :
       {"config: model: kind deepwalk, dim 8", "config: training: epochs 1, optimizer sgd, learning_rate 0.05",
        "graph: s v0001, 200 nodes", "device: cpu", "memory: ", "train: 100 % (2,000 walks)", "save: 100 % (200 rows)",
        "pairs/s), embeddings in r/embeddings"})
    EXPECT_SAYS(outcome.err, part);
}

TEST_F(TrainCommand, PhasesEndAtAHundredPercentForAnyThreads) {
  for (const char* threads : {"1", "16"})
    EXPECT_SAYS(succeed(cat(train_, "--overwrite --threads ", threads)).err, "train: 100 % (2,000 walks)");
}

TEST_F(TrainCommand, QuietSaysNothing) { EXPECT_EQ(succeed(train_ + "--quiet").err, ""); }

TEST_F(TrainCommand, SaysThatRunsDifferAndHowTheyDoNot) {
  EXPECT_SAYS(succeed(train_ + "--threads 2").err, "last bits vary between runs (--deterministic fixes them)");
  EXPECT_FALSE(says(succeed(train_ + "--overwrite --threads 2 --deterministic").err, "last bits vary"));
}

TEST_F(TrainCommand, TheConfigurationOfARunCanBeGivenAgain) {
  succeed(train_ + "--deterministic --set training.seed=7 --window 3");

  succeed("train --graph s --out again --config r/config.json");

  EXPECT_EQ(bytes_of(folder_ / "again" / "config.json"), bytes_of(folder_ / "r" / "config.json"));
  EXPECT_EQ(bytes_of(folder_ / "again" / "embeddings" / "embeddings.npy"),
            bytes_of(folder_ / "r" / "embeddings" / "embeddings.npy"));
}

TEST_F(TrainCommand, NamesItsValuesOnTheHelpPage) {
  const std::string page = succeed("train --help").out;

  for (const char* part : {"--graph STORE (required)", "--graph-version VERSION", "--out RUN (required)"})
    EXPECT_SAYS(page, part);
}

// ------------------------------------------------------------------------------------------------------------- places

TEST_F(TrainCommand, PlacesThatCannotHoldARunAreRefusedBeforeTheGraphIsRead) {
  make("file", "x");
  const auto before = visible();

  for (const char* place : {"/dev/full", "/no/such/dir/x", "/proc/x", "file", "''"})
    EXPECT_NE(refusal(7, cat("train --graph nosuch --out ", place)), "") << place;

  EXPECT_EQ(visible(), before);
}

TEST_F(TrainCommand, AGraphThatIsNotThereIsNamed) {
  EXPECT_SAYS(refusal(3, "train --graph nosuch --out r"), "nosuch");
  EXPECT_SAYS(refusal(3, "train --graph s --graph-version v0009 --out r"), "v0009");
  EXPECT_FALSE(fs::exists(folder_ / "r"));
}

// -------------------------------------------------------------------------------------------------------------- disk

/// What the test's folder and the run's hold, hidden files too, but for the output of the program.
class FullDisk : public TrainCommand {
 protected:
  std::vector<std::string> everything() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      const std::string name = entry.path().lexically_relative(folder_);
      if (name != ".out" && name != ".err") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(FullDisk, WhileSavingLeavesNoVectorsAndARecordOfWhy) {
  const std::string what = refusal(7, "train --graph s --out r --device cpu --dim 512", "ulimit -f 100 &&");

  EXPECT_SAYS(what, "File too large");
  EXPECT_SAYS(bytes_of(folder_ / "r" / "metrics.jsonl"), "{\"end\":\"failed\"");
  auto left = everything();
  std::erase_if(left, [](const std::string& name) { return name.rfind("r", 0) != 0; });
  EXPECT_EQ(left, (std::vector<std::string>{"r", "r/checkpoints", "r/config.json", "r/metrics.jsonl"}));
}

TEST_F(FullDisk, WhileSavingKeepsTheVectorsOfAnEarlierRun) {
  succeed(train_);
  const std::string vectors = bytes_of(folder_ / "r" / "embeddings" / "embeddings.npy");

  EXPECT_SAYS(refusal(7, "train --graph s --out r --device cpu --dim 512 --overwrite", "ulimit -f 100 &&"),
              "beside the embeddings of the earlier run");

  EXPECT_EQ(bytes_of(folder_ / "r" / "embeddings" / "embeddings.npy"), vectors);
  for (const std::string& name : everything()) EXPECT_FALSE(says(name, ".tmp-")) << name;
}

TEST_F(FullDisk, ForMetricsAloneCostsNoVectors) {
  const std::string what = refusal(7, train_ + "--step-walks 1 --metrics.log_steps 1", "ulimit -f 100 &&");

  EXPECT_SAYS(what, "metrics.jsonl: lines are missing");
  EXPECT_SAYS(bytes_of(folder_ / ".err"), "warning: r/metrics.jsonl: a line could not be written");
  EXPECT_EQ(vectors("r").size(), 200u);
}

TEST_F(FullDisk, IsForeseenBeforeTraining) {
  const fs::path mounted = folder_ / "mounted";
  fs::create_directory(mounted);
  if (::mount("none", mounted.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "a small file system cannot be mounted: " << std::strerror(errno);

  const std::string what = refusal(7, "train --graph s --out mounted/r --device cpu --dim 1024");
  const bool made = fs::exists(mounted / "r");
  ::umount(mounted.c_str());

  EXPECT_SAYS(what,
              "about 803.1 KiB of embeddings and 3 checkpoints of 1.6 MiB will be written and 256.0 KiB are free");
  EXPECT_FALSE(made);
}

// ------------------------------------------------------------------------------------------------------------- memory

TEST_F(TrainCommand, ARunThatCannotFitIsRefusedInOneLineBeforeAnythingIsMade) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's shadow memory does not start within a limit of address space";

  const std::string what =
      refusal(4, "train --graph s --out r --device cpu --dim 2048 --step-walks 4000000", "ulimit -v 1000000 &&");

  for (const char* part : {"this run needs ", "step: walks 610.4 MiB", "step: negatives 488.3 MiB",
                           " are free: ", "lower training.step_walks"})
    EXPECT_SAYS(what, part);
  EXPECT_FALSE(fs::exists(folder_ / "r"));
}

TEST_F(TrainCommand, ALargeTableIsRefusedNamingTheDimension) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's shadow memory does not start within a limit of address space";
  succeed("graph generate ring --nodes 50000 --out big");

  const std::string what = refusal(4, "train --graph big --out r --device cpu --dim 2048", "ulimit -v 600000 &&");

  for (const char* part : {"model: centre table 390.6 MiB", "model: context table 390.6 MiB", "lower model.dim"})
    EXPECT_SAYS(what, part);
  EXPECT_FALSE(fs::exists(folder_ / "r"));
}

TEST_F(TrainCommand, TheLimitOfACgroupBelowTheRootIsHeldTo) {
  const SmallCgroup cgroup("memory", {"memory.limit_in_bytes", "memory.max"}, "629145600");
  if (!cgroup.is_there()) GTEST_SKIP() << "no memory cgroup can be made here";
  succeed("graph generate ring --nodes 50000 --out big");

  const std::string what = refusal(4, "train --graph big --out r --device cpu --dim 2048", cgroup.enter());

  for (const char* part : {"model: centre table 390.6 MiB", "lower model.dim"}) EXPECT_SAYS(what, part);
  EXPECT_FALSE(fs::exists(folder_ / "r"));
}

TEST_F(TrainCommand, TheQuotaOfACgroupIsTheNumberOfThreads) {
  const SmallCgroup cgroup("cpu", {"cpu.cfs_quota_us", "cpu.max"}, "100000");
  if (!cgroup.is_there()) GTEST_SKIP() << "no cpu cgroup can be made here";

  const std::string log = succeed("train --graph s --out r --device cpu", cgroup.enter()).err;

  EXPECT_SAYS(log, ", 1 thread\n");
}

// ------------------------------------------------------------------------------------------------------------- device

TEST_F(TrainCommand, AGpuThatIsNotThereIsAnErrorWithItsReason) {
  const std::string what = refusal(5, "train --graph s --out r --device cuda", "CUDA_VISIBLE_DEVICES=");

  EXPECT_SAYS(what, "device cuda: ");
  EXPECT_SAYS(what, "or use --device cpu");
  EXPECT_FALSE(fs::exists(folder_ / "r"));
}

TEST_F(TrainCommand, TheCpuStandsInForAGpuOnlyWithALineThatSaysSo) {
  EXPECT_SAYS(succeed("train --graph s --out r --dim 8", "CUDA_VISIBLE_DEVICES=").err, "using the CPU: ");
}

TEST_F(TrainCommand, CommandsThatNeedNoGpuWorkWithoutOne) {
  const std::string hide = "CUDA_VISIBLE_DEVICES=";
  make("edges.tsv", "a\tb\nb\tc\n");

  succeed("graph ingest edges.tsv --out t", hide);
  succeed("graph info t", hide);
  succeed("train --graph t --out r --device cpu --dim 4", hide);
  succeed("query r a", hide);
  succeed("export r --format word2vec --out v.txt", hide);
}

}  // namespace
}  // namespace gs
