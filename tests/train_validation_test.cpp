// Validation as training goes: when it is due, that the best vectors are those that are saved, and when it ends a run.
#include <nlohmann/json.hpp>

#include "graphscale/eval.hpp"

#include "src/train/validator.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

constexpr int kPeople = 40;

/// People in a circle: one `likes` the next and `knows` both neighbours; a few such triples are held out.
class Validated : public InFolder {
 protected:
  Validated() {
    std::string train, valid;
    for (int i = 0; i < kPeople; ++i) {
      const auto at = [&](int away) { return cat("p", (i + kPeople + away) % kPeople); };
      std::string& likes = i % 8 == 3 ? valid : train;
      likes += cat(at(0), "\tlikes\t", at(1), "\n");
      train += cat(at(0), "\tknows\t", at(1), "\n", at(0), "\tknows\t", at(-1), "\n");
    }
    train_file_ = make("train.tsv", train), valid_file_ = make("valid.tsv", valid);
    valid_pairs_ = make("valid.txt", pairs_of(valid_file_));
    IngestOptions options;
    options.triples = true;
    IngestCounts counts;
    set_quiet(true);
    publish(folder_ / "store", ingest({train_file_}, options, counts), "a test", 1);
    graph_ = Graph::open(folder_ / "store");
  }
  ~Validated() override { set_quiet(false); }

  Config config_of(const std::string& kind) const {
    Config config = is_knowledge_graph_model(kind) ? default_config(kind) : small_config(8);
    config.model.kind = kind, config.model.dim = 8;
    config.run.device = "cpu", config.run.threads = 1;
    config.training.epochs = 6, config.training.step_walks = 2, config.training.deterministic = true;
    config.eval.valid = (is_knowledge_graph_model(kind) ? valid_file_ : valid_pairs_).string();
    return config;
  }

  std::vector<nlohmann::json> metrics(const char* key) const {
    std::ifstream in(run_ / "metrics.jsonl");
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line);)
      if (const auto json = nlohmann::json::parse(line); json.contains(key)) lines.push_back(json);
    return lines;
  }

  RankScores judged_from_files(const std::string& kind) const {
    RankFiles files;
    files.test = valid_file_, files.known = {train_file_};
    MemoryLedger ledger{Device{}};
    const Exec exec{Device{}, 1, nullptr, &ledger};
    if (is_knowledge_graph_model(kind)) return eval_rank(TripleRun::open(run_), files, {}, exec).filtered.both;
    files.directed = graph_.csr().directed;
    files.test = valid_pairs_, files.known = {make("known.txt", pairs_of(train_file_))};
    return eval_rank(Embeddings::open(run_), Metric::dot, files, {}, exec).filtered.both;
  }

  static std::string pairs_of(const fs::path& triples) {
    std::ifstream in(triples);
    std::string head, relation, tail, pairs;
    while (in >> head >> relation >> tail) pairs += cat(head, " ", tail, "\n");
    return pairs;
  }

  fs::path train_file_, valid_file_, valid_pairs_;
  Graph graph_;
  const fs::path run_ = folder_ / "run";
};

// --------------------------------------------------------------------------------------------------------- when it is

TEST_F(Validated, IsDueAtTheFirstStepsEndAfterEachPartOfAnEpochAndAtTheLast) {
  Config config = config_of("distmult");
  config.training.epochs = 3, config.training.step_walks = 1, config.sampler.triples_per_tile = 23;
  const auto due = [&](double every) {  // 115 triples: 5 steps an epoch
    config.eval.every = every;
    Trainer trainer(graph_.csr(), config, Device{}, 1);
    std::vector<int> steps;
    while (!trainer.done()) {
      trainer.step();
      if (trainer.at_validation()) steps.push_back(int(trainer.steps_done()));
    }
    return steps;
  };

  ASSERT_EQ(graph_.csr().num_arcs(), 115);
  EXPECT_EQ(due(1), (std::vector<int>{5, 10, 15}));
  EXPECT_EQ(due(2), (std::vector<int>{10, 15}));
  EXPECT_EQ(due(0.5), (std::vector<int>{3, 5, 8, 10, 13, 15}));
  EXPECT_EQ(due(1.0 / 3), (std::vector<int>{2, 4, 5, 7, 9, 10, 12, 14, 15}));
  EXPECT_EQ(due(1e-6).size(), 15u) << "every step, at most";
  EXPECT_EQ(due(100), (std::vector<int>{15}));
  config.eval.valid = "";
  EXPECT_EQ(due(1), (std::vector<int>{15}));
}

