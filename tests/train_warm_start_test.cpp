// Rows that start from an earlier run's by name, new nodes among their neighbours, and rows that never move.
#include <map>

#include "graphscale/eval.hpp"

#include "tests/support/folder.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

using Vector = std::vector<float>;

class WarmStarted : public InFolder {
 protected:
  WarmStarted() { set_quiet(true); }
  ~WarmStarted() override { set_quiet(false); }

  Graph graph_of(const std::string& name, const std::string& edges, bool directed = false, bool triples = false) const {
    IngestOptions options;
    if (triples)
      options.triples = true;
    else
      options.directed = directed;
    IngestCounts counts;
    publish(folder_ / name, ingest({make(name + ".txt", edges)}, options, counts), "a test", 1);
    return Graph::open(folder_ / name);
  }

  std::string train_into(const std::string& run, const Graph& graph, const Config& config) const {
    train(graph, "store", config, folder_ / run, Existing::overwrite);
    return (folder_ / run).string();
  }

  std::map<std::string, Vector> vectors(const std::string& run, const char* table = "embeddings") const {
    const Embeddings embeddings = Embeddings::open(folder_ / run / table);
    std::map<std::string, Vector> named;
    for (Offset row = 0; row < embeddings.rows().count; ++row) {
      const float* const values = embeddings.rows().row(row);
      named[embeddings.names().name(row)] = Vector(values, values + embeddings.rows().dim);
    }
    return named;
  }

  static Config config(int ranks = 0) {
    Config config = small_config(8);
    config.run.device = "cpu", config.run.threads = 1, config.run.ranks = ranks;
    config.training.deterministic = true, config.training.learning_rate = 0.2;
    return config;
  }
  Config continued(const std::string& run, int ranks = 0) const {
    Config config = WarmStarted::config(ranks);
    config.start.warm_start = (folder_ / run).string();
    config.training.epochs = 0;  // what rows start from
    return config;
  }

  static constexpr const char* kRing = "a b\nb c\nc d\nd e\ne a\na c\n";
  /// new1 has two known neighbours, new2 a known and a new one, lone only new ones; hubs are new, so rows move.
  static constexpr const char* kGrown =
      "a b\nb c\nc d\nd e\ne a\na c\nnew1 a\nnew1 b\nnew2 c\nnew2 new1\nlone new2\nlone other\nother lone2\n"
      "new1 x1\nnew1 x2\nnew1 x3\nnew1 x4\n";
};

class OnRanks : public WarmStarted, public testing::WithParamInterface<int> {};

TEST_P(OnRanks, RowsAreFoundByNameAndNewOnesAmongTheirNeighbours) {
  train_into("old", graph_of("ring", kRing), config());
  const Graph grown = graph_of("grown", kGrown);
  Config cold = config(GetParam());
  cold.training.epochs = 0;
  train_into("cold", grown, cold);

  train_into("warm", grown, continued("old", GetParam()));

  const auto old = vectors("old"), cold_start = vectors("cold"), warm = vectors("warm");
  for (const char* known : {"a", "b", "c", "d", "e"}) EXPECT_EQ(warm.at(known), old.at(known)) << known;
  EXPECT_EQ(warm.at("new2"), old.at("c"));
  for (int c = 0; c < 8; ++c)
    EXPECT_FLOAT_EQ(warm.at("new1")[c], float((double(old.at("a")[c]) + double(old.at("b")[c])) / 2)) << "column " << c;
  for (const char* drawn : {"lone", "other", "lone2", "x1"}) EXPECT_EQ(warm.at(drawn), cold_start.at(drawn)) << drawn;
}

TEST_P(OnRanks, NewNodesMayStartAsDrawn) {
  train_into("old", graph_of("ring", kRing), config());
  const Graph grown = graph_of("grown", kGrown);
  Config cold = config(GetParam()), warm = continued("old", GetParam());
  cold.training.epochs = 0, warm.start.new_nodes = "random";

  train_into("cold", grown, cold), train_into("warm", grown, warm);

  EXPECT_EQ(vectors("warm").at("new1"), vectors("cold").at("new1"));
  EXPECT_EQ(vectors("warm").at("a"), vectors("old").at("a"));
}

TEST_P(OnRanks, FrozenNodesNeverMoveAndTheOthersDo) {
  const std::string old = train_into("old", graph_of("ring", kRing), config());
  const Graph grown = graph_of("grown", kGrown);
  Config warm = continued("old", GetParam());
  warm.training.epochs = 3, warm.start.frozen = make("frozen.txt", "a\nb\n# a comment\nc\nnobody\nlone\n").string();
  Config start = continued("old", GetParam());

  train_into("start", grown, start), train_into("warm", grown, warm);

  const auto before = vectors("start"), after = vectors("warm");
  for (const char* frozen : {"a", "b", "c", "lone"}) EXPECT_EQ(after.at(frozen), before.at(frozen)) << frozen;
  for (const char* free : {"d", "e", "new1", "new2", "other"}) EXPECT_NE(after.at(free), before.at(free)) << free;
}

