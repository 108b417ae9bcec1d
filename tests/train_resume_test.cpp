// Runs that go on: the same bits as without a break, on any ranks, whatever is learnt; and what is refused.
#include <nlohmann/json.hpp>

#include "graphscale/eval.hpp"

#include "tests/support/folder.hpp"
#include "tests/support/manifest.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

class Resumed : public InFolder {
 protected:
  Resumed() {
    set_quiet(true);
    BuiltGraph graph = generate(block_model(100, 1000, 4, 0.9));
    publish(folder_ / "store", graph, "a test", 1);
    graph_ = Graph::open(folder_ / "store");
    config_.run.device = "cpu", config_.run.threads = 1;
    config_.training.deterministic = true, config_.training.epochs = 3, config_.training.step_walks = 48;
    config_.checkpoint.every_steps = 7, config_.checkpoint.keep = 1000;
  }
  ~Resumed() override { set_quiet(false); }

  /// A knowledge graph, and some of its triples as a file.
  void take_triples() {
    std::string all, some;
    for (int i = 0; i < 40; ++i)
      for (int away : {1, 2, 39}) {
        const std::string line = cat("p", i, "\tr", away % 3, "\tp", (i + away) % 40, "\n");
        all += line;
        if (i % 7 == 0) some += line;
      }
    IngestOptions options;
    options.triples = true;
    IngestCounts counts;
    publish(folder_ / "triples", ingest({make("train.tsv", all)}, options, counts), "a test", 1);
    graph_ = Graph::open(folder_ / "triples");
    valid_ = make("valid.tsv", some);
  }

  TrainSummary train_into(const std::string& run, const Config& config, Existing existing = Existing::refuse) const {
    return train(graph_, "store", config, folder_ / run, existing);
  }

  /// The run as a process killed after half of its checkpoints left it: no later one, no embeddings.
  void cut_back(const std::string& run) const {
    const std::vector<fs::path> folders = list_checkpoints(folder_ / run);
    ASSERT_GT(folders.size(), 2u);
    const std::size_t checkpoints = folders.size() / 2;
    for (std::size_t i = 0; i + checkpoints < folders.size(); ++i) fs::remove_all(folders[i]);
    fs::remove_all(folder_ / run / kEmbeddings);
    fs::remove_all(folder_ / run / kRelations);
  }

  std::string vectors(const std::string& run) const {
    return bytes_of(folder_ / run / kEmbeddings / "embeddings.npy") +
           bytes_of(folder_ / run / kRelations / "embeddings.npy");
  }

  void break_in_two(const std::string& whole, const std::string& broken) const {
    fs::copy(folder_ / whole, folder_ / broken, fs::copy_options::recursive);
    cut_back(broken);
  }

  /// Trains without a break, and with one by the configuration given then: the bits of both.
  void expect_same_bits(const Config& config, const Config& then) {
    train_into("whole", config);
    break_in_two("whole", "broken");
    train_into("broken", then, Existing::resume);
    EXPECT_TRUE(vectors("broken") == vectors("whole"));
  }

  std::vector<nlohmann::json> metrics(const std::string& run, const char* key) const {
    std::ifstream in(folder_ / run / kMetricsFile);
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line);)
      if (const auto json = nlohmann::json::parse(line); json.contains(key)) lines.push_back(json);
    return lines;
  }

  std::string refusal(const std::string& run, const Config& config) {
    return sentence_of(Fault::input, [&] { train_into(run, config, Existing::resume); });
  }

  Graph graph_;
  Config config_ = small_config(8);
  fs::path valid_;
};

// --------------------------------------------------------------------------------------------------------- same bits

class ResumedModels : public Resumed, public testing::WithParamInterface<const char*> {
 protected:
  Config config() {
    Config config = config_;
    const std::string what = GetParam();
    if (what == "node2vec") config.model.kind = what, config.sampler.q = 4;
    if (what == "line") config.model.kind = what, config.training.epochs = 6, config.checkpoint.every_steps = 20;
    if (what == "adam" || what == "momentum" || what == "adagrad") config.training.optimizer = what;
    if (what == "fp16" || what == "bf16") config.model.dtype = what;
    if (what == "cold rows") config.exchange.method = "rows", config.store.hot_rows = 9;
    if (what == "partitioned") config.sampler.topology = what;
    if (what == "cosine") config.training.schedule = what, config.training.warm_up_share = 0.2;
    if (what == "frozen") config.start.frozen = make("frozen.txt", "3\n17\n60\n").string();
    if (what != "rotate" && what != "complex") return config;
    take_triples();
    Config of_triples = default_config(what);
    of_triples.model.dim = 8, of_triples.model.reciprocal = what == "complex";
    of_triples.run = config.run, of_triples.checkpoint = config.checkpoint;
    of_triples.training.deterministic = true, of_triples.training.epochs = 20, of_triples.training.step_walks = 2;
    return of_triples;
  }
};

