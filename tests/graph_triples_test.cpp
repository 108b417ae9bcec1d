#include <gtest/gtest.h>

#include <random>

#include "tests/support/compressed.hpp"
#include "tests/support/ingest_folder.hpp"

namespace gs {
namespace {

using Names = std::vector<std::string>;
using NamedTriple = std::array<std::string, 3>;  // head, relation, tail

/// A knowledge graph written out: names in their order, triples in the order of the arcs.
struct NamedTriples {
  Names entities, relations;
  std::vector<NamedTriple> triples;
  bool operator==(const NamedTriples&) const = default;
};

Names relation_names_of(const BuiltGraph& graph) {
  Names names;
  for (std::size_t r = 1; r < graph.relation_bounds.size(); ++r)
    names.emplace_back(graph.relation_bytes.data() + graph.relation_bounds[r - 1],
                       graph.relation_bytes.data() + graph.relation_bounds[r]);
  return names;
}

NamedTriples written_out(const BuiltGraph& graph) {
  NamedTriples result{names_of(graph), relation_names_of(graph), {}};
  const Csr csr = graph.csr();
  for (Offset head = 0; head < csr.num_nodes(); ++head)
    for (Offset arc = csr.offsets[head]; arc < csr.offsets[head + 1]; ++arc)
      result.triples.push_back({result.entities[std::size_t(head)], result.relations[csr.relations[arc]],
                                result.entities[csr.targets[arc]]});
  return result;
}

/// The obvious twin: sets, maps, and a sort of everything by numbers looked up by name.
NamedTriples slow_triples(const std::vector<NamedTriple>& lines) {
  const std::set<NamedTriple> triples(lines.begin(), lines.end());
  std::map<std::string, Offset> degrees, frequencies;
  for (const auto& [head, relation, tail] : triples) ++degrees[head], ++degrees[tail], ++frequencies[relation];
  const auto ranked = [](const std::map<std::string, Offset>& counts) {
    Names names;
    for (const auto& [name, count] : counts) names.push_back(name);
    std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
      return counts.at(a) != counts.at(b) ? counts.at(a) > counts.at(b) : name_before(a, b);
    });
    return names;
  };
  const auto place = [](const Names& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };

  NamedTriples result{ranked(degrees), ranked(frequencies), {}};
  std::map<std::array<std::ptrdiff_t, 3>, NamedTriple> in_order;
  for (const NamedTriple& triple : triples)
    in_order[{place(result.entities, triple[0]), place(result.entities, triple[2]),
              place(result.relations, triple[1])}] = triple;
  for (const auto& [key, triple] : in_order) result.triples.push_back(triple);
  return result;
}

std::string text_of(const std::vector<NamedTriple>& lines) {
  std::string text;
  for (const auto& [head, relation, tail] : lines) text += cat(head, "\t", relation, "\t", tail, "\n");
  return text;
}

IngestOptions triples(int threads = 1) {
  IngestOptions options;
  options.triples = true, options.threads = threads;
  return options;
}

class TripleFiles : public IngestFolder {
 protected:
  NamedTriples read_out(std::string_view bytes, const IngestOptions& options = triples()) {
    return written_out(read(bytes, options));
  }
};

// ------------------------------------------------------------------------------------------------------------- reading

TEST_F(TripleFiles, BecomeTheTwinsGraphInAnyOrderOfLinesAndOnAnyNumberOfThreads) {
  // Long names, so that the file has several blocks; few of them, so that triples repeat.
  std::mt19937 random(1);
  std::vector<NamedTriple> lines;
  const auto name = [&](unsigned below) {
    const unsigned drawn = std::min(random() % below, random() % below);
    return drawn % 3 == 0 ? std::to_string(drawn) : drawn % 3 == 1 ? cat("0", drawn) : cat("entity ", drawn);
  };
  for (int i = 0; i < 12000; ++i) {
    const std::string relation = name(9);
    lines.push_back({name(60), relation.size() > 2 ? relation + std::string(400, 'x') : relation, name(60)});
  }
  const NamedTriples expected = slow_triples(lines);
  ASSERT_LT(expected.triples.size(), lines.size());

  for (const int threads : {1, 2, 8}) {
    std::shuffle(lines.begin(), lines.end(), random);
    const BuiltGraph graph = read(text_of(lines), triples(threads));

    EXPECT_TRUE(written_out(graph) == expected) << threads << " threads";
    EXPECT_TRUE(graph.directed);
    EXPECT_TRUE(graph.weights.empty());
    EXPECT_EQ(counts_.edges, Offset(lines.size()));
    EXPECT_EQ(counts_.duplicate_edges, Offset(lines.size() - expected.triples.size()));
  }
}

