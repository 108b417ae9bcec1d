#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/support/folder.hpp"

namespace gs {
namespace {

struct Outcome {
  int status = 0;
  std::string out, err;
};

class GraphCommands : public InFolder {
 protected:
  /// `graphscale graph ARGUMENTS` run by a shell inside the test's folder.
  Outcome graph(const std::string& arguments, const std::string& before = "") {
    const int raw = std::system(
        cat("cd '", folder_.string(), "' && ", before, " '", GS_BINARY, "' graph ", arguments, " >.out 2>.err")
            .c_str());
    return {WIFEXITED(raw) ? WEXITSTATUS(raw) : -1, bytes_of(folder_ / ".out"), bytes_of(folder_ / ".err")};
  }
  std::vector<std::string> visible() const {
    std::vector<std::string> names = listing();
    names.erase(std::remove_if(names.begin(), names.end(),
                               [](const std::string& name) { return name == ".out" || name == ".err"; }),
                names.end());
    return names;
  }
};

TEST_F(GraphCommands, InfoDescribesAGeneratedGraphInOneJsonObject) {
  ASSERT_EQ(graph("generate ring --nodes 12 --out s").status, 0);

  const auto info = nlohmann::json::parse(graph("info s --json").out);

  EXPECT_EQ(info["num_nodes"], 12);
  EXPECT_EQ(info["num_edges"], 24);
  EXPECT_EQ(info["components"], 1);
  EXPECT_EQ(info["version"], "v0001");
}

TEST_F(GraphCommands, RollbackAndVersionsWorkTogether) {
  graph("generate ring --nodes 12 --out s");
  graph("generate star --nodes 9 --out s");

  EXPECT_SAYS(graph("versions s").out, "* v0002");
  EXPECT_EQ(graph("rollback s").status, 0);
  EXPECT_SAYS(graph("versions s").out, "* v0001");
  EXPECT_EQ(nlohmann::json::parse(graph("info s --json --version v0002").out)["num_nodes"], 9);
  EXPECT_EQ(graph("rollback s").status, 3);
}

TEST_F(GraphCommands, DiffComparesTheCurrentVersionWithItsParentOrTheOnesNamed) {
  make("one", "a b\nb c\n");
  make("two", "a b\nb d\n");
  graph("ingest one --out s");
  EXPECT_SAYS(graph("diff s").err, "s: version v0001 was made after no other");
  graph("ingest two --out s");

  const Outcome text = graph("diff s");
  const auto json = nlohmann::json::parse(graph("diff s v0002 v0001 --json --list 0").out);

  EXPECT_EQ(text.out,
            "store               s, version v0001 to v0002\n"
            "nodes               +1 -1 (3 to 3)\n"
            "arcs                +2 -2 (4 to 4), 0 with another weight\n"
            "+ node\td\n- node\tc\n+ arc\tb\td\n- arc\tb\tc\n");
  EXPECT_EQ(json["from"], "v0002");
  EXPECT_EQ(json["arcs"]["added"], 2);
  EXPECT_EQ(json["nodes"]["first_added"].size(), 0u);
  EXPECT_EQ(graph("diff s v0009").status, 3);
  EXPECT_EQ(graph("diff s --list -1").status, 2);
}

TEST_F(GraphCommands, GeneratedTextIngestedIsTheGeneratedGraph) {
  graph("generate rmat --nodes 3000 --edges 300000 --out direct");
  ASSERT_EQ(graph("generate rmat --nodes 3000 --edges 300000 --text edges.tsv --threads 2").status, 0);
  ASSERT_EQ(graph("generate rmat --nodes 3000 --edges 300000 --text again.tsv --threads 3").status, 0);
  EXPECT_EQ(bytes_of(folder_ / "edges.tsv"), bytes_of(folder_ / "again.tsv"));

  std::string all_nodes;
  for (int node = 0; node < 3000; ++node) all_nodes += cat(node, "\n");
  make("nodes.txt", all_nodes);
  ASSERT_EQ(graph("ingest edges.tsv --nodes nodes.txt --out ingested").status, 0);

  const auto direct = nlohmann::json::parse(graph("info direct --json").out);
  EXPECT_EQ(nlohmann::json::parse(graph("info ingested --json").out)["content_hash"], direct["content_hash"]);
}

TEST_F(GraphCommands, SplitWritesAWholeFolder) {
  graph("generate er --nodes 200 --edges 2000 --out s");

  ASSERT_EQ(graph("split s --out d --test-share 0.2 --keep-covered --seed 7").status, 0);

  const auto record = nlohmann::json::parse(bytes_of(folder_ / "d" / "split.json"));
  const std::string positives = bytes_of(folder_ / "d" / "positive.tsv");
  EXPECT_EQ(record["positives"], std::count(positives.begin(), positives.end(), '\n'));
  EXPECT_EQ(record["positives"], record["negatives"]);
  EXPECT_EQ(nlohmann::json::parse(graph("info d/train --json").out)["num_nodes"], 200);
  EXPECT_EQ(graph("split s --out d").status, 7);
}

TEST_F(GraphCommands, AFullDiskDuringASplitLeavesNothing) {
  graph("generate er --nodes 20000 --edges 200000 --out s");
  const auto before = visible();

  const Outcome outcome = graph("split s --out d", "ulimit -f 64 &&");

  EXPECT_EQ(outcome.status, 7);
  EXPECT_SAYS(outcome.err, "File too large");
  EXPECT_EQ(visible(), before);
}

TEST_F(GraphCommands, UnwritablePlacesAreRefusedAtOnce) {
  for (const char* place : {"--out /dev/full", "--out /no/such/dir/x", "--out /proc/x", "--text /dev/full"}) {
    const Outcome outcome = graph(cat("generate er --nodes 1000000 --edges 900000000 ", place));
    EXPECT_EQ(outcome.status, 7) << place << outcome.err;
  }
}

TEST_F(GraphCommands, NamesThatATsvCannotHoldAreRefused) {
  make("edges.csv", "\"#a\",b\n\"#a\",c\n");
  ASSERT_EQ(graph("ingest edges.csv --header no --out s").status, 0);

  const Outcome outcome = graph("split s --out d --test-share 0.5");

  EXPECT_EQ(outcome.status, 7);
  EXPECT_SAYS(outcome.err, "'#a' cannot be written");
  EXPECT_FALSE(fs::exists(folder_ / "d"));
}

TEST_F(GraphCommands, OptionsThatDoNotApplyAreRefused) {
  EXPECT_SAYS(graph("generate ring --nodes 5 --edges 3 --out s").err, "--edges does not apply to ring");
  EXPECT_SAYS(graph("generate er --nodes 5 --blocks 3 --out s").err, "--blocks does not apply to er");
  EXPECT_EQ(graph("generate er --nodes 5 --edges 5 --seed -1 --out s").status, 2);
  EXPECT_EQ(graph("generate er --nodes 5").status, 2);
  EXPECT_EQ(graph("generate er --nodes 5 --out s --text t").status, 2);
  EXPECT_EQ(graph("split s --out d --test-share 1.5").status, 3);  // no store
  EXPECT_TRUE(visible().empty());
}

}  // namespace
}  // namespace gs
