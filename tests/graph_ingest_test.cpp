#include <gtest/gtest.h>

#include <random>

#include "tests/support/compressed.hpp"
#include "tests/support/ingest_folder.hpp"

namespace gs {
namespace {

using Ingest = IngestFolder;
using Names = std::vector<std::string>;

std::set<std::string> name_set(const BuiltGraph& graph) {
  const Names names = names_of(graph);
  return {names.begin(), names.end()};
}

std::map<std::string, Offset> degrees_of(const BuiltGraph& graph) {
  const Names names = names_of(graph);
  std::map<std::string, Offset> degrees;
  for (std::size_t row = 0; row < names.size(); ++row) degrees[names[row]] = graph.csr().degree(Offset(row));
  return degrees;
}

float weight_of(const BuiltGraph& graph, const std::string& from, const std::string& to) {
  for (const auto& [a, b, weight] : named(graph).arcs)
    if (a == from && b == to) return weight;
  ADD_FAILURE() << "no arc " << from << "-" << to;
  return -1;
}

// --------------------------------------------------------------------------------------------------- lines and columns

TEST_F(Ingest, SkipsCommentsAndBlankLinesAndCountsThem) {
  const auto graph =
      read("# Directed graph\n# Nodes: 3 Edges: 3\n# FromNodeId\tToNodeId\n0\t1\n\n%% konect style\n1\t2\n   \n2\t0\n",
           directed());

  EXPECT_EQ(graph.csr().num_nodes(), 3);
  EXPECT_EQ(graph.csr().num_arcs(), 3);
  EXPECT_EQ(counts_.lines, 9);
  EXPECT_EQ(counts_.skipped_lines, 6);
}

TEST_F(Ingest, TakesHashAndPercentInsideALineForPartOfTheName) {
  EXPECT_EQ(name_set(read("a#1 50%\nb #c\n")), (std::set<std::string>{"a#1", "50%", "b", "#c"}));
}

TEST_F(Ingest, SkipsAHeaderAndSaysSo) {
  BuiltGraph graph;

  const auto said = heard([&] { graph = read("src,dst\n0,1\n1,2\n"); });

  EXPECT_EQ(names_of(graph), (Names{"1", "0", "2"}));
  EXPECT_EQ(counts_.header_lines, 1);
  EXPECT_SAYS(said, "edges.txt:1: skipped as a header of columns: \"src,dst\" (--header=no");
}

TEST_F(Ingest, KnowsHeadersByColumnWordsByNumbersBelowAndByTheWeightColumn) {
  EXPECT_EQ(name_set(read("Source\tTarget\nann\tbob\n")), (std::set<std::string>{"ann", "bob"}));
  EXPECT_EQ(name_set(read("# c\nalpha beta\n1 2\n")), (std::set<std::string>{"1", "2"}));
  EXPECT_EQ(name_set(read("p,q,cost\nx,y,2\n", weighted())), (std::set<std::string>{"x", "y"}));
}

TEST_F(Ingest, DoesNotTakeAFirstEdgeForAHeader) {
  EXPECT_EQ(name_set(read("u v\nv w\n")), (std::set<std::string>{"u", "v", "w"}));
  EXPECT_EQ(name_set(read("ann bob\nbob 7\n")), (std::set<std::string>{"ann", "bob", "7"}));
  EXPECT_EQ(name_set(read("a b 1\n")), (std::set<std::string>{"a", "b"}));
}

TEST_F(Ingest, ObeysTheHeaderOption) {
  IngestOptions options;
  options.header = Header::no;
  EXPECT_EQ(name_set(read("src,dst\n0,1\n", options)), (std::set<std::string>{"src", "dst", "0", "1"}));
  options.header = Header::yes;
  EXPECT_EQ(name_set(read("# c\n\n5,6\n0,1\n", options)), (std::set<std::string>{"0", "1"}));
}

TEST_F(Ingest, LooksForAHeaderInEveryFile) {
  const auto first = make("a.csv", "from,to\n0,1\n"), second = make("b.csv", "from,to\n1,2\n");

  const auto graph = ingest({first, second}, {}, counts_);

  EXPECT_EQ(names_of(graph), (Names{"1", "0", "2"}));
  EXPECT_EQ(counts_.header_lines, 2);
}

TEST_F(Ingest, ReadsQuotedCsv) {
  const auto graph = read("\"a\",\"b\"\n\"a, Inc.\",\"c\"\nc,\"d\"\n\"say \"\"x\"\"\",d\n");

  EXPECT_EQ(name_set(graph), (std::set<std::string>{"a", "b", "a, Inc.", "c", "d", "say \"x\""}));
  EXPECT_EQ(graph.csr().num_arcs(), 8);
}

TEST_F(Ingest, DropsBlanksAroundCommasButKeepsThemInNames) {
  EXPECT_EQ(name_set(read("0, 1\n 1 ,2\nNew York , Los Angeles\n")),
            (std::set<std::string>{"0", "1", "2", "New York", "Los Angeles"}));
}

TEST_F(Ingest, KeepsTheExactBytesBetweenTabs) {
  EXPECT_EQ(name_set(read("New York\tna\xC3\xAFve\n\xC2\xA0\t\"q\"\n")),
            (std::set<std::string>{"New York", "na\xC3\xAFve", "\xC2\xA0", "\"q\""}));
}

TEST_F(Ingest, TakesRunsOfBlanksForOneDelimiter) {
  EXPECT_EQ(names_of(read("1   2\n  2 3  \n3  1 \n")), (Names{"1", "2", "3"}));
}

TEST_F(Ingest, ReadsFilesMadeOnWindows) {
  const auto graph = read(
      "\xEF\xBB\xBF"
      "a\tb\r\nb\tc\r\n\r\nc\ta");

  EXPECT_EQ(names_of(graph), (Names{"a", "b", "c"}));
  EXPECT_EQ(graph.csr().num_arcs(), 6);
}

TEST_F(Ingest, IgnoresColumnsWithoutAMeaningAndSaysSoOnce) {
  BuiltGraph graph;

  const auto said = heard([&] { graph = read("a b 3 77\nb c 4 78\n", weighted()); });

  EXPECT_EQ(weight_of(graph, "b", "c"), 4);
  EXPECT_EQ(said.find("columns behind the weight are ignored"), said.rfind("columns behind the weight are ignored"));
  EXPECT_SAYS(said, "columns behind the weight are ignored");
}

TEST_F(Ingest, SaysOnceThatAThirdColumnLooksLikeWeights) {
  const auto said = heard([&] { read("a b 3\nb c 4\nc d 5\n"); });

  const std::string line = "column 3 looks like weights and is ignored; pass --weighted to use it";
  EXPECT_SAYS(said, line);
  EXPECT_EQ(said.find(line), said.rfind(line));
}

// --------------------------------------------------------------------------------------------------------------- names

TEST_F(Ingest, ReturnsLongIntegersDigitForDigit) {
  const auto graph = read("6221888200042590280 6221888200042590281\n9223372036854775807 5\n5 1000000000000\n");

  EXPECT_EQ(names_of(graph),
            (Names{"5", "1000000000000", "6221888200042590280", "6221888200042590281", "9223372036854775807"}));
  EXPECT_TRUE(graph.name_bounds.empty());
}

TEST_F(Ingest, NeverMergesNamesThatLookLikeOneNumber) {
  const auto graph = read("7 007\n007 +7\n7 7.0\n18446744073709551615 18446744073709551616\n");

  EXPECT_EQ(name_set(graph),
            (std::set<std::string>{"7", "007", "+7", "7.0", "18446744073709551615", "18446744073709551616"}));
}

TEST_F(Ingest, RanksByDegreeThenIntegersByValueThenBytes) {
  EXPECT_EQ(names_of(read("hub 10\nhub 9\nhub b\nhub B\nhub 09\n")), (Names{"hub", "9", "10", "09", "B", "b"}));
}

TEST_F(Ingest, GivesListedNodesRowsThoughNoEdgeNamesThem) {
  IngestOptions options = directed();
  options.node_list = make("nodes.txt", "9\r\n\n# c\n1\n4");

  const auto graph = read("1 2\n1 3\n2 4\n", options);

  EXPECT_EQ(degrees_of(graph), (std::map<std::string, Offset>{{"1", 2}, {"2", 1}, {"3", 0}, {"4", 0}, {"9", 0}}));
  EXPECT_EQ(names_of(graph).back(), "9");
  EXPECT_EQ(counts_.listed_only_nodes, 1);
}

TEST_F(Ingest, CutsTheNodeListAsTheEdges) {
  IngestOptions options;
  options.node_list = make("nodes.txt", "New York\nLos Angeles\n");

  EXPECT_EQ(name_set(read("Rome\tNew York\n", options)), (std::set<std::string>{"Rome", "New York", "Los Angeles"}));
}

TEST_F(Ingest, OfANodeListAloneIsAGraphWithoutArcs) {
  IngestOptions options;
  options.node_list = make("nodes.txt", "a\nb\n");

  EXPECT_EQ(read("# nothing\n", options).offsets, (std::vector<Offset>{0, 0, 0}));
}

// ------------------------------------------------------------------------------------------------- weights, duplicates

TEST_F(Ingest, KeepsZeroAndTinyWeightsAsArcs) {
  const auto graph = read("A B 0\nA C 3\nA D 1\nE F 0\nA J 1e-9\nA K -0\nA L +2\n", weighted());

  EXPECT_EQ(weight_of(graph, "A", "B"), 0);
  EXPECT_EQ(weight_of(graph, "A", "C"), 3);
  EXPECT_EQ(weight_of(graph, "E", "F"), 0);
  EXPECT_EQ(weight_of(graph, "A", "J"), 1e-9f);
  EXPECT_FALSE(std::signbit(weight_of(graph, "A", "K")));
  EXPECT_EQ(weight_of(graph, "A", "L"), 2);
}

TEST_F(Ingest, DropsBadWeightsWhereToldAndCountsThem) {
  IngestOptions options = weighted();
  options.drop_bad_weights = true;

  const auto graph = read("A B 2\nA G -2\nA H nan\nA I inf\nA K\nA L 0,5\nA M x\nA N 1e99\n", options);

  EXPECT_EQ(name_set(graph), (std::set<std::string>{"A", "B"}));
  EXPECT_EQ(counts_.dropped_weights, 7);
  EXPECT_EQ(counts_.edges, 1);
}

TEST_F(Ingest, MergesDuplicatesByTheStatedPolicyInAnyOrderOfLines) {
  const std::map<Duplicates, float> expected = {{Duplicates::sum, 9}, {Duplicates::max, 5}, {Duplicates::first, 2}};
  for (const auto& [policy, weight] : expected)
    for (const char* text : {"a b 2\nb a 5\na b 2\nc c 1\n", "c c 1\na b 2\nb a 5\na b 2\n"})
      for (const int threads : {1, 8}) {
        IngestOptions options = weighted();
        options.duplicates = policy, options.threads = threads;

        const auto graph = read(text, options);

        EXPECT_EQ(named(graph),
                  (NamedGraph{{"a", "b", "c"}, {{"a", "b", weight}, {"b", "a", weight}, {"c", "c", 1.0f}}}));
        EXPECT_EQ(counts_.duplicate_edges, 2);
        EXPECT_EQ(counts_.self_loops, 1);
      }
}

TEST_F(Ingest, SumsDuplicatesByDefaultWhereWeightedElseMergesThem) {
  EXPECT_EQ(weight_of(read("a b 2\nb a 5\n", weighted()), "a", "b"), 7);
  EXPECT_TRUE(read("a b\nb a\n").weights.empty());
}

TEST_F(Ingest, DoesNotTakeOppositeArcsOfADirectedGraphForDuplicates) {
  const auto graph = read("a b\nb a\na b\n", directed());

  EXPECT_EQ(graph.csr().num_arcs(), 2);
  EXPECT_EQ(counts_.duplicate_edges, 1);
}

TEST_F(Ingest, DropsSelfLoopsWhereToldButKeepsTheirNodes) {
  IngestOptions options;
  options.keep_self_loops = false;

  const auto graph = read("a b\nc c\n", options);

  EXPECT_EQ(degrees_of(graph), (std::map<std::string, Offset>{{"a", 1}, {"b", 1}, {"c", 0}}));
  EXPECT_EQ(counts_.dropped_self_loops, 1);
}

// ------------------------------------------------------------------------------------------------------ compressed
// input

TEST_F(Ingest, UnpacksGzipAndZstdByTheirMagicWhateverTheNameSays) {
  const std::string text = edge_lines(1000);
  const NamedGraph plain = named(read(text));

  EXPECT_EQ(named(read(gzipped(text), {}, "edges.txt")), plain);
  EXPECT_EQ(named(read(zstded(text), {}, "edges.csv")), plain);
}

TEST_F(Ingest, ReadsEveryMemberOfAGzipFile) {
  const std::string text = edge_lines(1000);

  read(gzipped(text.substr(0, 5000)) + gzipped(text.substr(5000)), {}, "two.gz");

  EXPECT_EQ(counts_.edges, 1000);
}

TEST_F(Ingest, RefusesTruncatedGzip) {
  const std::string packed = gzipped(edge_lines(1000));

  const auto sentence = sentence_of(Fault::input, [&] { read(packed.substr(0, packed.size() / 2), {}, "half.gz"); });

  EXPECT_SAYS(sentence, "half.gz");
  EXPECT_SAYS(sentence, "truncated");
}

// ---------------------------------------------------------------------------------------------------- arrays of pairs

template <class T>
void write_pairs(const fs::path& path, const std::vector<T>& values) {
  NpyWriter out(path, dtype_of<T>(), {Offset(values.size() / 2), 2});
  out.write(values.data(), Offset(values.size() * sizeof(T)));
  out.commit();
}

TEST_F(Ingest, ReadsPairsOfEveryIntegerType) {
  write_pairs<std::uint32_t>(folder_ / "u4.npy", {1, 2, 2, 3});
  write_pairs<std::uint64_t>(folder_ / "u8.npy", {1, 2, 2, ~std::uint64_t{0}});
  write_pairs<std::int32_t>(folder_ / "i4.npy", {1, 2, 2, 3});
  write_pairs<std::int64_t>(folder_ / "i8.npy", {1, 2, 2, std::int64_t{1} << 40});

  EXPECT_EQ(names_of(ingest({folder_ / "u4.npy"}, {}, counts_)), (Names{"2", "1", "3"}));
  EXPECT_EQ(names_of(ingest({folder_ / "u8.npy"}, {}, counts_)), (Names{"2", "1", "18446744073709551615"}));
  EXPECT_EQ(names_of(ingest({folder_ / "i4.npy"}, {}, counts_)), (Names{"2", "1", "3"}));
  EXPECT_EQ(names_of(ingest({folder_ / "i8.npy"}, {}, counts_)), (Names{"2", "1", "1099511627776"}));
}

TEST_F(Ingest, ReadsPairsInManyBlocksAsText) {
  std::vector<std::uint32_t> values;
  std::string text;
  std::mt19937 random(3);
  for (int i = 0; i < 150000; ++i) {
    values.insert(values.end(), {std::uint32_t(random() % 5000), std::uint32_t(random() % 5000)});
    text += cat(values[values.size() - 2], " ", values.back(), "\n");
  }
  write_pairs(folder_ / "pairs.npy", values);
  IngestOptions options;
  options.threads = 3;

  const auto from_pairs = ingest({folder_ / "pairs.npy"}, options, counts_), from_text = read(text, options);

  EXPECT_TRUE(named(from_pairs) == named(from_text));
}

TEST_F(Ingest, RefusesPairsWithNegativeIdsOrOfAnotherShape) {
  write_pairs<std::int32_t>(folder_ / "negative.npy", {1, 2, 2, -3});
  write_npy<std::uint32_t>(folder_ / "flat.npy", std::vector<std::uint32_t>{1, 2});
  write_pairs<float>(folder_ / "float.npy", {1, 2});
  const auto sentence = [&](const char* name) {
    return sentence_of(Fault::input, [&] { ingest({folder_ / name}, {}, counts_); });
  };

  EXPECT_SAYS(sentence("negative.npy"), "row 1 (from 0) holds -3");
  EXPECT_SAYS(sentence("flat.npy"), "shape [m, 2]");
  EXPECT_SAYS(sentence("float.npy"), "node ids are u4, u8, i4 or i8");
}

// ------------------------------------------------------------------------------------------------------ against the
// twin

/// Random edges over names that try to be confused with one another.
std::vector<NamedEdge> tricky_edges(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  const auto name = [&]() -> std::string {
    const std::string number = std::to_string(random() % 12);
    switch (random() % 4) {
      case 0:
        return "0" + number;
      case 1:
        return "n" + number;
      default:
        return number;
    }
  };
  std::vector<NamedEdge> edges;
  for (int e = 0; e < count; ++e) {
    const std::string from = name(), to = name();
    edges.push_back({from, to, float(random() % 8) / 4});
  }
  return edges;
}

std::string text_of(const std::vector<NamedEdge>& edges, char delimiter) {
  std::string text;
  for (const auto& [from, to, weight] : edges) text += cat(from, delimiter, to, delimiter, weight, "\n");
  return text;
}

TEST_F(Ingest, GivesTheSlowTwinsGraphForEveryPolicyDelimiterAndNumberOfThreads) {
  const char delimiters[] = {' ', '\t', ','};
  for (std::uint64_t seed = 1; seed <= 8; ++seed)
    for (const Duplicates policy : {Duplicates::sum, Duplicates::max, Duplicates::first, Duplicates::keep})
      for (const bool is_directed : {false, true}) {
        std::vector<NamedEdge> edges = tricky_edges(seed, 1 + int(seed) * 20);
        const NamedGraph expected = slow_graph(edges, {}, is_directed, policy, true);
        IngestOptions options = weighted();
        options.directed = is_directed, options.duplicates = policy, options.header = Header::no;
        for (const int threads : {1, 2, 8}) {
          options.threads = threads;
          if (policy != Duplicates::first) std::shuffle(edges.begin(), edges.end(), std::mt19937_64(seed));

          EXPECT_EQ(named(read(text_of(edges, delimiters[seed % 3]), options)), expected);
        }
      }
}

TEST_F(Ingest, GivesOneGraphForManyBlocksFilesAndThreads) {
  // About 3 MB: blocks are cut at 1 MB, in the middle of lines.
  std::mt19937_64 random(11);
  std::string text;
  for (int e = 0; e < 250000; ++e) text += cat(random() % 20000, "\t", random() % 20000, "\t", random() % 7, "\n");
  const std::size_t cut = text.find('\n', text.size() / 3) + 1;
  IngestOptions options = weighted();
  options.duplicates = Duplicates::first;
  const NamedGraph expected = named(read(text, options));
  const fs::path one = make("one", text.substr(0, cut)), two = make("two", text.substr(cut));

  for (const int threads : {2, 8}) {
    options.threads = threads;
    EXPECT_TRUE(named(ingest({one, two}, options, counts_)) == expected) << threads << " threads";
    EXPECT_EQ(counts_.lines, 250000);
    EXPECT_EQ(counts_.bytes, Offset(text.size()));
  }
}

TEST_F(Ingest, ReadsALineLongerThanABlock) {
  const std::string name(3 << 20, 'x');

  EXPECT_EQ(name_set(read("a b\n" + name + " c\nd e\n")), (std::set<std::string>{"a", "b", name, "c", "d", "e"}));
}

TEST_F(Ingest, FindsTheFirstEdgeBehindCommentsLongerThanABlock) {
  std::string text;
  while (text.size() < (3 << 20)) text += "# a long licence\n";

  EXPECT_EQ(names_of(read(text + "src,dst\n1,2\n")), (Names{"1", "2"}));
}

}  // namespace
}  // namespace gs
