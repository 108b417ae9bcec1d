// eval rank, and query of a knowledge graph's model: runs written by the tests.
#include "graphscale/config.hpp"

#include "tests/support/embeddings_folder.hpp"
#include "tests/support/program.hpp"

namespace gs {
namespace {

class WithTripleRun : public WithProgram {
 protected:
  /// Towns on a line that "next" takes a step along and "near" stays at.
  WithTripleRun() {
    write_run("run", "transe", {{"next", {1, 0}}, {"near", {0, 0}}});
    make("test.tsv", "aa\tnext\tcc\nbb\tnext\tcc\naa\tnext\tzz\naa\tlikes\tbb\n");
    make("train.tsv", "aa\tnext\tbb\n");
  }

  void write_run(const std::string& name, const std::string& kind, const NamedVectors& relations,
                 bool reciprocal = false) const {
    Config config = default_config(kind);
    config.model.dim = 2, config.model.reciprocal = reciprocal;
    for (const char* part : {"embeddings", "relations"}) fs::create_directories(folder_ / name / part);
    write_text(folder_ / name / "config.json", to_json(config));
    make_embeddings(folder_ / name / "embeddings",
                    {{"aa", {0, 0}}, {"bb", {1, 0}}, {"cc", {2, 0}}, {"dd", {1, 0}}, {"ee", {9, 9}}});
    make_embeddings(folder_ / name / "relations", relations);
  }
};

using RankCommand = WithTripleRun;
using QueryOfTriples = WithTripleRun;

TEST_F(RankCommand, PrintsRanksOfAHandCheckedRun) {
  const auto answer = json("eval rank run --test test.tsv --known train.tsv --by-relation");

  // Tails: (aa, next, cc) after bb and dd, level with aa: 3.5, bb known: 2.5. (bb, next, cc): 1.
  // Heads: (?, next, cc) bb and dd, then aa level with cc: aa 3.5, bb 1.5; known bb and aa leave 2.5 and 1.5.
  EXPECT_EQ(answer["triples"], 2);
  EXPECT_EQ(answer["entities"], 5);
  EXPECT_DOUBLE_EQ(answer["raw"]["tail"]["mean_rank"], (3.5 + 1) / 2);
  EXPECT_DOUBLE_EQ(answer["raw"]["head"]["mean_rank"], (3.5 + 1.5) / 2);
  EXPECT_DOUBLE_EQ(answer["filtered"]["tail"]["mrr"], (1 / 2.5 + 1) / 2);
  EXPECT_DOUBLE_EQ(answer["filtered"]["head"]["mrr"], (1 / 2.5 + 1 / 1.5) / 2);
  EXPECT_DOUBLE_EQ(answer["filtered"]["mrr"], (1 / 2.5 + 1 + 1 / 2.5 + 1 / 1.5) / 4);
  EXPECT_DOUBLE_EQ(answer["filtered"]["hits_at_1"], 0.25);
  ASSERT_EQ(answer["relations"].size(), 1u);
  EXPECT_EQ(answer["relations"][0]["relation"], "next");
  EXPECT_EQ(answer["relations"][0]["queries"], 4);
}

TEST_F(RankCommand, CountsTheUnseenAndTreatsThemAsAsked) {
  const auto left_out = json("eval rank run --test test.tsv");
  const auto worst = json("eval rank run --test test.tsv --unseen worst");

  EXPECT_EQ(left_out["unseen"], "leave-out");
  EXPECT_EQ(left_out["unseen_triples"], 2);
  EXPECT_EQ(left_out["unseen_entity_triples"], 1);
  EXPECT_EQ(left_out["unseen_relation_triples"], 1);
  EXPECT_EQ(worst["triples"], 4);
  EXPECT_DOUBLE_EQ(worst["raw"]["tail"]["mean_rank"], (3.5 + 1 + 6 + 6) / 4);
  EXPECT_SAYS(succeed("eval rank run --test test.tsv").err,
              "test.tsv: 2 of 4 triples have a name without a row and are left out: entities zz; relations likes");
}

TEST_F(RankCommand, PrintsATableAndItsProgress) {
  const Outcome outcome = succeed("eval rank run --test test.tsv --by-relation");

  EXPECT_SAYS(outcome.out, "2 triples ranked among 5 entities; 2 with an unseen name left out; 0 answers are NaN\n");
  for (const char* line : {"MRR", "Hits@10", "\nfiltered ", "\n  head ", "\nraw ", "filtered, by relation\n  next "})
    EXPECT_SAYS(outcome.out, line);
  EXPECT_SAYS(outcome.err, "rank: 100 % (20 scores)");
  EXPECT_SAYS(outcome.err, "ranking heads and tails of 2 triples among 5 entities on cpu");
}

TEST_F(RankCommand, TakesAStoresTriplesAsKnown) {
  make("all.tsv", "aa\tnext\tbb\naa\tnext\tdd\nqq\tnext\taa\n");
  succeed("graph ingest all.tsv --triples --out store");

  // Of (aa, next, ?) bb and dd are known: cc is level with aa.
  const auto answer = json("eval rank run --test test.tsv --graph store");

  EXPECT_DOUBLE_EQ(answer["filtered"]["tail"]["mean_rank"], (1.5 + 1) / 2);
}

TEST_F(RankCommand, SamplesNegativesByASeed) {
  const std::string command = "eval rank run --test test.tsv --known train.tsv --negatives 7";
  const auto answer = json(command + " --seed 3");

  EXPECT_EQ(answer["negatives"], 7);
  EXPECT_EQ(answer["sample"], "uniform");
  EXPECT_EQ(answer["seed"], 3);
  EXPECT_LE(answer["filtered"]["mean_rank"], 8);
  EXPECT_EQ(json(command + " --seed 3 --threads 1"), answer);
  EXPECT_EQ(json(command + " --sample degree")["sample"], "degree");
}

TEST_F(RankCommand, RanksLinksOfNodeVectors) {
  fs::create_directories(folder_ / "nodes");
  make_embeddings(folder_ / "nodes", {{"q", {1, 0}}, {"far", {10, 10}}, {"near", {0.9f, 0.1f}}});
  make("pairs", "q near\n");

  EXPECT_EQ(json("eval rank nodes --test pairs")["filtered"]["tail"]["mean_rank"], 3);
  EXPECT_EQ(json("eval rank nodes --test pairs --metric cosine")["pairs"], 1);
  EXPECT_EQ(json("eval rank nodes/embeddings.npy --test pairs --metric l2")["filtered"]["tail"]["mean_rank"], 2);
  make("known", "far q\n");
  EXPECT_EQ(json("eval rank nodes --test pairs --known known")["filtered"]["tail"]["mean_rank"], 2);
  EXPECT_EQ(json("eval rank nodes --test pairs --known known --directed")["filtered"]["tail"]["mean_rank"], 3);
}

TEST_F(RankCommand, RefusesWhatDoesNotFit) {
  EXPECT_SAYS(refusal(2, "eval rank run"), "--test is required");
  EXPECT_SAYS(refusal(3, "eval rank run --test nosuch"), "nosuch");
  EXPECT_SAYS(refusal(3, "eval rank nosuch --test test.tsv"), "nosuch");
  EXPECT_SAYS(refusal(2, "eval rank run --test test.tsv --metric dot"), "--metric: the run is a knowledge graph's");
  EXPECT_SAYS(refusal(2, "eval rank run/embeddings --test test.tsv --by-relation"),
              "--by-relation: the run is not a knowledge graph's");
  EXPECT_SAYS(refusal(2, "eval rank run --test test.tsv --seed 2"), "--seed: nothing is sampled without --negatives");
  EXPECT_SAYS(refusal(2, "eval rank run --test test.tsv --negatives 0"), "--negatives");
  EXPECT_SAYS(refusal(2, "eval rank run --test test.tsv --negatives 3 --sample degree"), "--known files or --graph");
  make("strange.tsv", "x\tnext\ty\n");
  EXPECT_SAYS(refusal(3, "eval rank run --test strange.tsv"),
              "strange.tsv: no triple of known names (1 with an unknown one)");
  make("pairs.tsv", "aa\tbb\n");
  EXPECT_SAYS(refusal(3, "eval rank run --test pairs.tsv"), "pairs.tsv:1: expected 3 columns");
}

TEST_F(RankCommand, RefusesARunThatIsNotWhole) {
  write_run("odd", "distmult", {{"next", {1, 0}}, {"near", {0, 0}}, {"like", {0, 0}}}, true);
  EXPECT_SAYS(refusal(3, "eval rank odd --test test.tsv"), "odd: 3 rows of relations; expected two for each");

  fs::remove_all(folder_ / "run" / "relations");
  EXPECT_SAYS(refusal(3, "eval rank run --test test.tsv"), "run: holds neither relations/");
}

TEST_F(QueryOfTriples, AnswersFromEitherSideBestFirst) {
  const auto tails = json("query run --head aa --relation next -k 3");
  const auto heads = json("query run --tail cc --relation near -k 2");

  EXPECT_EQ(tails["head"], "aa");
  EXPECT_EQ(tails["asked"], "tail");
  ASSERT_EQ(tails["answers"].size(), 3u);
  EXPECT_EQ(tails["answers"][0]["name"], "bb");
  EXPECT_EQ(tails["answers"][1]["name"], "dd");
  EXPECT_EQ(tails["answers"][2]["name"], "aa");
  EXPECT_EQ(tails["answers"][2]["score"], -1);
  EXPECT_EQ(heads["answers"][0]["name"], "cc");
  EXPECT_EQ(succeed("query run --head aa --relation next -k 1").out, "# aa next ?: larger is likelier\nbb\t0\n");
}

TEST_F(QueryOfTriples, AsksAReciprocalModelForHeadsByTheRelationsSecondRow) {
  write_run("twice", "distmult", {{"next", {1, 0}}, {"next (inverse)", {-1, 0}}}, true);

  EXPECT_EQ(json("query twice --head bb --relation next -k 1")["answers"][0]["name"], "ee");
  EXPECT_EQ(json("query twice --tail bb --relation next -k 1")["answers"][0]["name"], "aa");
  EXPECT_SAYS(refusal(3, "query twice --tail bb --relation 'next (inverse)'"), "no relation is named");
}

TEST_F(QueryOfTriples, LeavesOutWhatIsKnown) {
  const auto answer = json("query run --head aa --relation next -k 1 --exclude-known train.tsv");

  EXPECT_EQ(answer["answers"][0]["name"], "dd");
}

TEST_F(QueryOfTriples, RefusesWhatDoesNotFit) {
  EXPECT_SAYS(refusal(3, "query run --head ab --relation next"), "no entity is named \"ab\"; names like it: ");
  EXPECT_SAYS(refusal(3, "query run --head aa --relation nxt"), "no relation is named \"nxt\"; names like it: next");
  EXPECT_SAYS(refusal(2, "query run --relation next"), "neither --head nor --tail is given");
  EXPECT_SAYS(refusal(2, "query run --relation next --head aa --tail bb"), "both --head and --tail are given");
  EXPECT_SAYS(refusal(2, "query run --head aa"), "--head requires --relation");
  EXPECT_SAYS(refusal(2, "query run --relation next --head aa --metric dot"), "--metric excludes --relation");
  EXPECT_SAYS(refusal(2, "query run aa --relation next --head aa"), "excludes");
  EXPECT_SAYS(refusal(2, "query run"), "NAME, or --relation with --head or --tail, is required");
  EXPECT_SAYS(refusal(3, "query run/embeddings --relation next --head aa"),
              "run/embeddings: not a run of a knowledge graph's model");
}

}  // namespace
}  // namespace gs