TEST_P(ResumedModels, HaveTheBitsOfARunWithoutABreak) {
  const Config one = config();
  expect_same_bits(one, one);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ResumedModels,
                         testing::Values("deepwalk", "node2vec", "line", "rotate", "complex", "adam", "momentum",
                                         "adagrad", "fp16", "bf16", "cold rows", "partitioned", "cosine", "frozen"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST_F(Resumed, OnOtherRanksAndPlacementsTheBitsAreTheSame) {
  config_.run.ranks = 3, config_.exchange.method = "rows", config_.training.optimizer = "adagrad";
  Config then = config_;
  then.run.ranks = 2, then.store.placement = "partition";
  expect_same_bits(config_, then);
}

TEST_F(Resumed, InPlaceAndOnRanksOneModelIsLearnt) {
  take_triples();
  Config config = default_config("complex");
  config.model.dim = 8, config.run = config_.run, config.checkpoint = config_.checkpoint;
  config.training.epochs = 40, config.training.step_walks = 2, config.checkpoint.every_steps = 25;
  const double whole = train_into("whole", config).loss;
  break_in_two("whole", "broken");
  Config then = config;
  then.run.ranks = 3, then.run.threads = 3;
  EXPECT_NEAR(train_into("broken", then, Existing::resume).loss, whole, 0.25 * whole);
  cut_back("broken");
  EXPECT_NEAR(train_into("broken", config, Existing::resume).loss, whole, 0.25 * whole) << "and back in place";
}

TEST_F(Resumed, AReplicatedHeadIsSavedAsItIsNow) {
  config_.run.ranks = 2, config_.store.replicated_rows = 20, config_.training.deterministic = false;
  config_.store.replicate_every = 5;
  train_into("run", config_);
  const Embeddings saved = Embeddings::open(folder_ / "run");
  const Embeddings last = Embeddings::open(list_checkpoints(folder_ / "run")[0]);
  for (Offset row = 0; row < 100; ++row)
    for (int c = 0; c < 8; ++c) ASSERT_EQ(saved.rows()(row, c), last.rows()(row, c)) << row;
}

TEST_F(Resumed, ValidationsGoOnWhereTheyWere) {
  take_triples();
  Config config = default_config("distmult");
  config.model.dim = 8, config.run = config_.run, config.checkpoint = config_.checkpoint;
  config.training.deterministic = true, config.training.epochs = 12, config.training.step_walks = 2;
  config.eval.valid = valid_.string();
  const TrainSummary whole = train_into("whole", config);
  fs::copy(folder_ / "whole", folder_ / "broken", fs::copy_options::recursive);
  const std::vector<fs::path> folders = list_checkpoints(folder_ / "broken");
  for (std::size_t i = 0; i < folders.size() / 2; ++i) fs::remove_all(folders[i]);  // the best so far stay
  const TrainSummary resumed = train_into("broken", config, Existing::resume);
  EXPECT_EQ(resumed.best_mrr, whole.best_mrr);
  EXPECT_EQ(resumed.validations, whole.validations);
  EXPECT_EQ(resumed.pairs, whole.pairs);
  EXPECT_TRUE(vectors("broken") == vectors("whole"));
}

TEST_F(Resumed, PartsWithValidationsAndPatienceGoOnWhereverTheyWere) {
  std::string pairs;
  for (int i = 0; i < 40; ++i) pairs += cat(i, "\t", i + 1, "\n");
  config_.model.kind = "line", config_.training.epochs = 6, config_.training.learning_rate = 0.3;
  config_.eval.valid = make("valid.tsv", pairs).string(), config_.eval.every = 0.5, config_.eval.patience = 2;
  for (const int ranks : {1, 2}) {
    config_.run.ranks = ranks;
    const TrainSummary whole = train_into("whole", config_);
    EXPECT_LT(whole.validations, 24) << "patience ended it early";
    const std::size_t checkpoints = list_checkpoints(folder_ / "whole").size();
    for (std::size_t last = 1; last < checkpoints; ++last) {  // the checkpoint that is the newest then
      fs::copy(folder_ / "whole", folder_ / "broken", fs::copy_options::recursive);
      const std::vector<fs::path> folders = list_checkpoints(folder_ / "broken");
      for (std::size_t i = 0; i < last; ++i) fs::remove_all(folders[i]);
      fs::remove_all(folder_ / "broken" / kEmbeddings);

      const TrainSummary resumed = train_into("broken", config_, Existing::resume);

      EXPECT_TRUE(vectors("broken") == vectors("whole")) << folders[last] << ", ranks " << ranks;
      EXPECT_EQ(resumed.steps, whole.steps) << folders[last];
      EXPECT_EQ(resumed.validations, whole.validations) << folders[last];
      fs::remove_all(folder_ / "broken");
    }
    fs::remove_all(folder_ / "whole");
  }
}

TEST_F(Resumed, ARunThatLostPatienceGoesOnWithMoreOfIt) {
  take_triples();
  Config config = default_config("distmult");
  config.model.dim = 8, config.run = config_.run, config.checkpoint = config_.checkpoint;
  config.training.deterministic = true, config.training.epochs = 40, config.training.step_walks = 2;
  config.training.learning_rate = 0.5, config.eval.valid = valid_.string(), config.eval.patience = 1;
  const TrainSummary first = train_into("run", config);
  ASSERT_TRUE(first.early);

  EXPECT_TRUE(train_into("run", config, Existing::resume).was_complete);
  config.eval.patience = 3;
  const TrainSummary more = train_into("run", config, Existing::resume);

  EXPECT_GE(more.validations, first.validations + 2);
}

TEST_F(Resumed, TwoProcessesDoNotWriteOneRun) {
  train_into("run", config_);
  config_.training.epochs = 4;
  const fs::path left = folder_ / "run/checkpoints/.step-000000000099.tmp-another-host-77-0000abcd";
  fs::create_directory(left);
  {
    const FolderLock other(folder_ / "run");
    EXPECT_SAYS(sentence_of(Fault::output, [&] { train_into("run", config_, Existing::resume); }),
                "run: another process is writing there");
    EXPECT_TRUE(fs::exists(left));
  }
  train_into("run", config_, Existing::resume);

  EXPECT_FALSE(fs::exists(left)) << "of a process that must be gone, since the lock was free";
}

TEST_F(Resumed, WithoutAnyCheckpointToComeIsRefused) {
  train_into("run", config_);
  config_.checkpoint.keep = 0, config_.training.epochs = 4;

  EXPECT_SAYS(sentence_of(Fault::usage, [&] { train_into("run", config_, Existing::resume); }), "checkpoint.keep is 0");
}

TEST_F(Resumed, TheBestCheckpointStays) {
  take_triples();
  Config config = default_config("distmult");
  config.model.dim = 8, config.run = config_.run, config.training.deterministic = true;
  config.training.epochs = 40, config.training.step_walks = 2, config.training.learning_rate = 0.5;
  config.eval.valid = valid_.string(), config.checkpoint.keep = 1, config.checkpoint.every_steps = 3;
  const TrainSummary summary = train_into("run", config);
  int best = 0;
  for (const fs::path& folder : list_checkpoints(folder_ / "run")) {
    const RunState state = Checkpoint(folder).state();
    if (!state.is_best) continue;
    ++best;
    EXPECT_EQ(state.totals.best_mrr, summary.best_mrr);
  }
  EXPECT_EQ(best, 1);
  EXPECT_LE(list_checkpoints(folder_ / "run").size(), 2u);
}

// -------------------------------------------------------------------------------------------------------- the end

TEST_F(Resumed, ACompleteRunIsLeftAsItIsAndMoreEpochsGoOn) {
  const TrainSummary first = train_into("run", config_);
  const std::string before = vectors("run"), record = bytes_of(folder_ / "run" / kMetricsFile);
  const TrainSummary again = train_into("run", config_, Existing::resume);
  EXPECT_TRUE(again.was_complete);
  EXPECT_EQ(again.pairs, first.pairs);
  EXPECT_TRUE(vectors("run") == before);
  EXPECT_EQ(bytes_of(folder_ / "run" / kMetricsFile), record);

  config_.training.epochs = 5, config_.training.schedule = "linear";
  const TrainSummary more = train_into("run", config_, Existing::resume);
  EXPECT_EQ(more.walks, 5 * 400);
  EXPECT_EQ(metrics("run", "resume").size(), 1u);
  const double rate = metrics("run", "learning_rate")[1]["learning_rate"];
  EXPECT_LT(rate, 0.021) << "the schedule of five epochs goes on at three";
}

TEST_F(Resumed, KilledBetweenTheLastCheckpointAndTheVectorsARunSavesThem) {
  train_into("run", config_);
  const std::string whole = vectors("run");
  fs::remove_all(folder_ / "run" / kEmbeddings);
  const fs::path file = list_checkpoints(folder_ / "run")[0] / "manifest.json";
  auto manifest = nlohmann::ordered_json::parse(bytes_of(file));
  EXPECT_EQ(manifest["complete"], true);
  manifest["complete"] = false;
  write_text(file, with_checksum(manifest));

  EXPECT_FALSE(train_into("run", config_, Existing::resume).was_complete);
  EXPECT_TRUE(vectors("run") == whole);
  EXPECT_TRUE(train_into("run", config_, Existing::resume).was_complete);
}

TEST_F(Resumed, WhereThereIsNothingARunBegins) {
  train_into("run", config_, Existing::resume);
  train_into("whole", config_);
  EXPECT_TRUE(vectors("run") == vectors("whole"));
}

TEST_F(Resumed, AnotherGraphModelOrSamplerIsRefusedByName) {
  train_into("run", config_);
  cut_back("run");
  const std::string record = bytes_of(folder_ / "run" / kMetricsFile);
  Config other = config_;
  other.model.dim = 16;
  EXPECT_SAYS(refusal("run", other), "model.dim is 8, now 16");
  other = config_, other.model.kind = "node2vec";
  EXPECT_SAYS(refusal("run", other), "model.kind is deepwalk, now node2vec");
  other = config_, other.sampler.walk_length = 20;
  EXPECT_SAYS(refusal("run", other), "sampler.walk_length is 10, now 20");
  other = config_, other.training.seed = 5;
  EXPECT_SAYS(refusal("run", other), "training.seed is 1, now 5");
  other = config_, other.training.optimizer = "adam";
  EXPECT_SAYS(refusal("run", other), "training.optimizer is sgd, now adam");
  other = config_, other.training.epochs = 0;
  EXPECT_SAYS(refusal("run", other), "training.epochs is now 0");

  publish(folder_ / "store", generate(block_model(100, 900, 4, 0.9)), "a test", 1);
  graph_ = Graph::open(folder_ / "store");
  EXPECT_SAYS(refusal("run", config_), "is of graph version v0001");
  EXPECT_EQ(graph_version_of(folder_ / "run"), "v0001");
  EXPECT_EQ(bytes_of(folder_ / "run" / kMetricsFile), record) << "nothing was begun";
}

TEST_F(Resumed, AFolderWithARunIsNotBegunAnewUnasked) {
  train_into("run", config_);
  cut_back("run");
  EXPECT_SAYS(sentence_of(Fault::output, [&] { train_into("run", config_); }), "--resume");
  config_.model.dim = 4;
  train_into("run", config_, Existing::overwrite);
  for (const fs::path& folder : list_checkpoints(folder_ / "run")) EXPECT_EQ(Checkpoint(folder).dim(), 4) << folder;
}

// ------------------------------------------------------------------------------------------------- when they are made

TEST_F(Resumed, CheckpointsComeByStepsAndSomeAreKept) {
  config_.checkpoint.keep = 2;
  train_into("run", config_);
  const std::vector<fs::path> folders = list_checkpoints(folder_ / "run");
  ASSERT_EQ(folders.size(), 2u);
  EXPECT_EQ(Checkpoint(folders[0]).state().walks, 3 * 400);
  EXPECT_EQ(Checkpoint(folders[1]).state().steps % 7, 0);
  std::vector<Offset> steps;
  for (const nlohmann::json& line : metrics("run", "checkpoint")) steps.push_back(line["checkpoint"]);
  ASSERT_GE(steps.size(), 4u);
  EXPECT_EQ(steps[0], 7);
  EXPECT_EQ(steps[1], 14);
}

TEST_F(Resumed, CheckpointsComeByTimeInPlaceAndOnRanks) {
  config_.checkpoint.every_steps = 0, config_.checkpoint.every_minutes = 1e-6;
  config_.training.deterministic = false, config_.training.epochs = 20;
  for (const int ranks : {0, 3}) {
    config_.run.ranks = ranks;
    const std::string run = cat("run", ranks);
    train_into(run, config_);
    EXPECT_GE(metrics(run, "checkpoint").size(), 2u) << ranks << ": one by time, and the last";
  }
}

TEST_F(Resumed, NoneIsMadeWhereNoneIsWanted) {
  config_.checkpoint.keep = 0;
  train_into("run", config_);
  EXPECT_FALSE(fs::exists(checkpoints_of(folder_ / "run")));
  EXPECT_SAYS(sentence_of(Fault::output, [&] { train_into("run", config_, Existing::resume); }), "no checkpoint");
}

TEST_F(Resumed, ARunThatDivergesKeepsItsSoundCheckpoints) {
  train_into("run", config_);
  cut_back("run");
  Config wild = config_;
  wild.training.learning_rate = 1e6, wild.training.curvature_limit = 0, wild.training.schedule = "constant";
  const std::string what = sentence_of(Fault::internal, [&] { train_into("run", wild, Existing::resume); });
  EXPECT_SAYS(what, "diverged");
  EXPECT_SAYS(what, "--resume");
  for (const fs::path& folder : list_checkpoints(folder_ / "run")) EXPECT_NO_THROW(Checkpoint(folder).verify());
  train_into("whole", config_);
  train_into("run", config_, Existing::resume);
}

}  // namespace
}  // namespace gs