TEST_F(TripleFiles, KeepEveryRelationBetweenTwoEntities) {
  const NamedTriples graph = read_out("a likes b\na knows b\nc knows b\nb likes a\nb knows c\n");

  EXPECT_EQ(graph.relations, (Names{"knows", "likes"}));
  EXPECT_EQ(graph.entities, (Names{"b", "a", "c"}));
  EXPECT_EQ(
      graph.triples,
      (std::vector<NamedTriple>{
          {"b", "likes", "a"}, {"b", "knows", "c"}, {"a", "knows", "b"}, {"a", "likes", "b"}, {"c", "knows", "b"}}));
}

TEST_F(TripleFiles, KeepSelfLoopsAndCountThem) {
  const NamedTriples graph = read_out("a r a\na r a\na s a\nb r a\n");

  EXPECT_EQ(graph.triples.size(), 3u);
  EXPECT_EQ(counts_.self_loops, 3);
  EXPECT_EQ(counts_.duplicate_edges, 1);
}

TEST_F(TripleFiles, DropSelfLoopsWhereAskedTo) {
  IngestOptions options = triples();
  options.keep_self_loops = false;

  const NamedTriples graph = read_out("a r a\nb s c\n", options);

  EXPECT_EQ(graph.triples, (std::vector<NamedTriple>{{"b", "s", "c"}}));
  EXPECT_EQ(graph.relations, (Names{"s", "r"}));
  EXPECT_EQ(graph.entities, (Names{"b", "c", "a"}));
}

TEST_F(TripleFiles, KeepNamesOfRelationsAsBytes) {
  const NamedTriples graph = read_out("1\t7\t2\n1\t007\t2\n1\t18446744073709551616\t2\n1\t/film/na\xC3\xAFve\t2\n");

  EXPECT_EQ(graph.relations, (Names{"7", "/film/na\xC3\xAFve", "007", "18446744073709551616"}));
  EXPECT_EQ(graph.entities, (Names{"1", "2"}));
}

TEST_F(TripleFiles, AreCutLikeEdgeLists) {
  const std::vector<NamedTriple> expected = {{"New York", "lies in", "U, S"}};

  EXPECT_EQ(read_out("# comment\n\nNew York\tlies in\tU, S").triples, expected);
  EXPECT_EQ(read_out("New York , lies in,\"U, S\"\r\n").triples, expected);
  EXPECT_EQ(read_out("  a   r  b  \n").triples, (std::vector<NamedTriple>{{"a", "r", "b"}}));
  EXPECT_EQ(read_out(gzipped("New York\tlies in\tU, S\n")).triples, expected);
}

TEST_F(TripleFiles, MayHaveAHeader) {
  for (const char* header : {"head\trelation\ttail", "Subject\tPredicate\tObject", "h\tr\tt", "source\ttype\ttarget"}) {
    const auto said = heard([&] { EXPECT_EQ(read_out(cat(header, "\na\tr\tb\n")).triples.size(), 1u) << header; });
    EXPECT_SAYS(said, "edges.txt:1: skipped as a header of columns");
  }
  EXPECT_EQ(read_out("id1 what id2x\n1 likes 2\n").triples.size(), 1u);
}

TEST_F(TripleFiles, DoNotLoseAFirstTripleThatResemblesAHeader) {
  EXPECT_EQ(read_out("h r t\nt r x\n").triples.size(), 2u);
  EXPECT_EQ(read_out("ann relation bob\n1 relation bob\n").triples.size(), 2u);
}

TEST_F(TripleFiles, GiveListedNodesARow) {
  IngestOptions options = triples();
  options.node_list = make("nodes.txt", "z\na\n").string();

  const NamedTriples graph = read_out("a\tr\tb\n", options);

  EXPECT_EQ(graph.entities, (Names{"a", "b", "z"}));
  EXPECT_EQ(counts_.listed_only_nodes, 1);
}

// ----------------------------------------------------------------------------------------------------------- bad input

