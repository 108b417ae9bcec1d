// Runs the program itself: exit status, stdout, stderr.
#include "graphscale/cli.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "graphscale/checkpoint.hpp"

namespace gs {
namespace {

struct Outcome {
  int status = -1;
  std::string out, err;
};

class Cli : public testing::Test {
 protected:
  Cli() { fs::create_directories(folder_); }
  ~Cli() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// `graphscale ARGUMENTS`, as a shell reads them.
  Outcome run(const std::string& arguments) const {
    const std::string command = cat(GS_BINARY, " ", arguments, " >", path("stdout"), " 2>", path("stderr"));
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(path("stdout")), read_text(path("stderr"))};
  }

  /// The sentence of a run that must fail with that status in one line, without time and level.
  std::string sentence(int status, const std::string& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    const std::size_t level = outcome.err.find("error: ");
    EXPECT_NE(level, std::string::npos) << outcome.err;
    return level == std::string::npos ? "" : outcome.err.substr(level + 7, outcome.err.size() - level - 8);
  }

  /// A finished run's folder whose node i has the vector (i, 1).
  std::string make_run(const std::vector<std::string>& names) const {
    std::vector<char> bytes;
    std::vector<Offset> bounds{0};
    std::vector<float> values;
    for (const std::string& name : names) {
      bytes.insert(bytes.end(), name.begin(), name.end());
      values.push_back(float(bounds.size()) - 1), values.push_back(1);
      bounds.push_back(Offset(bytes.size()));
    }
    fs::create_directories(path("run"));
    save_embeddings(path("run/embeddings"), Rows<const float>(values.data(), Offset(names.size()), 2, 2),
                    *names_of_bytes(bytes, bounds));
    return path("run");
  }

