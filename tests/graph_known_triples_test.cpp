#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/support/compressed.hpp"
#include "tests/support/ingest_folder.hpp"

namespace gs {
namespace {

using Triple = std::array<RowId, 3>;  // head, relation, tail

// ---------------------------------------------------------------------------------------------------------- the index

constexpr RowId kEntities = 40, kRelations = 5;

/// Random triples with an entity and a relation that have none: every number below may be asked for.
std::vector<Triple> random_triples(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Triple> triples;
  for (int i = 0; i < count; ++i)
    triples.push_back({RowId(random() % (kEntities - 1)), RowId(random() % (kRelations - 1)),
                       RowId(std::min(random() % kEntities, random() % kEntities))});
  return triples;
}

/// A graph of these triples, rows and relations numbered as they are.
BuiltGraph graph_of_triples(const std::vector<Triple>& triples) {
  std::set<Triple> in_order;  // by head, tail, relation
  for (const auto& [head, relation, tail] : triples) in_order.insert({head, tail, relation});
  std::vector<std::uint32_t> degrees(kEntities, 0);
  BuiltGraph graph;
  graph.directed = true;
  for (const auto& [head, tail, relation] : in_order)
    ++degrees[head], graph.targets.push_back(tail), graph.relations.push_back(relation);
  graph.offsets = offsets_from_degrees(degrees);
  graph.relation_bounds.assign(kRelations + 1, 0);
  return graph;
}

Triples list_of(const std::vector<Triple>& triples) {
  Triples list;
  for (const auto& [head, relation, tail] : triples)
    list.heads.push_back(head), list.relations.push_back(relation), list.tails.push_back(tail);
  return list;
}

/// What one side of the view holds, as (entity, relation, row); fails unless they ascend.
std::set<Triple> side_of(Span<const Offset> offsets, Span<const RowId> relations, Span<const RowId> rows) {
  std::set<Triple> found;
  EXPECT_EQ(offsets.size, kEntities + 1);
  EXPECT_EQ(offsets[offsets.size - 1], rows.size);
  EXPECT_EQ(relations.size, rows.size);
  Triple before{};
  for (RowId entity = 0; entity < kEntities; ++entity)
    for (Offset i = offsets[entity]; i < offsets[entity + 1]; ++i) {
      const Triple triple{entity, relations[i], rows[i]};
      EXPECT_TRUE(i == 0 || before < triple) << "place " << i;
      found.insert(before = triple);
    }
  return found;
}

TEST(TripleIndex, KnowsExactlyTheTriplesOfGraphAndLists) {
  const std::vector<Triple> train = random_triples(500, 1), valid = random_triples(60, 2);
  std::vector<Triple> test = random_triples(60, 3);
  test.insert(test.end(), train.begin(), train.begin() + 20);  // leaks, and repeats
  test.insert(test.end(), valid.begin(), valid.begin() + 20);
  std::set<Triple> expected, swapped;
  for (const auto& list : {train, valid, test}) expected.insert(list.begin(), list.end());
  for (const auto& [head, relation, tail] : expected) swapped.insert({tail, relation, head});
  const BuiltGraph graph = graph_of_triples(train);
  const Triples valid_list = list_of(valid), test_list = list_of(test);

  for (const int threads : {1, 4}) {
    const TripleIndex index(graph.csr(), {&valid_list, &test_list}, threads);

    EXPECT_EQ(index.size(), Offset(expected.size()));
    for (RowId head = 0; head < kEntities; ++head)
      for (RowId relation = 0; relation < kRelations; ++relation)
        for (RowId tail = 0; tail < kEntities; ++tail)
          ASSERT_EQ(index.contains(head, relation, tail), expected.count({head, relation, tail}) == 1)
              << head << " " << relation << " " << tail;
    const kernels::KnownTriples view = index.view();
    EXPECT_EQ(side_of(view.tail_offsets, view.tail_relations, view.tails), expected);
    EXPECT_EQ(side_of(view.head_offsets, view.head_relations, view.heads), swapped);
  }
}

TEST(TripleIndex, OfTheGraphAloneHoldsItsTriples) {
  const BuiltGraph graph = graph_of_triples({{0, 1, 2}, {2, 1, 0}});

  const TripleIndex index(graph.csr());

  EXPECT_EQ(index.size(), 2);
  EXPECT_TRUE(index.contains(2, 1, 0));
  EXPECT_FALSE(index.contains(0, 1, 0));
  EXPECT_FALSE(index.contains(kEntities, 0, 0));
}

TEST(TripleIndex, RefusesTriplesOfAnotherGraph) {
  const BuiltGraph graph = graph_of_triples({{0, 1, 2}});

  for (const Triple& wrong : {Triple{kEntities, 0, 0}, Triple{0, kRelations, 0}, Triple{0, 0, kEntities}}) {
    const Triples list = list_of({{0, 0, 0}, wrong});
    EXPECT_SAYS(sentence_of(Fault::internal, [&] { TripleIndex(graph.csr(), {&list}); }), "triple 1 is none of");
  }
}

// ------------------------------------------------------------------------------------------------------ further files

class TripleLists : public IngestFolder {
 protected:
  TripleLists() {
    IngestOptions options;
    options.triples = true;
    publish(folder_ / "store", read("a\tr\tb\nb\tr\tc\na\ts\tc\n", options), "");
    graph_ = Graph::open(folder_ / "store");
  }
  Triples list(std::string_view bytes) {
    return read_triples(make("valid.tsv", bytes), graph_.names(), graph_.relation_names());
  }
  std::vector<std::string> by_name(const Triples& triples) const {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < triples.heads.size(); ++i)
      lines.push_back(cat(graph_.names().name(triples.heads[i]), " ",
                          graph_.relation_names().name(triples.relations[i]), " ",
                          graph_.names().name(triples.tails[i])));
    return lines;
  }

