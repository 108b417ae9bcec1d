#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/support/ingest_folder.hpp"

namespace gs {
namespace {

using Names = std::vector<std::string>;

class Diff : public IngestFolder {
 protected:
  /// The difference between two edge lists, each ingested and published.
  GraphDiff between(std::string_view before, std::string_view after, const IngestOptions& options = {},
                    Offset list = 10) {
    fs::remove_all(folder_ / "store");
    publish(folder_ / "store", read(before, options), "before");
    publish(folder_ / "store", read(after, options), "after");
    return diff(Graph::open(folder_ / "store", "v0001"), Graph::open(folder_ / "store"), list);
  }
};

TEST_F(Diff, EqualGraphsDifferInNothing) {
  const GraphDiff none = between("a b 1\nb c 2\nc c 3\n", "c c 3\nb c 2\na b 1\n", weighted());

  EXPECT_EQ(none.nodes.added + none.nodes.removed + none.arcs.added + none.arcs.removed + none.reweighted_arcs, 0);
  EXPECT_EQ(none.relations.added + none.relations.removed, 0);
}

TEST_F(Diff, NodesAndEdgesAreTheSameByNameWhateverTheirRows) {
  const GraphDiff found = between("a b\nb c\n", "a b\na d\na e\n");

  EXPECT_EQ(found.nodes.first_added, (Names{"d", "e"}));
  EXPECT_EQ(found.nodes.first_removed, (Names{"c"}));
  EXPECT_EQ(found.arcs.added, 4);
  EXPECT_EQ(found.arcs.removed, 2);
  EXPECT_EQ(found.arcs.first_added, (Names{"a\td", "a\te"}));
  EXPECT_EQ(found.arcs.first_removed, (Names{"b\tc"}));
  EXPECT_EQ(found.reweighted_arcs, 0);
}

TEST_F(Diff, AnotherWeightIsShownWithBoth) {
  IngestOptions options = weighted();
  options.directed = true;

  const GraphDiff found = between("a b 1\nb a 0.1\n", "a b 1\nb a 0.2\n", options);

  EXPECT_EQ(found.arcs.added + found.arcs.removed, 0);
  EXPECT_EQ(found.reweighted_arcs, 1);
  EXPECT_EQ(found.first_reweighted, (Names{"b\ta\t0.1\t0.2"}));
}

TEST_F(Diff, DirectionsAreTwoArcs) {
  const GraphDiff found = between("a b\n", "b a\n", directed());

  EXPECT_EQ(found.arcs.first_added, (Names{"b\ta"}));
  EXPECT_EQ(found.arcs.first_removed, (Names{"a\tb"}));
}

TEST_F(Diff, ParallelArcsAreCounted) {
  IngestOptions options = weighted();
  options.duplicates = Duplicates::keep, options.directed = true;

  const GraphDiff found = between("a b 1\na b 2\n", "a b 1\na b 3\na b 4\n", options);

  EXPECT_EQ(found.arcs.added, 1);
  EXPECT_EQ(found.reweighted_arcs, 1);
}

TEST_F(Diff, ParallelArcsOfOneWeightAreTheSame) {
  IngestOptions options = weighted();
  options.duplicates = Duplicates::keep, options.directed = true;

  const GraphDiff found = between("a b 1\na b 2\na b 2\na b 5\n", "a b 2\na b 5\na b 5\n", options);

  EXPECT_EQ(found.reweighted_arcs, 1);
  EXPECT_EQ(found.first_reweighted, (Names{"a\tb\t1\t5"}));
  EXPECT_EQ(found.arcs.first_removed, (Names{"a\tb"}));
  EXPECT_EQ(found.arcs.removed, 1);
  EXPECT_EQ(found.arcs.added, 0);
}

TEST_F(Diff, AnArcWithoutARelationIsNoneWithOne) {
  IngestOptions triples;
  triples.triples = true;
  publish(folder_ / "store", read("a b\n", directed()), "before");
  publish(folder_ / "store", read("a r b\n", triples), "after");

  const GraphDiff found = diff(Graph::open(folder_ / "store", "v0001"), Graph::open(folder_ / "store"), 10);

  EXPECT_EQ(found.arcs.first_removed, (Names{"a\tb"}));
  EXPECT_EQ(found.arcs.first_added, (Names{"a\tr\tb"}));
}

TEST_F(Diff, TriplesDifferByTheirRelation) {
  IngestOptions options;
  options.triples = true;

  const GraphDiff found = between("a likes b\na knows b\n", "a likes b\na hates b\n", options);

  EXPECT_EQ(found.nodes.added + found.nodes.removed, 0);
  EXPECT_EQ(found.relations.first_added, (Names{"hates"}));
  EXPECT_EQ(found.relations.first_removed, (Names{"knows"}));
  EXPECT_EQ(found.arcs.first_added, (Names{"a\thates\tb"}));
  EXPECT_EQ(found.arcs.first_removed, (Names{"a\tknows\tb"}));
}

TEST_F(Diff, ListsStopWhereCountsGoOn) {
  const GraphDiff found = between("a b\n", "a b\na c\na d\na e\n", {}, 2);

  EXPECT_EQ(found.nodes.added, 3);
  EXPECT_EQ(found.nodes.first_added.size(), 2u);
  EXPECT_EQ(found.arcs.first_added.size(), 2u);
}

TEST_F(Diff, RandomGraphsDifferAsTheirSetsOfArcs) {
  using Arcs = std::set<std::pair<int, int>>;
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    Arcs sets[2];
    std::string texts[2];
    for (int side = 0; side < 2; ++side) {
      for (int i = 0; i < 60; ++i) sets[side].emplace(int(random() % 12), int(random() % 12));
      for (const auto& [from, to] : sets[side]) texts[side] += cat(from, " ", to, "\n");
    }
    Offset added = 0, removed = 0;
    for (const auto& arc : sets[1]) added += sets[0].count(arc) ? 0 : 1;
    for (const auto& arc : sets[0]) removed += sets[1].count(arc) ? 0 : 1;

    const GraphDiff found = between(texts[0], texts[1], directed());

    EXPECT_EQ(found.arcs.added, added);
    EXPECT_EQ(found.arcs.removed, removed);
  }
}

}  // namespace
}  // namespace gs
