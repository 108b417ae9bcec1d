// Mishaps that users of other tools reported (field_reports.md), end to end: what is trained, saved, judged and asked.
// O10 to O34.
#include <set>
#include <sstream>

#include "tests/support/embeddings_folder.hpp"
#include "tests/support/program.hpp"

namespace gs {
namespace {

class FieldReport : public WithProgram {
 protected:
  void ingest(const std::string& text, const std::string& options = "") {
    make("edges.txt", text);
    succeed("graph ingest edges.txt --out s " + options);
  }

  Outcome train(const std::string& options = "") const {
    return succeed("train --graph s --out r --overwrite --device cpu " + options);
  }

  static std::string circle_of_triples(int entities) {
    std::string text;
    for (int i = 0; i < entities; ++i) text += cat("e", i, "\tnext\te", (i + 1) % entities, "\n");
    return text;
  }

  std::string array(const std::string& run) const { return bytes_of(folder_ / run / "embeddings" / "embeddings.npy"); }

  static void expect_finite(const Vectors& vectors) {
    for (const auto& [name, vector] : vectors)
      for (const float value : vector) EXPECT_TRUE(std::isfinite(value)) << name;
  }

  /// A word2vec text file by name, as exported with --escape.
  Vectors word2vec(const std::string& file, std::string* header = nullptr) const {
    std::istringstream in(bytes_of(folder_ / file));
    std::string line, name, value;
    Vectors vectors;
    std::getline(in, line);
    if (header) *header = line;
    while (std::getline(in, line)) {
      std::istringstream fields(line);
      fields >> name;
      std::string plain;
      for (std::size_t i = 0; i < name.size(); ++i)
        if (name[i] == '%')
          plain += char(std::stoi(name.substr(i + 1, 2), nullptr, 16)), i += 2;
        else
          plain += name[i];
      while (fields >> value) vectors[plain].push_back(std::strtof(value.c_str(), nullptr));
    }
    return vectors;
  }
};

// ---------------------------------------------------------------------------------------------------------- numerics

TEST_F(FieldReport, O10DivergenceStopsTheRunAndSpoilsNothing) {
  succeed("graph generate er --nodes 100 --edges 400 --out s");
  train("--dim 8");
  const std::string vectors = array("r");

  for (const char* run : {"r --overwrite", "fresh"}) {
    const std::string what =
        refusal(1, cat("train --graph s --device cpu --learning-rate 1e6 --curvature-limit 0 ", "--dim 8 --out ", run));
    EXPECT_SAYS(what, "training diverged at step ");
    EXPECT_SAYS(what, "learning rate ");
  }

  EXPECT_EQ(array("r"), vectors);
  EXPECT_FALSE(fs::exists(folder_ / "fresh" / "embeddings"));
}

TEST_F(FieldReport, O10HalfPrecisionDivergesAsLoudlyAndStaysFiniteOnSaturatedPairs) {
  succeed("graph generate er --nodes 100 --edges 400 --out s");
  for (const char* type : {"fp16", "bf16"})
    EXPECT_SAYS(refusal(1, cat("train --graph s --device cpu --learning-rate 1e6 --curvature-limit 0 --max-row-step 0 ",
                               "--dim 8 --out r --dtype ", type)),
                "training diverged at step ");
  EXPECT_FALSE(fs::exists(folder_ / "r" / "embeddings"));

  fs::remove_all(folder_ / "s"), ingest("a b\n");
  for (const char* type : {"fp16", "bf16"}) {
    train(cat("--dim 8 --walks-per-node 2000 --dtype ", type));
    expect_finite(vectors("r"));
  }
}

TEST_F(FieldReport, O10TransEAtAnAbsurdRateStopsOrStaysFinite) {
  make("triples.tsv", circle_of_triples(20));
  succeed("graph ingest triples.tsv --triples --out s");

  const Outcome tried = run("train --graph s --device cpu --kind transe --learning-rate 5 --dim 8 --out tried");
  if (tried.status == 0) {
    expect_finite(vectors("tried")), expect_finite(vectors("tried/relations"));
  } else {
    EXPECT_SAYS(tried.err, "training diverged at step ");
    EXPECT_FALSE(fs::exists(folder_ / "tried" / "embeddings"));
  }
  for (const char* kind : {"transe", "distmult", "complex", "rotate"}) {
    const std::string what = refusal(1, cat("train --graph s --device cpu --optimizer sgd --learning-rate 1e9 --dim 8 ",
                                            "--schedule constant --epochs 1000 --out r --kind ", kind));
    EXPECT_SAYS(what, "training diverged at step ");
    EXPECT_FALSE(fs::exists(folder_ / "r" / "embeddings")) << kind;
  }
}

const std::string kFourNodes = "x y 3\ny x 3\ny z 1\nz y 1\nz w 4\nw z 4\n";

TEST_F(FieldReport, O11ATinyGraphWithMoreThreadsThanNodesStaysFinite) {
  ingest(kFourNodes, "--weighted --directed");

  train("--dim 128 --threads 40 --walks-per-node 1000");

  expect_finite(vectors("r"));
  const auto answer = json("query r x -k 3");
  ASSERT_EQ(answer["queries"][0]["neighbours"].size(), 3u);
  for (const auto& near : answer["queries"][0]["neighbours"])
    EXPECT_LE(std::abs(near["score"].get<double>()), 1) << "a cosine of finite vectors";
}

TEST_F(FieldReport, O11BothOrdersOfLineOnATinyGraphStayFiniteAndOfLengthOne) {
  ingest(kFourNodes, "--weighted --directed");
  for (const char* epochs : {"2500", "0"}) {
    train(cat("--kind line --dim 128 --threads 40 --epochs ", epochs));

    for (const auto& [name, vector] : vectors("r"))
      for (const std::size_t first : {0, 64}) {
        double squares = 0;
        for (std::size_t c = first; c < first + 64; ++c) squares += double(vector[c]) * vector[c];
        EXPECT_TRUE(std::abs(squares - 1) < 1e-4 || squares == 0) << name << ": " << squares;
      }
  }
}

TEST_F(FieldReport, O11NoEpochsWriteTheVectorsAsDrawn) {
  ingest(kFourNodes, "--weighted --directed");

  EXPECT_EQ(train("--dim 128 --epochs 0").status, 0);

  const Vectors drawn = vectors("r");
  EXPECT_EQ(drawn.size(), 4u);
  for (const auto& [name, vector] : drawn)
    for (const float value : vector) EXPECT_LE(std::abs(value), 0.5 / 128) << name;
}

TEST_F(FieldReport, O12TheSameSeedInTwoProcessesIsTheSameBytes) {
  succeed("graph generate er --nodes 500 --edges 3000 --out s");
  const auto bytes = [&](const std::string& options) {
    train("--dim 8 " + options);
    return array("r");
  };

  const std::string one_thread = bytes("--threads 1");

  EXPECT_EQ(bytes("--threads 1"), one_thread);
  EXPECT_NE(bytes("--threads 1 --seed 2"), one_thread);
  EXPECT_EQ(bytes("--threads 8 --deterministic"), bytes("--threads 3 --deterministic"));
  EXPECT_SAYS(bytes_of(folder_ / "r" / "config.json"), "\"seed\": 1");
}

// ------------------------------------------------------------------------------------------------- saving and export

TEST_F(FieldReport, O23NamesWithBlanksComeBackFromWord2VecTextBitEqual) {
  ingest("New York\tLos Angeles\nLos Angeles\tna\xc3\xafve\nna\xc3\xafve\tx\nx\tNew York\n");
  train("--dim 3");

  EXPECT_SAYS(refusal(3, "export r --format word2vec --out v.txt"), "has a blank in it");
  succeed("export r --format word2vec --escape --out v.txt");

  std::string header;
  const Vectors back = word2vec("v.txt", &header), trained = vectors("r");
  EXPECT_EQ(header, "4 3");
  ASSERT_EQ(back.size(), 4u);
  for (const auto& [name, vector] : trained) EXPECT_TRUE(same_bits(back.at(name), vector)) << name;
}

TEST_F(FieldReport, O23ALoneBlankThatLooksEmptyKeepsItsRow) {
  ingest("\xc2\xa0\tx\nx\ty\n");  // a no-break space
  train("--dim 3");

  succeed("export r --format word2vec --escape --out v.txt");

  std::string header;
  EXPECT_EQ(word2vec("v.txt", &header).size(), 3u);
  EXPECT_EQ(header, "3 3");
  EXPECT_EQ(word2vec("v.txt").count("\xc2\xa0"), 1u);
}

TEST_F(FieldReport, O24EveryRowIsTheNodeThatItsNameSays) {
  std::vector<std::string> lines{"z1\ta1\n"};
  for (const char clique : {'z', 'a'})
    for (int i = 1; i <= 5; ++i)
      for (int j = 1; j < i; ++j) lines.push_back(cat(clique, i, "\t", clique, j, "\n"));
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) text += lines[i * 8 % lines.size()];  // 21 lines: each once
  ingest(text);
  std::string of_one_rank;