// ---------------------------------------------------------------------------------------------------------- what is
// best

class ValidatedOn : public Validated, public testing::WithParamInterface<std::pair<const char*, int>> {};

TEST_P(ValidatedOn, TheSavedVectorsAreTheBestAsEvalRankSeesThem) {
  const auto [kind, ranks] = GetParam();
  Config config = config_of(kind);
  config.run.ranks = ranks;

  const TrainSummary summary = train(graph_, "store", config, run_, Existing::refuse);

  const std::vector<nlohmann::json> lines = metrics("validation");
  ASSERT_EQ(lines.size(), 6u) << "an epoch each";
  double best = -1;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_NEAR(lines[i]["validation"], double(i + 1), 1e-9);
    EXPECT_EQ(lines[i]["best"], lines[i]["mrr"] > best);
    best = std::max<double>(best, lines[i]["mrr"]);
  }
  EXPECT_EQ(summary.validations, 6);
  EXPECT_EQ(summary.best_mrr, best);
  EXPECT_EQ(judged_from_files(kind).mrr, best);
  EXPECT_EQ(metrics("end").back()["end"], "complete");
  EXPECT_EQ(metrics("end").back()["best"]["mrr"], best);
}

INSTANTIATE_TEST_SUITE_P(, ValidatedOn,
                         testing::Values(std::pair("complex", 0), std::pair("complex", 1), std::pair("transe", 3),
                                         std::pair("deepwalk", 0), std::pair("deepwalk", 2)),
                         [](const auto& info) { return cat(info.param.first, "On", info.param.second); });

TEST_F(Validated, RanksPauseWithoutLosingAStep) {
  for (const int staleness : {0, 2}) {
    Config config = config_of("complex");
    config.exchange.method = "rows", config.training.staleness = staleness, config.training.deterministic = false;
    config.training.step_walks = 1, config.eval.every = 0.4;
    run_on_ranks(3, [&](Comm& comm) {
      RankTrainer trainer(graph_.csr(), config, comm, Device{}, 1);
      Offset pairs = 0;
      int validations = 0;
      while (!trainer.done()) {
        pairs += trainer.step().pairs;
        if (!trainer.at_validation()) continue;
        ++validations;
        trainer.gather(0, {nullptr, 0, config.model.dim, config.model.dim});  // collective: every rank is here
        const Offset epochs = trainer.walks_done() / 4,
                     tiles = trainer.walks_done() % 4;  // of 32 triples, the last of 19
        EXPECT_EQ(pairs, 2 * (epochs * 115 + tiles * 32));
      }
      EXPECT_EQ(validations, 15);
      EXPECT_EQ(pairs, 6 * 2 * graph_.csr().num_arcs());
    });
  }
}

TEST_F(Validated, APauseChangesNoBitWhereStagesTakeTurns) {
  Config config = config_of("complex");
  config.run.ranks = 2, config.training.staleness = 0, config.training.learning_rate = 0.02;
  config.eval.every = 0.3;
  train(graph_, "store", config, run_, Existing::refuse);
  const std::string paused = bytes_of(run_ / "embeddings" / "embeddings.npy");
  ASSERT_TRUE(metrics("validation").back()["best"]) << "else the run proves nothing";

  config.eval.valid = "";
  train(graph_, "store", config, run_, Existing::overwrite);

  EXPECT_EQ(bytes_of(run_ / "embeddings" / "embeddings.npy"), paused);
}

// ------------------------------------------------------------------------------------------------------- when it ends

class Patience : public Validated, public testing::WithParamInterface<int> {};

