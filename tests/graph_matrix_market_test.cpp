#include <gtest/gtest.h>

#include "tests/support/ingest_folder.hpp"

namespace gs {
namespace {

using MatrixMarketInput = IngestFolder;
using Names = std::vector<std::string>;

const std::string kEntries = "% tiny\n4 4 3\n2 1\n3 2\n4 4\n";

TEST_F(MatrixMarketInput, SymmetricStandsForBothDirectionsAndKeepsTheNumbersFromOne) {
  const std::string text = "%%MatrixMarket matrix coordinate pattern symmetric\n" + kEntries;

  for (const bool is_directed : {false, true}) {
    IngestOptions options;
    options.directed = is_directed;
    const auto graph = read(text, options);

    EXPECT_EQ(graph.csr().num_arcs(), 5);
    EXPECT_EQ(names_of(graph), (is_directed ? Names{"2", "1", "3", "4"} : Names{"2", "1", "3", "4"}));
  }
}

TEST_F(MatrixMarketInput, GeneralIsADirectedGraphUnlessToldOtherwise) {
  const std::string text = "%%MatrixMarket matrix coordinate pattern general\n" + kEntries;
  IngestOptions undirected;
  undirected.directed = false;

  EXPECT_EQ(read(text).csr().num_arcs(), 3);
  EXPECT_TRUE(read(text).directed);
  EXPECT_EQ(read(text, undirected).csr().num_arcs(), 5);
}

TEST_F(MatrixMarketInput, PatternWeighsOne) {
  const auto graph = read("%%MatrixMarket matrix coordinate pattern symmetric\n" + kEntries, weighted());

  EXPECT_EQ(graph.weights, std::vector<float>(5, 1.0f));
}

TEST_F(MatrixMarketInput, RealAndIntegerValuesAreWeights) {
  const auto real = read("%%matrixmarket MATRIX coordinate Real symmetric\n2 2 1\n2 1 2.5\n", weighted());
  const auto integer = read("%%MatrixMarket matrix coordinate integer symmetric\n2 2 1\n2 1 3\n", weighted());

  EXPECT_EQ(real.weights, (std::vector<float>{2.5, 2.5}));
  EXPECT_EQ(integer.weights, (std::vector<float>{3, 3}));
}

TEST_F(MatrixMarketInput, RowsWithoutAnEntryAreNodes) {
  const auto graph = read("%%MatrixMarket matrix coordinate pattern symmetric\n5 5 1\n2 4\n");

  EXPECT_EQ(names_of(graph), (Names{"2", "4", "1", "3", "5"}));
  EXPECT_EQ(counts_.listed_only_nodes, 3);
}

TEST_F(MatrixMarketInput, ASizeLineThatLiesCostsNoMemory) {
  BuiltGraph graph;

  const auto said = heard(
      [&] { graph = read("%%MatrixMarket matrix coordinate pattern symmetric\n4000000000 4000000000 1\n7 8\n"); });

  EXPECT_EQ(names_of(graph), (Names{"7", "8"}));
  EXPECT_SAYS(said, "4,000,000,000 claimed get no row here; give those you want by --nodes");
}

TEST_F(MatrixMarketInput, RefusesWhatItsHeadDoesNotKeep) {
  struct Case {
    std::string text, says;
  };
  const std::string pattern = "%%MatrixMarket matrix coordinate pattern general\n";
  const std::vector<Case> cases = {
      {pattern + "4 4 4\n2 1\n3 2\n4 4\n", "edges.txt:2: claims 4 entries, the file holds 3"},
      {pattern + "4 4 2\n2 1\n3 2\n4 4\n", "claims 2 entries, the file holds 3"},
      {pattern + "4 3 1\n2 1\n", "4 rows and 3 columns is no graph"},
      {pattern + "4 4 1\n5 1\n", "edges.txt:3: index \"5\" is not in 1..4, the size on line 2"},
      {pattern + "4 4 1\n0 1\n", "index \"0\" is not in 1..4"},
      {pattern + "4 4 1\n01 1\n", "index \"01\" is not in 1..4"},
      {pattern + "% c\n2 1\n", "edges.txt:3: expected the size line"},
      {pattern, "ends before its size line"},
      {pattern + "5000000000 5000000000 0\n", "claims 5000000000 nodes, more than the limit"},
      {"%%MatrixMarket matrix array real general\n2 2\n1\n", "format array is not supported"},
      {"%%MatrixMarket matrix coordinate complex general\n1 1 0\n", "field complex is not supported"},
      {"%%MatrixMarket matrix coordinate real skew-symmetric\n1 1 0\n", "symmetry skew-symmetric is not supported"},
      {"%%MatrixMarket vector coordinate real general\n1 1 0\n", "object vector is not supported"}};

  for (const Case& c : cases) EXPECT_SAYS(sentence_of(Fault::input, [&] { read(c.text); }), c.says);
}

TEST_F(MatrixMarketInput, BesideAnEdgeListNeedsToBeToldTheDirection) {
  const fs::path matrix = make("m.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n");
  const fs::path list = make("e.txt", "2 3\n");

  const auto sentence = sentence_of(Fault::input, [&] { ingest({matrix, list}, {}, counts_); });

  EXPECT_SAYS(sentence, "pass --directed or --undirected");
  EXPECT_EQ(ingest({matrix, list}, directed(), counts_).csr().num_arcs(), 2);
}

}  // namespace
}  // namespace gs
