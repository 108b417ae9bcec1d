#include <gtest/gtest.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "tests/support/folder.hpp"

namespace gs {
namespace {

struct Outcome {
  int status = 0;
  std::string out, err;
};

class TripleCommands : public InFolder {
 protected:
  TripleCommands() { make("facts.tsv", "ann\tknows\tbob\nann\tlikes\tbob\nbob\tknows\tcas\nann\tknows\tbob\n"); }

  /// `graphscale graph ARGUMENTS` run by a shell inside the test's folder.
  Outcome graph(const std::string& arguments) {
    const int raw =
        std::system(cat("cd '", folder_.string(), "' && '", GS_BINARY, "' graph ", arguments, " >.out 2>.err").c_str());
    return {WIFEXITED(raw) ? WEXITSTATUS(raw) : -1, bytes_of(folder_ / ".out"), bytes_of(folder_ / ".err")};
  }
};

TEST_F(TripleCommands, IngestReportsTriplesAndRelations) {
  const Outcome outcome = graph("ingest facts.tsv --triples --out s");

  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* line :
       {"triples read: 4\n", "duplicate triples, merged: 1\n", "nodes: 3\n", "relations: 2\n", "\ntriples: 3\n"})
    EXPECT_SAYS(outcome.out, line);
}

TEST_F(TripleCommands, InfoNamesTheMostFrequentRelations) {
  graph("ingest facts.tsv --triples --out s");

  EXPECT_EQ(nlohmann::json::parse(graph("info s --json").out)["num_relations"], 2);
  const std::string text = graph("info s").out;
  EXPECT_SAYS(text, "3 (triples)");
  EXPECT_SAYS(text, "2, the most frequent: knows (2), likes (1)\n");
}

TEST_F(TripleCommands, RefusalsAreOneLineAndLeaveNothing) {
  make("bad.tsv", "a\tr\tb\nc\td\n");
  const std::vector<std::tuple<std::string, int, std::string>> cases = {
      {"facts.tsv --undirected", 2, "leave --undirected out"},
      {"facts.tsv --weighted", 2, "leave --weighted out"},
      {"facts.tsv --duplicates keep", 2, "leave --duplicates out"},
      {"bad.tsv", 3, "bad.tsv:2: expected 3 columns (head, relation, tail)"}};

  for (const auto& [arguments, status, says] : cases) {
    const Outcome outcome = graph("ingest --triples --out s " + arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_SAYS(outcome.err, says);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(fs::exists(folder_ / "s"));
  }
}

TEST_F(TripleCommands, SplitIsRefused) {
  graph("ingest facts.tsv --triples --out s");

  const Outcome outcome = graph("split s --out d");

  EXPECT_EQ(outcome.status, 3);
  EXPECT_SAYS(outcome.err, "split: the graph has relations");
  EXPECT_FALSE(fs::exists(folder_ / "d"));
}

}  // namespace
}  // namespace gs