TEST_P(OnRanks, AKnowledgeGraphsRelationsAreTakenToo) {
  Config config = default_config("complex");
  config.model.dim = 8, config.model.reciprocal = true, config.training.epochs = 2;
  config.run = WarmStarted::config(GetParam()).run;
  train_into("old", graph_of("facts", "a\tlikes\tb\nb\tknows\tc\nc\tlikes\ta\n", true, true), config);
  config.start.warm_start = (folder_ / "old").string(), config.training.epochs = 0;
  const Graph grown =
      graph_of("more", "a\tlikes\tb\nb\tknows\tc\nc\tlikes\ta\nn\thates\ta\nn\thates\tb\nc\tlikes\tm\nn\thates\tc\n",
               true, true);

  train_into("warm", grown, config);

  const auto relations = vectors("warm", "relations"), old = vectors("old", "relations");
  ASSERT_EQ(relations.size(), 6u);
  for (const auto& [name, vector] : old) EXPECT_EQ(relations.at(name), vector) << name;
  EXPECT_EQ(vectors("warm").at("m"), vectors("old").at("c")) << "by an arc into it";
  for (int c = 0; c < 8; ++c) {
    const auto& of = vectors("old");
    EXPECT_NEAR(vectors("warm").at("n")[c], (of.at("a")[c] + of.at("b")[c] + of.at("c")[c]) / 3, 1e-6);
  }
}

TEST_P(OnRanks, EitherHalfOfLineStartsFromItsOwn) {
  Config line = config(GetParam());
  line.model.kind = "line";
  const Graph graph = graph_of("ring", kRing);
  train_into("old", graph, line);
  line.start.warm_start = (folder_ / "old").string(), line.training.epochs = 0;

  train_into("warm", graph, line);

  for (const auto& [name, vector] : vectors("old"))
    for (std::size_t c = 0; c < 8; ++c) EXPECT_NEAR(vectors("warm").at(name)[c], vector[c], 1e-6) << name;
}

INSTANTIATE_TEST_SUITE_P(, OnRanks, testing::Values(0, 1, 3));

TEST_F(WarmStarted, SixteenBitRowsAreTheNearest) {
  train_into("old", graph_of("ring", kRing), config());
  Config half = continued("old");
  half.model.dtype = "fp16";

  train_into("warm", Graph::open(folder_ / "ring"), half);

  for (const auto& [name, vector] : vectors("old"))
    for (std::size_t c = 0; c < 8; ++c)
      EXPECT_NEAR(vectors("warm").at(name)[c], vector[c], std::abs(vector[c]) * 0x1p-11 + 1e-7) << name;
}

TEST_F(WarmStarted, GoesOnFromWhatWasLearnt) {
  GeneratorOptions blocks = block_model(300, 2400, 6, 0.95);
  publish(folder_ / "store", generate(blocks), "a test", 1);
  const Graph graph = Graph::open(folder_ / "store");
  Config config = WarmStarted::config();
  config.training.epochs = 10;
  train_into("old", graph, config);
  config.training.epochs = 1;
  const double cold = train(graph, "store", config, folder_ / "cold", Existing::overwrite).loss;
  config.start.warm_start = (folder_ / "old").string();

  const double warm = train(graph, "store", config, folder_ / "warm", Existing::overwrite).loss;

  EXPECT_LT(warm, 0.97 * cold);
}

// ----------------------------------------------------------------------------------------------------------- refusals

TEST_F(WarmStarted, WhatCannotBeStartedFromIsRefusedBeforeAnythingIsMade) {
  const Graph graph = graph_of("ring", kRing);
  train_into("old", graph, config());
  const auto refusal = [&](const Graph& of, const Config& config) {
    const std::string what =
        sentence_of(Fault::input, [&] { train(of, "store", config, folder_ / "run", Existing::refuse); });
    EXPECT_FALSE(fs::exists(folder_ / "run"));
    return what;
  };

  Config wider = continued("old");
  wider.model.dim = 9;
  EXPECT_SAYS(refusal(graph, wider), "its vectors have 8 columns, model.dim is 9");

  Config other = default_config("transe");
  other.model.dim = 8, other.start.warm_start = (folder_ / "old").string(), other.run.device = "cpu";
  EXPECT_SAYS(refusal(graph_of("facts", "a\tlikes\tb\n", true, true), other),
              "its model.kind is deepwalk, this run's transe");

  EXPECT_SAYS(refusal(graph, continued("nowhere")), "nowhere");

  Config frozen = config();
  frozen.start.frozen = make("frozen.txt", "x\ny\n").string();
  EXPECT_SAYS(refusal(graph, frozen), "none of its 2 lines names a node of the graph (first: \"x\")");
}

}  // namespace
}  // namespace gs