TEST_F(TripleFiles, ThatAreWrongAreAnsweredByOneLineWithFileLineAndReason) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "edges.txt: no edges found (0 lines"},
      {"a\tr\tb\nc\td\n", ":2: expected 3 columns (head, relation, tail) separated by tabs, found 2: \"c\\td\""},
      {"a r b\nc r d e\n", ":2: expected 3 columns (head, relation, tail) separated by blanks, found 4"},
      {"a,r,b,1\n", ":1: expected 3 columns (head, relation, tail) separated by commas, found 4"},
      {"a\n", ":1: expected 3 columns (head, relation, tail) separated by blanks, found 1"},
      {"a\tr\tb\n\tr\tc\n", ":2: column 1 is empty: a triple needs three names"},
      {"a\tr\tb\na\t\tc\n", ":2: column 2 is empty"},
      {"a\tr\tb\na\tr\t\n", ":2: column 3 is empty"},
      {"a,r,\"\"\n", ":1: column 3 is empty"},
      {"a r b\na r, c\n", ":2: column 2, \"r,\", holds a comma where this file's columns are separated by blanks"},
      {"a r b\na r c,\n", ":2: column 3, \"c,\", holds a comma"},
      {"a,r,\"b\n", ":1: a quote is opened and never closed"},
      {"a r b\na\rr c\n", ":2: a carriage return inside the line"},
      {std::string("a r b\na r\0 c\n", 13), ":2: a zero byte"}};

  for (const auto& [text, says] : cases) {
    const std::string sentence = sentence_of(Fault::input, [&] { read(text, triples()); });

    EXPECT_SAYS(sentence, says);
    EXPECT_EQ(sentence.find('\n'), std::string::npos);
  }
}

TEST_F(TripleFiles, AreReportedByTheirEarliestBadLine) {
  std::string text;
  Offset lines = 0;
  for (; text.size() < 1500000; ++lines) text += "12345 r 67890\n";
  text += "lonely line\n" + text + "another\n";

  for (const int threads : {1, 8})
    EXPECT_SAYS(sentence_of(Fault::input, [&] { read(text, triples(threads)); }),
                cat("edges.txt:", lines + 1, ": expected 3 columns"));
}

TEST_F(TripleFiles, CannotBeArraysOrMatrices) {
  NpyWriter out(folder_ / "pairs.npy", Dtype::u32, {1, 2});
  const std::uint32_t pair[] = {1, 2};
  out.write(pair, sizeof pair);
  out.commit();
  const std::string matrix = "%%MatrixMarket matrix coordinate real general\n3 3 0\n";

  EXPECT_SAYS(sentence_of(Fault::input, [&] { ingest({folder_ / "pairs.npy"}, triples(), counts_); }),
              "pairs.npy: an array of pairs has no relations: leave --triples out");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { read(matrix, triples()); }), "a MatrixMarket file has no relations");
}

TEST_F(TripleFiles, RefuseOptionsOfOtherGraphs) {
  const auto refusal = [&](const auto& change) {
    IngestOptions options = triples();
    change(options);
    return sentence_of(Fault::usage, [&] { read("a r b\n", options); });
  };

  EXPECT_SAYS(refusal([](IngestOptions& o) { o.directed = false; }), "leave --undirected out");
  EXPECT_SAYS(refusal([](IngestOptions& o) { o.weighted = true; }), "leave --weighted out");
  EXPECT_SAYS(refusal([](IngestOptions& o) { o.duplicates = Duplicates::keep; }), "leave --duplicates out");
}

TEST_F(TripleFiles, ReadAsEdgesAreToldOfTheOption) {
  EXPECT_SAYS(heard([&] { read("a r b\n"); }), "columns behind the second are ignored; --triples reads");
}

// --------------------------------------------------------------------------------------------------------------- store

class TripleStore : public TripleFiles {
 protected:
  TripleStore() {
    graph_ = read("ann knows bob\nann likes bob\nbob knows cas\ncas 7 cas\n", triples());
    publish(store_, graph_, "a test");
  }
  std::string refusal() const {
    return sentence_of(Fault::input, [&] { Graph::open(store_); });
  }
  std::string meta() const { return bytes_of(version_ / "meta.json"); }
  std::string refusal_after(const char* name, std::size_t from_end, char byte) const {
    const std::string before = bytes_of(version_ / name);
    std::string damaged = before;
    damaged[damaged.size() - from_end] = byte;
    make(cat("store/v0001/", name), damaged);
    const std::string sentence = refusal();
    make(cat("store/v0001/", name), before);
    return sentence;
  }

  const fs::path store_ = folder_ / "store", version_ = store_ / "v0001";
  BuiltGraph graph_;
};