  fs::path folder_ = fs::path(testing::TempDir()) /
                     cat("cli_", ::getpid(), "_", testing::UnitTest::GetInstance()->current_test_info()->name());
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// ------------------------------------------------------------------------------------------------------------- usage

TEST_F(Cli, SaysItsVersion) {
  const Outcome outcome = run("--version");

  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(contains(outcome.out, cat("graphscale ", kVersion))) << outcome.out;
}

TEST_F(Cli, HasTheVersionOfTheBuild) {
  const std::string cmake = read_text(fs::path(GS_TEST_DATA) / "../../CMakeLists.txt");

  EXPECT_TRUE(contains(cmake, cat("project(graphscale VERSION ", kVersion, " ")));
}

TEST_F(Cli, ExplainsItselfOnStdout) {
  for (const char* command : {"", "graph", "train", "eval", "query", "export", "options"}) {
    const Outcome outcome = run(cat(command, " --help"));

    EXPECT_EQ(outcome.status, 0);
    EXPECT_TRUE(contains(outcome.out, cat("Usage: graphscale", *command ? " " : "", command))) << outcome.out;
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(Cli, ListsItsCommandsWhereNoneIsGiven) {
  for (const char* command : {"", "graph", "eval"}) {
    const Outcome outcome = run(command);

    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(contains(outcome.err, "Commands:")) << outcome.err;
  }
}

TEST_F(Cli, NamesTheNearestCommandAndOption) {
  EXPECT_EQ(sentence(2, "trian"), "graphscale: unknown command trian; did you mean train?");
  EXPECT_EQ(sentence(2, "graph ingst"), "graphscale graph: unknown command ingst; did you mean ingest?");
  EXPECT_EQ(sentence(2, "query --metrc dot"), "graphscale query: unknown option --metrc; did you mean --metric?");
  EXPECT_EQ(sentence(2, "query --zzz"), "graphscale query: unknown option --zzz; see `graphscale query --help`");
}

TEST_F(Cli, NamesWhatIsMissing) {
  EXPECT_EQ(sentence(2, "query"), "graphscale query: RUN is required; see `graphscale query --help`");
  EXPECT_EQ(sentence(2, "query x y -k"), "graphscale query: -k needs a value; see `graphscale query --help`");
}

TEST_F(Cli, KeepsAnErrorOnOneLine) {
  EXPECT_EQ(sentence(3, "query \"$(printf 'no\\nsuch\\177')\" y").substr(0, 16), "no\\x0Asuch\\x7F: ");
}

TEST_F(Cli, FailsWhereStdoutDoesNotTakeItsData) {
  const std::string binary = GS_BINARY;
  const auto status_of = [&](const std::string& command) {
    return WEXITSTATUS(std::system(("exec 2>" + path("stderr") + "; " + command).c_str()));
  };

  EXPECT_EQ(status_of(binary + " --version >/dev/full"), 7);
  EXPECT_TRUE(contains(read_text(path("stderr")), "No space left on device"));
  EXPECT_EQ(status_of(binary + " options >/dev/full"), 7);  // more than stdout's buffer holds: fails before its end
  EXPECT_EQ(status_of(binary + " options >&-"), 7);

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);  // the reader went away
  ASSERT_EQ(::dup2(ends[1], 9), 9);
  EXPECT_EQ(status_of(binary + " options >&9"), 7);
  ::close(ends[1]), ::close(9);
}

// ------------------------------------------------------------------------------------------------------------- train

class CliTrain : public Cli {
 protected:
  /// All of these are refused before the graph, which does not exist, is looked for.
  std::string refusal(const std::string& arguments) const {
    return sentence(2, cat("train --graph ", path("nosuch"), " --out ", path("run"), " ", arguments));
  }
};

TEST_F(CliTrain, HasAFlagForEveryOption) {
  const Outcome outcome = run("train --help");

  for (const char* text : {"Section sampler:", "--walk-length N", "[default 40; 2 to 1024 nodes]", "--deterministic [",
                           "--set SECTION.NAME=VALUE", "--config FILE"})
    EXPECT_TRUE(contains(outcome.out, text)) << text;
}

TEST_F(CliTrain, NamesTheNearestFlag) {
  EXPECT_EQ(refusal("--dims 64"), "graphscale train: unknown option --dims; did you mean --dim?");
  EXPECT_EQ(refusal("--sampler.walk_lenth 64"),
            "graphscale train: unknown option --sampler.walk_lenth; did you mean --sampler.walk_length?");
  EXPECT_EQ(refusal("--set model.dims=64"), "--set model.dims: no such option; did you mean model.dim?");
}

TEST_F(CliTrain, RefusesAValueThatDoesNotFit) {
  EXPECT_EQ(refusal("--epochs=-1"), "--epochs: -1 is out of range; expected 0 to 1000000 epochs");
  EXPECT_EQ(refusal("--epochs -1"), "--epochs: -1 is out of range; expected 0 to 1000000 epochs");
  EXPECT_EQ(refusal("--model.dim 64.5"), "--model.dim: 64.5 is not an integer");
  EXPECT_EQ(refusal("--set training.seed=x"), "--set training.seed: x is not an integer");
  EXPECT_EQ(refusal("--deterministic=maybe"),
            "--deterministic: \"maybe\" is no boolean; expected true, false, yes, no, 1, 0, on or off");
}

TEST_F(CliTrain, RefusesAFlagWithoutItsValue) {
  EXPECT_EQ(refusal("--learning-rate"),
            "graphscale train: --learning-rate needs a value; see `graphscale train --help`");
  EXPECT_EQ(refusal("--set dim"), "--set dim: expected SECTION.NAME=VALUE, as in model.dim=64");
}

TEST_F(CliTrain, RefusesAnOptionGivenTwice) {
  EXPECT_EQ(refusal("--dim 3 --dim 3"), "--dim: model.dim was set by --dim before; set it once");
  EXPECT_TRUE(contains(refusal("--dim 3 --set model.dim=4"), "set it once"));
}

TEST_F(CliTrain, RefusesAContradiction) {
  EXPECT_TRUE(contains(refusal("--deterministic --device cuda"), "training.deterministic contradicts run.device cuda"));
}

TEST_F(CliTrain, RefusesABadFileBeforeReadingTheGraph) {
  write_text(path("c.json"), R"({"training": {"lerning_rate": 0.5}})");

  EXPECT_EQ(refusal("--config " + path("c.json")),
            path("c.json") + ": /training/lerning_rate: no such option; did you mean training.learning_rate?");
}

// ------------------------------------------------------------------------------------------------ options and export

TEST_F(Cli, ListsOptions) {
  EXPECT_TRUE(contains(run("options").out, "model.dim (--dim), integer, 1 to 2048 columns, default 128"));
  EXPECT_TRUE(nlohmann::json::parse(run("options --json").out).is_array());
  EXPECT_TRUE(nlohmann::json::parse(run("options --json-schema").out).contains("properties"));
  EXPECT_NE(sentence(2, "options --json --json-schema"), "");
}

TEST_F(Cli, ExportsEveryFormat) {
  const std::string folder = make_run({"a", "b"});

  for (const char* format : {"npy", "word2vec", "word2vec-binary", "safetensors"}) {
    const Outcome outcome = run(cat("export ", folder, " --format ", format, " --out ", path(format)));

    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(fs::exists(path(format)));
  }
  EXPECT_EQ(read_text(path("word2vec")), "2 2\na 0 1\nb 1 1\n");
}

TEST_F(Cli, ExportsANameWithABlankOnlyEscaped) {
  const std::string export_it = cat("export ", make_run({"New York", "x"}), " --format word2vec --out ", path("out"));

  EXPECT_TRUE(contains(sentence(3, export_it), "the node \"New York\" (row 0) has a blank in it"));
  EXPECT_FALSE(fs::exists(path("out")));
  EXPECT_EQ(run(export_it + " --escape").status, 0);
  EXPECT_EQ(read_text(path("out")), "2 2\nNew%20York 0 1\nx 1 1\n");
}

TEST_F(Cli, ExportsToNowhereWithTheStatusOfOutput) {
  const std::string export_it = "export " + make_run({"a"}) + " --format word2vec --out ";

  EXPECT_NE(sentence(7, export_it + path("no/such")), "");
  EXPECT_NE(sentence(7, export_it + "/dev/full"), "");
}

// ------------------------------------------------------------------------------------------------------------- query

TEST_F(Cli, AnswersAQueryInText) {
  const Outcome outcome = run("query " + make_run({"a", "b", "c"}) + " a b -k 1 --metric l2");

  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "# a: l2, smaller is nearer\nb\t1\n\n# b: l2, smaller is nearer\na\t1\n");
}

TEST_F(Cli, AnswersAQueryInJson) {
  const auto answer =
      nlohmann::json::parse(run("query " + make_run({"a", "b", "\xFF"}) + " a --metric dot --json").out);

  EXPECT_EQ(answer["metric"], "dot");
  EXPECT_EQ(answer["larger_is_nearer"], true);
  ASSERT_EQ(answer["queries"].size(), 1u);
  EXPECT_EQ(answer["queries"][0]["name"], "a");
  EXPECT_EQ(answer["queries"][0]["neighbours"].size(), 2u);
  EXPECT_EQ(answer["queries"][0]["neighbours"][1]["row"], 2);
}

TEST_F(Cli, NamesSimilarNodesForAnUnknownOne) {
  const std::string what = sentence(3, "query " + make_run({"dog.n.01", "guitar.n.01"}) + " dgo.n.01");

  EXPECT_TRUE(contains(what, "no node is named \"dgo.n.01\"; names like it: dog.n.01")) << what;
}

TEST_F(Cli, TakesAnyNameForAName) {
  const std::vector<std::string> names{"train", "[a,b]", "{}", "-5", "--json", "%%", "[]", "x]", "a=b", ""};
  std::string quoted;
  for (const std::string& name : names) quoted += " '" + name + "'";

  const auto answer = nlohmann::json::parse(run("query --json " + make_run(names) + " --" + quoted).out);

  ASSERT_EQ(answer["queries"].size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(answer["queries"][i]["name"], names[i]);
}

TEST_F(Cli, TakesAnyNumberOfNeighboursButANegativeOne) {
  const std::string query = "query " + make_run({"a", "b"}) + " a -k ";

  EXPECT_EQ(run(query + "0").out, "# a: cosine, larger is nearer\n");
  EXPECT_EQ(run(query + "99").out.substr(0, 32), "# a: cosine, larger is nearer\nb\t");
  EXPECT_EQ(sentence(2, query + "-1"), "-k: -1 is negative; expected 0 or more");
}

}  // namespace
}  // namespace gs
