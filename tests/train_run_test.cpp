// A run's folder: what it holds, what it is refused for, and that nothing in it is lost or half-written.
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/support/folder.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

class Run : public InFolder {
 protected:
  Run() {
    publish(folder_ / "store", generate(block_model(100, 1000, 4, 0.9)), "a test", 1);
    graph_ = Graph::open(folder_ / "store");
    config_.run.device = "cpu", config_.run.threads = 2;
    config_.training.deterministic = true;
    set_quiet(true);
  }
  ~Run() override { set_quiet(false); }

  TrainSummary train_into(const fs::path& run, const Config& config, bool overwrite = false) const {
    return train(graph_, "store", config, run, overwrite ? Existing::overwrite : Existing::refuse);
  }

  Config diverging() const {
    Config config = config_;
    config.training.learning_rate = 1e6, config.training.curvature_limit = 0;
    return config;
  }

  std::vector<nlohmann::json> metrics_of(const fs::path& run) const {
    std::ifstream in(run / "metrics.jsonl");
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  std::string array_bytes(const fs::path& run) const { return bytes_of(run / "embeddings" / "embeddings.npy"); }

  static std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  Graph graph_;
  Config config_ = small_config(6);
  const fs::path run_ = folder_ / "run";
  const std::vector<std::string> whole_{"checkpoints", "config.json", "embeddings", "metrics.jsonl"};
  const std::vector<std::string> record_{"config.json", "metrics.jsonl"};
};

// ----------------------------------------------------------------------------------------------------------- contents

TEST_F(Run, HoldsConfigurationMetricsAndVectorsByName) {
  train_into(run_, config_);

  EXPECT_EQ(names_in(run_), whole_);
  const Embeddings embeddings = Embeddings::open(run_);
  ASSERT_EQ(embeddings.rows().count, 100);
  EXPECT_EQ(embeddings.rows().dim, 6);
  for (Offset row = 0; row < 100; ++row) EXPECT_EQ(embeddings.names().name(row), graph_.names().name(row));
  const std::vector<float> values = trained(graph_.csr(), config_);
  EXPECT_EQ(std::vector<float>(embeddings.rows().data, embeddings.rows().data + 600), values);
}

TEST_F(Run, ItsConfigurationReadsBackAsTheOneThatTookEffect) {
  config_.training.seed = 18446744073709551615u, config_.training.learning_rate = 0.1;

  train_into(run_, config_);

  EXPECT_EQ(to_json(read_config((run_ / "config.json").string(), {})), to_json(config_));
}

TEST_F(Run, MetricsAreALineEveryFewStepsAndALastOne) {
  config_.training.step_walks = 40, config_.metrics.log_steps = 3;

  const TrainSummary summary = train_into(run_, config_);

  const std::vector<nlohmann::json> lines = metrics_of(run_);
  ASSERT_EQ(lines.size(), 6u) << "10 steps: 3, 6, 9, 10, the checkpoint, and the end";
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lines[i]["step"], std::vector<int>({3, 6, 9, 10})[i]);
    EXPECT_EQ(lines[i]["walks"], lines[i]["step"].get<int>() * 40);
    EXPECT_GT(lines[i]["loss"], 0);
    EXPECT_GT(lines[i]["pairs_per_s"], 0);
    EXPECT_GT(lines[i]["memory_bytes"], 0);
  }
  EXPECT_EQ(lines[4]["checkpoint"], 10);
  EXPECT_GT(lines[4]["bytes"], 100 * 2 * 6 * 4);
  EXPECT_GT(lines[4]["write_s"], 0);
  EXPECT_EQ(lines[5]["end"], "complete");
  EXPECT_EQ(lines[5]["steps"], 10);
  EXPECT_EQ(lines[5]["walks"], 400);
  EXPECT_EQ(lines[5]["pairs"], summary.pairs);
  EXPECT_EQ(lines[5]["loss"], summary.loss);
}

TEST_F(Run, OfNoEpochsIsCompleteToo) {
  config_.training.epochs = 0;

  const TrainSummary summary = train_into(run_, config_);

  EXPECT_EQ(names_in(run_), whole_);
  EXPECT_EQ(metrics_of(run_).back()["end"], "complete");
  EXPECT_EQ(summary.walks, 0);
  EXPECT_FALSE(summary.stopped);
}

TEST_F(Run, StoppedByASignalSavesWhatWasTrained) {
  catch_stop_signals();
  std::raise(SIGTERM);

  const TrainSummary summary = train_into(run_, config_);
  catch_stop_signals();  // forgets the signal

  EXPECT_TRUE(summary.stopped);
  EXPECT_EQ(names_in(run_), whole_);
  EXPECT_EQ(metrics_of(run_).back()["end"], "stopped");
  std::signal(SIGTERM, SIG_DFL), std::signal(SIGINT, SIG_DFL);
}

// ---------------------------------------------------------------------------------------------------- a second run

TEST_F(Run, IsNotTrainedIntoAgainUnlessToldTo) {
  train_into(run_, config_);
  const std::string vectors = array_bytes(run_), metrics = bytes_of(run_ / "metrics.jsonl");
  config_.training.seed = 2;

  EXPECT_SAYS(sentence_of(Fault::output, [&] { train_into(run_, config_); }), "pass --overwrite");

  EXPECT_EQ(array_bytes(run_), vectors);
  EXPECT_EQ(bytes_of(run_ / "metrics.jsonl"), metrics);
}