TEST_F(TripleStore, IsReadBackAsItWasPublished) {
  const Graph opened = Graph::open(store_);

  const Csr csr = opened.csr();
  EXPECT_EQ(std::vector<RowId>(csr.targets.begin(), csr.targets.end()), graph_.targets);
  EXPECT_EQ(std::vector<RowId>(csr.relations.begin(), csr.relations.end()), graph_.relations);
  EXPECT_EQ(csr.num_relations, 3);
  EXPECT_TRUE(csr.directed);
  EXPECT_EQ(opened.info().num_relations, 3);
  EXPECT_EQ(opened.relation_names().size(), 3);
  EXPECT_EQ(opened.relation_names().name(0), "knows");
  EXPECT_EQ(opened.relation_names().find("7"), RowId(1));
  EXPECT_EQ(opened.relation_names().find("ann"), std::nullopt);
  EXPECT_EQ(versions(store_)[0].num_relations, 3);
}

TEST_F(TripleStore, HasAFormatThatProgramsWithoutRelationsRefuse) { EXPECT_SAYS(meta(), "\"format\": 2,"); }

TEST_F(TripleStore, LeavesGraphsWithoutRelationsAsTheyWere) {
  publish(folder_ / "plain", read("a b\nb c\n"), "");
  const fs::path version = folder_ / "plain" / "v0001";
  const std::string plain_meta = bytes_of(version / "meta.json");

  const Graph opened = Graph::open(folder_ / "plain");

  EXPECT_SAYS(plain_meta, "\"format\": 1,");
  EXPECT_FALSE(says(plain_meta, "relation"));
  EXPECT_FALSE(fs::exists(version / "relations.npy"));
  EXPECT_TRUE(opened.csr().relations.empty());
  EXPECT_EQ(opened.csr().num_relations, 0);
  EXPECT_EQ(opened.relation_names().size(), 0);
  EXPECT_EQ(opened.relation_names().find("a"), std::nullopt);
}

TEST_F(TripleStore, HashesRelationsAndTheirNames) {
  const auto hash = [&](const char* text) { return publish(store_, read(text, triples()), "").content_hash; };

  EXPECT_EQ(hash("a r b\nb s c\n"), hash("b s c\na r b\n"));
  EXPECT_NE(hash("a r b\nb s c\n"), hash("a r b\nb r c\n"));
  EXPECT_NE(hash("a r b\nb s c\n"), hash("a r b\nb t c\n"));
}

TEST_F(TripleStore, NamesDamage) {
  for (const char* name : {"relations.npy", "relation_bytes.npy", "relation_bounds.npy"}) {
    const std::string bytes = bytes_of(version_ / name);
    fs::resize_file(version_ / name, bytes.size() / 2);
    EXPECT_SAYS(refusal(), cat(name, ": has ", bytes.size() / 2, " bytes, but meta.json says ", bytes.size()));
    fs::remove(version_ / name);
    EXPECT_SAYS(refusal(), cat(name, ": is missing"));
    make(cat("store/v0001/", name), bytes);
  }
  EXPECT_SAYS(refusal_after("relations.npy", 4, 3), "relations.npy: arc 3 has relation 3, but there are 3");
  EXPECT_SAYS(refusal_after("relation_bounds.npy", 8, 99), "relation_bounds.npy: ends with 99");

  const std::string whole = meta();
  const auto refusal_of_meta = [&](const std::string& from, const std::string& to) {
    make("store/v0001/meta.json", std::string(whole).replace(whole.find(from), from.size(), to));
    return refusal();
  };
  EXPECT_SAYS(refusal_of_meta("\"num_relations\": 3", "\"num_relations\": 2"), "has relation 2, but there are 2");
  EXPECT_SAYS(refusal_of_meta("\"num_relations\": 3", "\"num_relations\": 4"), "has 4 values; 5 are expected");
  EXPECT_SAYS(refusal_of_meta("\"num_relations\": 3", "\"num_relations\": 0"), "names 0 relations");
  EXPECT_SAYS(refusal_of_meta("\"num_relations\"", "\"relations\""), "is damaged");
  EXPECT_SAYS(refusal_of_meta("\"format\": 2", "\"format\": 3"), "format 3 is newer than 2");
}

TEST_F(TripleStore, IsNotSplit) {
  EXPECT_SAYS(sentence_of(Fault::input, [&] { split_edges(Graph::open(store_), 0.5, false, 1); }),
              "split: the graph has relations");
}

}  // namespace
}  // namespace gs