  for (const std::string ranks : {"1", "2"}) {
    train("--dim 16 --window 2 --walk-length 10 --walks-per-node 200 --deterministic --ranks " + ranks);
    succeed("export r --format word2vec --out v.txt");

    const std::string names = bytes_of(folder_ / "r" / "embeddings" / "names.txt");
    std::string order;
    std::istringstream exported(bytes_of(folder_ / "v.txt"));
    std::string line;
    std::getline(exported, line);
    while (std::getline(exported, line)) order += line.substr(0, line.find(' ')) + "\n";
    EXPECT_EQ(order, names);
    if (ranks == "1") of_one_rank = names;
    EXPECT_EQ(names, of_one_rank);
    const NpyArray npy(folder_ / "r" / "embeddings" / "embeddings.npy");
    EXPECT_EQ(npy.dtype(), Dtype::f32);
    EXPECT_EQ(npy.shape(), (std::vector<Offset>{10, 16}));
    for (const Vectors& table : {vectors("r"), word2vec("v.txt")}) {
      double inside = 0, across = 0;  // means of 20 and 25 pairs
      for (const auto& [a, u] : table)
        for (const auto& [b, v] : table)
          if (a < b) (a[0] == b[0] ? inside : across) += cosine(u, v) / (a[0] == b[0] ? 20 : 25);
      EXPECT_GT(inside, across + 0.2) << ranks;
    }
    fs::remove(folder_ / "v.txt");
  }
}

TEST_F(FieldReport, O25AFinishedRunIsLeftAsItIsAndMoreEpochsGoOn) {
  succeed("graph generate er --nodes 50 --edges 200 --out s");
  const std::string train_it = "train --graph s --out r --device cpu --dim 4 --epochs 3 ";
  const std::string resume = "train --graph s --out r --resume ";
  succeed(train_it);
  const std::string whole = array("r");
  make("edges", "1\t2\n5\t7\n9\t4\n");
  make("pairs", "1\t40\n5\t37\n9\t24\n");
  const auto scores = [&](const fs::path& vectors) {
    return succeed(cat("eval link '", vectors.string(), "' --positive edges --negative pairs")).out;
  };

  EXPECT_SAYS(refusal(7, train_it), "holds the embeddings of an earlier");
  EXPECT_SAYS(succeed(train_it + "--resume").err, "the run is complete");
  EXPECT_SAYS(refusal(3, resume + "--dim 8"), "model.dim is 4, now 8");
  EXPECT_SAYS(refusal(3, resume + "--kind line"), "model.kind is deepwalk, now line");
  EXPECT_SAYS(refusal(3, resume + "--epochs 2"), "has done 3 epochs, training.epochs is now 2");
  EXPECT_EQ(array("r"), whole);
  EXPECT_EQ(scores(list_checkpoints(folder_ / "r").at(0)), scores("r"));

  EXPECT_SAYS(succeed(resume + "--epochs 5").err, "training.epochs was 3, is now 5");
  EXPECT_EQ(newest_sound(folder_ / "r")->state().walks, 5 * 50 * 10);
  EXPECT_NE(array("r"), whole);

  succeed("graph generate er --nodes 50 --edges 190 --out t");
  EXPECT_SAYS(refusal(3, "train --graph t --out r --resume --epochs 7"), "is of graph version v0001 with content ");
}

// ------------------------------------------------------------------------------------------------ negatives, judging

TEST_F(FieldReport, O28GraphsWithoutNegativesTrainAndAreJudgedOrRefused) {
  const std::string complete = "0 1\n0 2\n0 3\n0 4\n1 2\n1 3\n1 4\n2 3\n2 4\n3 4\n";
  std::string star;
  for (int leaf = 1; leaf <= 30; ++leaf) star += cat("0 ", leaf, "\n");
  for (const std::string& edges : {complete, std::string("0 1\n"), std::string("0 0\n"), star}) {
    ingest(edges);

    train("--dim 4 --negatives 5");

    expect_finite(vectors("r"));
  }
  fs::remove_all(folder_ / "s");
  ingest(complete);
  const Outcome split = run("graph split s --out d --test-share 0.3");
  EXPECT_EQ(split.status, 0);
  EXPECT_SAYS(split.err, "only 0 non-edges exist");
  EXPECT_EQ(bytes_of(folder_ / "d" / "negative.tsv"), "");
}

TEST_F(FieldReport, O28TriplesWithoutNegativesTrainAndAreRanked) {
  std::string complete;
  for (int a = 0; a < 5; ++a)
    for (int b = 0; b < 5; ++b) complete += cat(a, "\tknows\t", b, "\n");
  for (const std::string& triples : {complete, std::string("0\tknows\t1\n"), std::string("0\tknows\t0\n")}) {
    make("triples.tsv", triples);
    fs::remove_all(folder_ / "s"), succeed("graph ingest triples.tsv --triples --out s");
    for (const char* kind : {"transe", "complex"}) {
      train(cat("--dim 4 --filter-negatives yes --kind ", kind));

      expect_finite(vectors("r"));
      const auto answer = json("eval rank r --test triples.tsv --known triples.tsv --negatives 1000");
      EXPECT_EQ(answer["nan_answers"], 0);
      if (triples == complete) {
        EXPECT_EQ(answer["filtered"]["mrr"], 1) << "no candidate is left";
      }
    }
  }
}

TEST_F(FieldReport, O28NegativesOfASplitAreNoEdgesInEitherDirection) {
  succeed("graph generate er --nodes 60 --edges 600 --out s");
  succeed("graph split s --out d --test-share 0.2 --seed 3");
  succeed("graph generate er --nodes 60 --edges 600 --text edges.tsv");
  const auto pairs_of = [&](const char* file) {
    std::istringstream in(bytes_of(folder_ / file));
    std::multiset<std::pair<int, int>> pairs;
    for (int a, b; in >> a >> b;) pairs.insert(std::minmax(a, b));
    return pairs;
  };

  const auto edges = pairs_of("edges.tsv"), negatives = pairs_of("d/negative.tsv");

  EXPECT_GT(negatives.size(), 50u);
  for (const auto& pair : negatives) {
    EXPECT_EQ(edges.count(pair), 0u) << pair.first << " " << pair.second;
    EXPECT_EQ(negatives.count(pair), 1u) << pair.first << " " << pair.second;
  }
}

TEST_F(FieldReport, O26AConstantModelHasAnAucOfOneHalf) {
  make_embeddings(folder_, {{"a", {1}}, {"b", {1}}, {"c", {1}}, {"d", {1}}});
  make("positive.tsv", "a\tb\nb\tc\n");
  make("negative.tsv", "a\tc\na\td\n");

  EXPECT_EQ(json("eval link embeddings.npy --positive positive.tsv --negative negative.tsv")["auc"], 0.5);
}

TEST_F(FieldReport, O27UnknownNodesAreCountedAndNamed) {
  make_embeddings(folder_, {{"a", {1}}, {"b", {2}}, {"c", {3}}});
  make("positive.tsv", "a\tb\na\tzeta\n");
  make("negative.tsv", "a\tc\n");

  const Outcome outcome = succeed("eval link embeddings.npy --positive positive.tsv --negative negative.tsv --json");

  EXPECT_EQ(nlohmann::json::parse(outcome.out)["unknown_pairs"], 1);
  EXPECT_SAYS(outcome.err, "zeta");
}

// ---------------------------------------------------------------------------------------------------------- settings

TEST_F(FieldReport, O29MisspeltAndMisplacedSettingsAreRefusedBeforeTheGraphIsRead) {
  const std::string train_it = "train --graph nosuch --out r ";
  for (const auto& [config, part] : std::vector<std::pair<const char*, const char*>>{
           {R"({"training": {"lerning_rate": 0.5}})", "did you mean training.learning_rate?"},
           {R"({"model": {"dim": 64.5}})", "/model/dim: 64.5"},
           {R"({"model": {"dim": "64"}})", "/model/dim: "},
           {R"({"training": {"dim": 64}})", "model.dim"},
           {R"({"model": {"dim": 64, "dim": 32}})", "twice"}}) {
    make("c.json", config);
    EXPECT_SAYS(refusal(2, train_it + "--config c.json"), part);
  }
  EXPECT_SAYS(refusal(2, train_it + "--dims 64"), "--dim");
  EXPECT_SAYS(refusal(2, train_it + "--epochs=-1"), "--epochs: -1");
  EXPECT_SAYS(refusal(2, train_it + "--learning-rate"), "needs a value");
}

TEST_F(FieldReport, O29AnOptionThatTheModelDoesNotReadIsWarnedOf) {
  succeed("graph generate ring --nodes 20 --out s");

  EXPECT_SAYS(train("--kind line --dim 8 --p 2").err, "warning: sampler.p 2 has no effect: model.kind line");
  EXPECT_FALSE(says(train("--kind node2vec --dim 8 --p 2").err, "no effect"));
}

TEST_F(FieldReport, O30EveryDimensionIsTrainedAndExportedAsAsked) {
  succeed("graph generate ring --nodes 20 --out s");

  for (const int dim : {1, 3, 10, 100, 768, 1100, 2048}) {
    train(cat("--walks-per-node 2 --dim ", dim));

    for (const auto& [name, vector] : vectors("r")) {
      ASSERT_EQ(int(vector.size()), dim);
      EXPECT_NE(vector.back(), 0) << name;
    }
  }
  for (const char* dim : {"0", "2049"})
    EXPECT_SAYS(refusal(2, cat("train --graph s --out q --dim ", dim)), "expected 1 to 2048 columns");
}

TEST_F(FieldReport, O30SoIsEveryDimensionOfEveryModelOrSaidAtTheStart) {
  make("triples.tsv", circle_of_triples(12));
  succeed("graph ingest triples.tsv --triples --out s");
  const auto expect_full = [&](int dim, const std::string& kind) {
    train(cat("--epochs 3 --dim ", dim, " --kind ", kind));
    for (const auto& [name, vector] : vectors("r")) {
      ASSERT_EQ(int(vector.size()), dim) << kind;
      EXPECT_NE(vector.back(), 0) << kind << " " << name;
    }
  };

  for (const int dim : {1, 3, 10, 100, 768, 1100})
    for (const char* kind : {"line --order second", "transe", "distmult"}) expect_full(dim, kind);
  for (const int dim : {2, 8, 768, 1100})
    for (const char* kind : {"line", "complex", "rotate"}) expect_full(dim, kind);
  for (const char* kind : {"complex", "rotate", "line"})
    EXPECT_SAYS(refusal(2, cat("train --graph s --out q --dim 7 --kind ", kind)), "even number");
}

// ------------------------------------------------------------------------------------------------------------- query

TEST_F(FieldReport, O33AnswersLeaveOutTheQueriedNodeAloneWhateverItsTwins) {
  make_embeddings(folder_, {{"n1", {1, 0}}, {"n2", {1, 0}}, {"n3", {3, 0}}, {"n4", {0, 1}}, {"z", {0, 0}}});
  const auto answer = [&](const std::string& arguments) {
    std::vector<std::string> names;
    const auto answered = json("query embeddings.npy " + arguments);
    for (const auto& near : answered["queries"][0]["neighbours"]) {
      EXPECT_TRUE(near["score"].is_number()) << "NaN is null in JSON";
      names.push_back(near["name"]);
    }
    return names;
  };
  using Names = std::vector<std::string>;

  EXPECT_EQ(answer("n2 -k 2 --metric dot"), (Names{"n3", "n1"}));
  EXPECT_EQ(answer("n2 -k 2"), (Names{"n1", "n3"})) << "equal cosines: by ascending row";
  EXPECT_EQ(answer("n2 -k 0"), Names{});
  EXPECT_EQ(answer("n2 -k 99").size(), 4u);
  EXPECT_EQ(answer("z -k 4").size(), 4u);
  EXPECT_SAYS(refusal(3, "query embeddings.npy n22"), "names like it: n2");
}

TEST_F(FieldReport, O34ScoresAreThoseOfTheMetricThatIsNamed) {
  make_embeddings(folder_, {{"q", {1, 0}}, {"A", {10, 10}}, {"B", {0.9f, 0.1f}}, {"C", {2, 0}}});
  const auto expect = [&](const char* metric, bool larger, std::vector<std::pair<const char*, double>> expected) {
    const auto answer = json(cat("query embeddings.npy q --metric ", metric));
    EXPECT_EQ(answer["metric"], metric);
    EXPECT_EQ(answer["larger_is_nearer"], larger);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(answer["queries"][0]["neighbours"][i]["name"], expected[i].first) << metric;
      EXPECT_NEAR(answer["queries"][0]["neighbours"][i]["score"].get<double>(), expected[i].second, 5e-5) << metric;
    }
  };

  expect("dot", true, {{"A", 10}, {"C", 2}, {"B", 0.9}});
  expect("cosine", true, {{"C", 1}, {"B", 0.9939}, {"A", 0.7071}});
  expect("l2", false, {{"B", 0.1414}, {"C", 1}, {"A", 13.4536}});
}

}  // namespace
}  // namespace gs