TEST_F(Run, OverwriteReplacesItWhole) {
  train_into(run_, config_);
  config_.training.seed = 2, config_.model.dim = 7;

  train_into(run_, config_, true);

  EXPECT_EQ(names_in(run_), whole_);
  EXPECT_EQ(Embeddings::open(run_).rows().dim, 7);
  EXPECT_EQ(read_config((run_ / "config.json").string(), {}).training.seed, 2u);
}

TEST_F(Run, ClearsWhatAKilledOneLeft) {
  train_into(run_, config_);
  const auto leave = [&] {
    fs::create_directory(run_ / "embeddings.next");
    write_text(run_ / "embeddings.next/names.txt", "half");
  };

  leave();
  train_into(run_, config_, true);
  EXPECT_EQ(names_in(run_), whole_);

  leave();
  fs::remove_all(run_ / "embeddings");  // killed before there were any
  fs::remove_all(run_ / "checkpoints");
  train_into(run_, config_);
  EXPECT_EQ(names_in(run_), whole_);
}

TEST_F(Run, ThatDivergesLeavesItsRecordAndNoVectors) {
  const std::string what = sentence_of(Fault::internal, [&] { train_into(run_, diverging()); });

  EXPECT_SAYS(what, "training diverged at step");
  EXPECT_SAYS(what, run_.string() +
                        " keeps config.json and metrics.jsonl; nothing was saved; train into it again, or remove it");
  EXPECT_EQ(names_in(run_), record_);
  EXPECT_EQ(metrics_of(run_).back()["end"], "failed");
  EXPECT_SAYS(metrics_of(run_).back()["reason"].get<std::string>(), "training diverged at step");
}

TEST_F(Run, ThatDivergedCanBeTrainedIntoAgain) {
  EXPECT_THROW(train_into(run_, diverging()), Error);

  train_into(run_, config_);

  EXPECT_EQ(names_in(run_), whole_);
  EXPECT_EQ(metrics_of(run_).back()["end"], "complete");
}

TEST_F(Run, ThatDivergesOverAnEarlierOneKeepsTheEarlierVectors) {
  train_into(run_, config_);
  const std::string vectors = array_bytes(run_);

  const std::string what = sentence_of(Fault::internal, [&] { train_into(run_, diverging(), true); });

  EXPECT_SAYS(what, "beside the embeddings of the earlier run");
  EXPECT_EQ(array_bytes(run_), vectors);
}

// --------------------------------------------------------------------------------------------------------- refusals

TEST_F(Run, IsNoFolderOfSomethingElse) {
  fs::create_directory(run_);
  write_text(run_ / "config.json", "{}");

  EXPECT_SAYS(sentence_of(Fault::output, [&] { train_into(run_, config_); }), "is a folder of something else");

  EXPECT_EQ(names_in(run_), std::vector<std::string>{"config.json"});
}

TEST_F(Run, MayBeAnEmptyFolder) {
  fs::create_directory(run_);

  train_into(run_, config_);

  EXPECT_EQ(names_in(run_), whole_);
}

TEST_F(Run, MayBeNamedWithASlashBehind) {
  train_into(run_ / "", config_);

  EXPECT_EQ(names_in(run_), whole_);
}

TEST_F(Run, InAPlaceThatCannotHoldItIsRefusedBeforeAnythingIsMade) {
  make("file", "x");
  const std::vector<std::string> before = listing();

  EXPECT_SAYS(sentence_of(Fault::output, [&] { train_into("", config_); }), "names no folder");
  EXPECT_SAYS(sentence_of(Fault::output, [&] { train_into(folder_ / "file", config_); }), "is a file");
  EXPECT_SAYS(sentence_of(Fault::output, [&] { train_into(folder_ / "no" / "x", config_); }), "does not exist");
  EXPECT_SAYS(sentence_of(Fault::output, [&] { train_into("/dev/full", config_); }), "neither a file nor a folder");
  EXPECT_SAYS(sentence_of(Fault::output, [&] { train_into("/proc/run", config_); }), "cannot be written");

  EXPECT_EQ(listing(), before);
}

TEST_F(Run, InAFolderThatMayNotBeWrittenIsRefused) {
  const auto act_as_nobody = [&] {  // root may write anywhere
    if (::geteuid() == 0 && ::setuid(65534) != 0) _exit(99);
    try {
      check_run_folder(folder_, Existing::refuse);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(int(error.fault));
    }
    _exit(0);
  };
  fs::remove_all(folder_ / "store");  // an empty folder would do for a run
  fs::permissions(folder_,
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);

  EXPECT_EXIT(act_as_nobody(), testing::ExitedWithCode(7), "cannot be written: Permission denied");

  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(Run, OfARefusedConfigurationMakesNoFolder) {
  Config config = config_;
  config.model.dim = 2048, config.sampler.walk_length = 1024, config.sampler.shared_negatives = 256;
  config.training.step_walks = std::numeric_limits<int>::max();  // about 44 TB

  EXPECT_SAYS(sentence_of(Fault::memory, [&] { train_into(run_, config); }), "lower training.step_walks");

  EXPECT_FALSE(fs::exists(run_));
}

}  // namespace
}  // namespace gs