  Graph graph_;
};

TEST_F(TripleLists, AreReadInTheGraphsNumbers) {
  const std::vector<std::string> expected = {"c s a", "b r b", "c s a"};

  EXPECT_EQ(by_name(list("c\ts\ta\n# comment\n\nb\tr\tb\nc\ts\ta")), expected);
  EXPECT_EQ(by_name(list("c,s,a\r\nb,\"r\",b\r\nc, s,a\r\n")), expected);
  EXPECT_EQ(by_name(list(gzipped("head\trelation\ttail\nc\ts\ta\nb\tr\tb\nc\ts\ta\n"))), expected);
  EXPECT_EQ(list("").size(), 0);
  EXPECT_EQ(list("# nothing\n").size(), 0);
}

TEST_F(TripleLists, LeaveOutLinesWithUnknownNamesAndCountThem) {
  const Triples triples = list("a\tr\tc\nx\tr\ta\na\tq\tb\ny\tq\tx\nx\tr\tx\nb\ts\tb\n");

  EXPECT_EQ(by_name(triples), (std::vector<std::string>{"a r c", "b s b"}));
  EXPECT_EQ(triples.left_out, 4);
  EXPECT_EQ(triples.unknown_entity_lines, 3);
  EXPECT_EQ(triples.unknown_relation_lines, 2);
  EXPECT_EQ(triples.unknown_entities, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(triples.unknown_relations, (std::vector<std::string>{"q"}));
}

TEST_F(TripleLists, NameOnlyTheFirstFewUnknownNames) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += cat("new", i, "\tr\ta\n");

  const Triples triples = list(text);

  EXPECT_EQ(triples.unknown_entity_lines, 100);
  EXPECT_EQ(triples.unknown_entities, (std::vector<std::string>{"new0", "new1", "new2", "new3", "new4"}));
}

TEST_F(TripleLists, ThatAreWrongAreAnsweredWithFileLineAndReason) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\tr\n", "valid.tsv:1: expected 3 columns (head, relation, tail), found 2"},
      {"a\tr\tb\n\na\tr\tb\t1\n", "valid.tsv:3: expected 3 columns (head, relation, tail), found 4"},
      {"a\tr\tb\na\t\tb\n", "valid.tsv:2: column 2 is empty: a triple needs three names"},
      {"a,r,\"b\n", "valid.tsv:1: a quote is opened and never closed"}};

  for (const auto& [text, says] : cases) EXPECT_SAYS(sentence_of(Fault::input, [&, &t = text] { list(t); }), says);
  EXPECT_SAYS(
      sentence_of(Fault::input, [&] { read_triples(folder_ / "gone", graph_.names(), graph_.relation_names()); }),
      "gone");
}

}  // namespace
}  // namespace gs
