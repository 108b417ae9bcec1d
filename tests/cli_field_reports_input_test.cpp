// Mishaps that users of other tools reported (field_reports.md), end to end: what goes in. O1 to O9.
#include "tests/support/compressed.hpp"
#include "tests/support/program.hpp"

namespace gs {
namespace {

class FieldReportInput : public WithProgram {
 protected:
  /// Ingests the text into the store "s" and describes it.
  nlohmann::json ingested(const std::string& text, const std::string& options = "", const char* file = "edges.txt") {
    make(file, text);
    fs::remove_all(folder_ / "s");
    said_ = succeed(cat("graph ingest ", file, " --out s ", options));
    return json("graph info s");
  }

  std::string refused(const std::string& text, const std::string& options = "", const char* file = "edges.txt") {
    make(file, text);
    fs::remove_all(folder_ / "s");
    const std::string what = refusal(3, cat("graph ingest ", file, " --out s ", options));
    EXPECT_FALSE(fs::exists(folder_ / "s")) << "something usable was left behind";
    return what;
  }

  /// The names of the store's nodes, in the order of their bytes, as training gives them out.
  std::vector<std::string> names() {
    succeed("train --graph s --out r --device cpu --dim 3 --overwrite --epochs 0");
    std::vector<std::string> names;
    for (const auto& [name, vector] : vectors("r")) names.push_back(name);
    return names;
  }