TEST_P(Patience, EndsARunThatGetsNoBetter) {
  Config config = config_of("complex");
  config.training.learning_rate = 0, config.training.schedule = "constant";
  config.training.epochs = 50, config.eval.patience = 3, config.run.ranks = GetParam();

  const TrainSummary summary = train(graph_, "store", config, run_, Existing::refuse);

  EXPECT_TRUE(summary.early);
  EXPECT_FALSE(summary.stopped);
  EXPECT_EQ(summary.validations, 4) << "the first is the best";
  EXPECT_EQ(summary.best_epoch, 1);
  EXPECT_EQ(metrics("end").back()["end"], "early");
  EXPECT_EQ(judged_from_files("complex").mrr, summary.best_mrr);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Patience, testing::Values(0, 1, 3));

TEST_F(Validated, EitherHalfOfLineHasItsOwnBest) {
  for (const int ranks : {0, 2}) {
    Config config = config_of("line");
    config.model.order = "both", config.training.learning_rate = 0, config.training.schedule = "constant";
    config.training.epochs = 9, config.eval.patience = 1, config.run.ranks = ranks;

    const TrainSummary summary = train(graph_, "store", config, run_, Existing::overwrite);

    EXPECT_EQ(summary.validations, 4) << "two of each half";
    EXPECT_TRUE(summary.early);
    const Embeddings embeddings = Embeddings::open(run_);
    for (const int first : {0, 4}) {
      double squares = 0;
      for (int c = first; c < first + 4; ++c) squares += double(embeddings.rows()(5, c)) * embeddings.rows()(5, c);
      EXPECT_NEAR(squares, 1, 1e-5) << "columns from " << first;
    }
  }
}

TEST_F(Validated, ARunThatDivergesLaterLeavesTheBestAndSaysSo) {
  Config config = config_of("distmult");
  config.training.optimizer = "sgd", config.training.learning_rate = 1e9, config.training.schedule = "constant";
  config.training.warm_up_share = 1, config.training.epochs = 1000, config.training.curvature_limit = 0;
  config.eval.every = 0.001;

  const std::string what =
      sentence_of(Fault::internal, [&] { train(graph_, "store", config, run_, Existing::refuse); });

  EXPECT_SAYS(what, "diverged");
  EXPECT_SAYS(what, "beside the best embeddings, of epoch");
  ASSERT_GE(metrics("validation").size(), 1u);
  double best = -1;
  for (const auto& line : metrics("validation")) best = std::max<double>(best, line["mrr"]);
  EXPECT_EQ(judged_from_files("distmult").mrr, best);
  EXPECT_EQ(metrics("end").back()["end"], "failed");
}

// ----------------------------------------------------------------------------------------------------------- what is
// asked

TEST_F(Validated, ASampleAndCandidatesAreAsAsked) {
  Config config = config_of("complex");
  config.training.epochs = 1, config.eval.sample = 2, config.eval.candidates = 7;

  train(graph_, "store", config, run_, Existing::refuse);

  EXPECT_EQ(metrics("validation").back()["queries"], 4);
  EXPECT_LE(metrics("validation").back()["mean_rank"], 8);
}

TEST_F(Validated, FurtherTrueTriplesAreNotRankedAgainst) {
  Config config = config_of("complex");
  config.training.epochs = 1;
  const double alone = train(graph_, "store", config, run_, Existing::refuse).best_mrr;
  std::string all;
  for (int a = 0; a < kPeople; ++a)
    for (int b = 0; b < kPeople; ++b) all += cat("p", a, "\tlikes\tp", b, "\n");
  config.eval.known = cat(train_file_.string(), ",", make("all.tsv", all).string());

  EXPECT_LT(alone, 1);
  EXPECT_EQ(train(graph_, "store", config, run_, Existing::overwrite).best_mrr, 1) << "no candidate is left";
}

TEST_F(Validated, AFileWithoutAKnownNameIsRefusedBeforeAnythingIsMade) {
  Config config = config_of("complex");
  config.eval.valid = make("strange.tsv", "x\tlikes\ty\n").string();

  EXPECT_SAYS(sentence_of(Fault::input, [&] { train(graph_, "store", config, run_, Existing::refuse); }),
              "no triple of known names");
  EXPECT_FALSE(fs::exists(run_));
}

}  // namespace
}  // namespace gs