  Outcome said_;  // by the last ingest
};

using Names = std::vector<std::string>;

TEST_F(FieldReportInput, O1CommentsAndBlankLinesAreSkippedAndCounted) {
  const auto info = ingested(
      "# Directed graph\n# Nodes: 3 Edges: 3\n# FromNodeId\tToNodeId\n0\t1\n\n%% konect style\n1\t2\n   \n2\t0\n",
      "--directed");

  EXPECT_EQ(info["num_nodes"], 3);
  EXPECT_EQ(info["num_edges"], 3);
  EXPECT_SAYS(said_.out, "lines skipped (blank, comment): 6");
  EXPECT_EQ(names(), (Names{"0", "1", "2"}));
}

TEST_F(FieldReportInput, O1AHeaderIsNoEdgeAndIsAnnounced) {
  const auto info = ingested("src,dst\n0,1\n1,2\n");

  EXPECT_EQ(info["num_nodes"], 3);
  EXPECT_SAYS(said_.err, "edges.txt:1: skipped as a header of columns");
  EXPECT_EQ(names(), (Names{"0", "1", "2"}));
}

TEST_F(FieldReportInput, O2QuotedCsvHasTheNamesBetweenItsQuotes) {
  const auto info = ingested("\"a\",\"b\"\n\"a, Inc.\",\"c\"\nc,\"d\"\n");

  EXPECT_EQ(info["num_nodes"], 5);
  EXPECT_EQ(info["num_edges"], 2 * 3);
  EXPECT_EQ(names(), (Names{"a", "a, Inc.", "b", "c", "d"}));
}

TEST_F(FieldReportInput, O2MixedDelimitersAreRefusedByLine) {
  EXPECT_SAYS(refused("0,1\n1\t2\n2 0\n3, 4\n"), "edges.txt:2: ");
}

TEST_F(FieldReportInput, O3FilesMadeOnWindowsHaveNoMarksInTheirNames) {
  const auto info = ingested(
      "\xef\xbb\xbf"
      "a\tb\r\nb\tc\r\nc\ta");

  EXPECT_EQ(info["num_nodes"], 3);
  EXPECT_EQ(info["num_edges"], 2 * 3);
  EXPECT_EQ(names(), (Names{"a", "b", "c"}));
}

TEST_F(FieldReportInput, O3LabelsAndConfigurationsMayBeMadeOnWindowsToo) {
  ingested("a\tb\nb\tc\nc\td\nd\ta\n");
  make("config.json", "\xef\xbb\xbf{\r\n  \"model\": {\"dim\": 3}\r\n}\r\n");
  make("labels.tsv",
       "\xef\xbb\xbf"
       "a\tx\r\nb\tx\r\nc\ty\r\nd\ty");

  succeed("train --graph s --out r --device cpu --config config.json");
  const auto report = json("eval classify r --labels labels.tsv --seeds 1");

  EXPECT_EQ(vectors("r").at("a").size(), 3u);
  EXPECT_EQ(report["labelled_nodes"], 4);
  EXPECT_EQ(report["unknown_nodes"], 0);
  EXPECT_EQ(report["classes"], 2);
}

const std::string kWeighted = "A B 0\nA C 3\nA D 1\nE F 0\n";

TEST_F(FieldReportInput, O4NodesOfZeroWeightsGetAVectorAndAreSaidToBeUntrained) {
  ingested(kWeighted, "--weighted --directed");

  const Outcome outcome = succeed("train --graph s --out r --device cpu --dim 3");

  EXPECT_SAYS(outcome.err, "nodes never trained: 3 (no edge of a weight above 0)");  // B, E, F
  const Vectors trained = vectors("r");
  EXPECT_EQ(trained.size(), 6u);
  for (const auto& [name, vector] : trained)
    for (const float value : vector) EXPECT_TRUE(std::isfinite(value)) << name;
}

TEST_F(FieldReportInput, O4BadWeightsAreRefusedByLineAndTinyOnesTaken) {
  for (const char* line : {"A G -2", "A H nan", "A I inf", "A K", "A L 0,5"})
    EXPECT_SAYS(refused(cat(kWeighted, line, "\n"), "--weighted"), "edges.txt:5: ");

  EXPECT_EQ(ingested(kWeighted + "A J 1e-9\n", "--weighted")["num_nodes"], 7);
}

TEST_F(FieldReportInput, O4AWeightColumnThatIsNotReadIsSaidOnce) {
  ingested("A C 3\nA D 1.5\nE F 0.5\n");

  const std::size_t first = said_.err.find("--weighted");
  EXPECT_NE(first, std::string::npos) << said_.err;
  EXPECT_EQ(said_.err.find("--weighted", first + 1), std::string::npos) << said_.err;
}

TEST_F(FieldReportInput, O5SparseAndLargeIntegersComeBackDigitForDigit) {
  const auto info = ingested("6221888200042590280 6221888200042590281\n9223372036854775807 5\n5 1000000000000\n");

  EXPECT_EQ(info["num_nodes"], 5);
  EXPECT_EQ(names(),
            (Names{"1000000000000", "5", "6221888200042590280", "6221888200042590281", "9223372036854775807"}));
}

TEST_F(FieldReportInput, O5ANumberBeyond64BitsIsANameLikeAnother) {
  ingested("18446744073709551615 18446744073709551616\n");

  EXPECT_EQ(names(), (Names{"18446744073709551615", "18446744073709551616"}));
}

TEST_F(FieldReportInput, O6SinksAndIsolatedNodesHaveFiniteVectors) {
  for (const auto& [edges, isolated] : std::vector<std::pair<std::string, std::string>>{
           {"1 2\n1 3\n2 4\n", "9"}, {"1001 1002\n1001 1003\n1002 1004\n", "1009"}}) {
    make("nodes.txt", isolated + "\n");
    ingested(edges, "--directed --nodes nodes.txt");

    const Outcome outcome =
        succeed("train --graph s --out r --overwrite --device cpu --dim 4 --walks-per-node 1 --walk-length 10");

    EXPECT_SAYS(outcome.err, "nodes never trained: 1 (no edge)");
    const Vectors trained = vectors("r");
    EXPECT_EQ(trained.size(), 5u);
    EXPECT_EQ(trained.count(isolated), 1u);
    for (const auto& [name, vector] : trained)
      for (const float value : vector) EXPECT_TRUE(std::isfinite(value)) << name;
  }
}

TEST_F(FieldReportInput, O7CompressedFilesAreReadWhateverTheirName) {
  const std::string one = edge_lines(1000), zipped = gzipped(one);

  for (const char* name : {"a.gz", "a.txt"}) {
    ingested(zipped, "", name);
    EXPECT_SAYS(said_.out, "edges read: 1,000");
  }
  ingested(zipped + zipped, "", "both.gz");
  EXPECT_SAYS(said_.out, "edges read: 2,000");
}

TEST_F(FieldReportInput, O7CutAndEmptyFilesAreRefused) {
  const std::string zipped = gzipped(edge_lines(1000));

  EXPECT_SAYS(refused(zipped.substr(0, zipped.size() / 2), "", "half.gz"), "truncated");
  EXPECT_SAYS(refused(""), "no edges");
  EXPECT_SAYS(refused("1\t2\n17\t"), "edges.txt:2: ");
}

const std::string kMatrix = "% tiny\n4 4 3\n2 1\n3 2\n4 4\n";

TEST_F(FieldReportInput, O8MatrixMarketSymmetricAndGeneral) {
  EXPECT_EQ(ingested("%%MatrixMarket matrix coordinate pattern symmetric\n" + kMatrix)["num_edges"], 5);
  EXPECT_EQ(names(), (Names{"1", "2", "3", "4"}));
  EXPECT_EQ(ingested("%%MatrixMarket matrix coordinate pattern general\n" + kMatrix)["num_edges"], 3);
}

TEST_F(FieldReportInput, O8ASizeLineThatPromisesMoreIsRefused) {
  EXPECT_SAYS(refused("%%MatrixMarket matrix coordinate pattern general\n4 4 4\n2 1\n3 2\n4 4\n"), "4");
}

TEST_F(FieldReportInput, O9DuplicatesGiveOneGraphForAnyOrderAndThreads) {
  std::set<std::string> hashes;

  for (const char* text :
       {"a b 2\nb a 5\na b 2\nc c 1\n", "c c 1\na b 2\nb a 5\na b 2\n", "b a 5\na b 2\na b 2\nc c 1\n"})
    for (const char* threads : {"1", "8"}) {
      const auto info = ingested(text, cat("--weighted --undirected --threads ", threads));
      hashes.insert(info["content_hash"]);
      EXPECT_EQ(info["num_edges"], 3) << "a-b, b-a, and c-c once";
    }

  EXPECT_EQ(hashes.size(), 1u);
  EXPECT_SAYS(said_.out, "duplicate edges, merged: 2");
  EXPECT_SAYS(said_.out, "self-loops, kept: 1");
}

TEST_F(FieldReportInput, O9OppositeArcsOfADirectedGraphAreNoDuplicates) {
  EXPECT_EQ(ingested("a b\nb a\n", "--directed")["num_edges"], 2);
  EXPECT_SAYS(said_.out, "duplicate edges, merged: 0");
}

TEST_F(FieldReportInput, O15AnIngestThatIsKilledLeavesNoGraphThatLoads) {
  succeed("graph generate er --nodes 100000 --edges 1000000 --text edges.txt");

  for (const char* seconds : {"0.02", "0.1", "0.2", "0.3"}) {
    fs::remove_all(folder_ / "s");
    run("graph ingest edges.txt --out s", cat("timeout -s KILL ", seconds));

    const Outcome info = run("graph info s --json");
    if (info.status == 0) {
      EXPECT_EQ(nlohmann::json::parse(info.out)["num_nodes"], 100000) << "it had ended before the kill";
    } else {
      EXPECT_EQ(info.status, 3) << info.err;
    }
  }
}

}  // namespace
}  // namespace gs
