#include <algorithm>

#include "graphscale/eval.hpp"

#include "tests/support/embeddings_folder.hpp"
#include "tests/support/triple_tables.hpp"

namespace gs {
namespace {

/// Ranks on the CPU, with a ledger of its own.
struct Ranked {
  Ranked(const AnswerModel& model, const Triples& triples, const KnownLookup& known, const RankOptions& options = {},
         int threads = 1)
      : exec{{}, threads, nullptr, &ledger} {
    ranks = rank_triples(model, triples, known, options, exec);
  }
  MemoryLedger ledger{Device{}};
  Exec exec;
  RankedTriples ranks;
};

bool same(const RankedTriples& a, const RankedTriples& b) {
  const auto equal = [](const AnswerPlaces& x, const AnswerPlaces& y) {
    return x.raw.rank() == y.raw.rank() && x.filtered.rank() == y.filtered.rank();
  };
  return std::equal(a.heads.begin(), a.heads.end(), b.heads.begin(), b.heads.end(), equal) &&
         std::equal(a.tails.begin(), a.tails.end(), b.tails.begin(), b.tails.end(), equal) &&
         a.nan_answers == b.nan_answers && a.nan_scores == b.nan_scores;
}

KnownAnswers known_of(const Triples& asked, const std::vector<const Triples*>& further = {}) {
  KnownAnswers known(asked);
  for (const Triples* triples : further)
    for (std::size_t i = 0; i < triples->heads.size(); ++i)
      known.add(triples->heads[i], triples->relations[i], triples->tails[i]);
  known.finish();
  return known;
}

Span<const RowId> nothing_known(const TripleQuery&) { return {}; }

// ------------------------------------------------------------------------------------------------------------ scores

struct ModelCase {
  Score score;
  bool reciprocal;
};

class OfModels : public testing::TestWithParam<ModelCase> {};

TEST_P(OfModels, AnswerScoresAreTheModelsDefinition) {
  constexpr double kLastBits = 2e-6;  // float sums of up to 42 terms near 1
  const auto [score, reciprocal] = GetParam();
  const TripleTables tables(score, 9000, 3, 42, reciprocal, false, 1);

  for (const TripleQuery query : {TripleQuery{17, 2, false}, TripleQuery{8999, 0, true}}) {
    const std::vector<float> scores = answer_scores(tables.model, query, 3);

    ASSERT_EQ(scores.size(), 9000u);
    for (RowId row = 0; row < 9000; row += 7)
      EXPECT_NEAR(scores[row], tables.slow_score(query, row), kLastBits * 42) << "row " << row;
  }
}

TEST_P(OfModels, RanksAgreeWithCountingEveryCandidate) {
  const auto [score, reciprocal] = GetParam();
  const TripleTables tables(score, 301, 4, 6, reciprocal, true, 2);
  const Triples test = random_triples(97, 301, 4, 3), train = random_triples(6000, 301, 4, 4);
  const KnownAnswers known = known_of(test, {&train});

  const RankedTriples ranks = Ranked(tables.model, test, known.lookup()).ranks;

  double ties = 0;
  ASSERT_EQ(ranks.heads.size(), 97u);
  for (std::size_t i = 0; i < 97; ++i)
    for (const bool asks_head : {true, false}) {
      const TripleQuery query = query_of(test, i, asks_head);
      const RowId answer = answer_of(test, i, asks_head);
      const std::vector<float> scores = answer_scores(tables.model, query, 1);
      const AnswerPlaces& places = (asks_head ? ranks.heads : ranks.tails)[i];
      EXPECT_EQ(places.raw.rank(), slow_rank(scores, answer, {})) << i;
      EXPECT_EQ(places.filtered.rank(), slow_rank(scores, answer, slow_known({&test, &train}, query))) << i;
      ties += places.raw.ties;
    }
  EXPECT_TRUE(ties > 0 || score == Score::rotate);  // whole numbers tie, turned ones hardly
}

TEST_P(OfModels, RanksAreTheSameForAnyThreadsAndBlocks) {
  const auto [score, reciprocal] = GetParam();
  const TripleTables tables(score, 5003, 3, 10, reciprocal, true, 5);
  const Triples test = random_triples(130, 5003, 3, 6), train = random_triples(9000, 5003, 3, 7);
  const KnownAnswers known = known_of(test, {&train});
  const RankedTriples expected = Ranked(tables.model, test, known.lookup()).ranks;

  for (const auto& [threads, queries, entities] :
       std::vector<std::array<int, 3>>{{2, 0, 0}, {8, 0, 0}, {1, 1, 37}, {2, 7, 5003}, {8, 129, 99}, {2, 1000, 1}}) {
    if (entities == 1 && score != Score::distmult) continue;  // slow
    RankOptions options;
    options.query_block = queries, options.entity_block = entities;

    EXPECT_TRUE(same(Ranked(tables.model, test, known.lookup(), options, threads).ranks, expected))
        << threads << " threads, blocks of " << queries << " queries and " << entities << " entities";
  }
}

TEST_P(OfModels, RanksOnAGpuAreThoseOfTheCpu) {
  Device device;
  try {
    device = choose_device("cuda");
  } catch (const Error& error) {
    GTEST_SKIP() << "cuda: " << error.what();
  }
  const auto [score, reciprocal] = GetParam();
  if (score == Score::rotate) GTEST_SKIP() << "sine and cosine have other last bits";
  const TripleTables tables(score, 20'003, 3, 8, reciprocal, true, 8);  // whole numbers: sums are exact
  const Triples test = random_triples(1500, 20'003, 3, 9);
  const KnownAnswers known = known_of(test);
  MemoryLedger ledger(device);

  const RankedTriples ranks = rank_triples(tables.model, test, known.lookup(), {}, {device, 8, nullptr, &ledger});

  EXPECT_TRUE(same(ranks, Ranked(tables.model, test, known.lookup(), {}, 8).ranks));
  EXPECT_LE(ledger.peak_bytes(), rank_bytes(tables.model, 1500, {}, {device, 8, nullptr, &ledger}));
}

INSTANTIATE_TEST_SUITE_P(Models, OfModels,
                         testing::Values(ModelCase{Score::transe_l1, false}, ModelCase{Score::transe_l2, true},
                                         ModelCase{Score::distmult, false}, ModelCase{Score::complex, false},
                                         ModelCase{Score::complex, true}, ModelCase{Score::rotate, false},
                                         ModelCase{Score::rotate, true}),
                         [](const auto& info) {
                           return cat(name_of(info.param.score), info.param.reciprocal ? "_reciprocal" : "");
                         });

// ------------------------------------------------------------------------------------------------------------- ranks

/// Entities at places 0, 1, ... on a line; relation 0 goes one place up, relation 1 stays.
struct Line {
  explicit Line(std::vector<float> all_places) : places(std::move(all_places)) {
    model.shape.score = Score::transe_l1, model.shape.dim = 1;
    model.entities = {places.data(), Offset(places.size()), 1, 1};
    model.relations = {steps, 2, 1, 1};
  }
  std::vector<float> places;
  float steps[2] = {1, 0};
  AnswerModel model;
};

TEST(Ranks, OfAHandCheckedCase) {
  const Line line({0, 1, 2, 3, 1});
  Triples test;
  test.heads = {0, 1}, test.relations = {0, 0}, test.tails = {2, 3};
  Triples train;
  train.heads = {0}, train.relations = {0}, train.tails = {1};
  const KnownAnswers known = known_of(test, {&train});

  const RankedTriples ranks = Ranked(line.model, test, known.lookup()).ranks;

  // (0, up, ?): places 1 and 1 at distance 0 (rows 1, 4), then 0 and 2 at distance 1 (rows 0, 2). Row 1 is known.
  EXPECT_EQ(ranks.tails[0].raw.rank(), 3.5);
  EXPECT_EQ(ranks.tails[0].filtered.rank(), 2.5);
  // (1, up, ?): place 2 (row 2), then 1, 3 and 1 at distance 1.
  EXPECT_EQ(ranks.tails[1].raw.rank(), 3);
  // (?, up, 2): places 1 and 1 (rows 1, 4), then 0 and 2 (rows 0, 2).
  EXPECT_EQ(ranks.heads[0].raw.rank(), 3.5);
  // (?, up, 3): place 2 (row 2), then 1, 1 and 3 at distance 1 (rows 1, 3, 4).
  EXPECT_EQ(ranks.heads[1].filtered.rank(), 3);
}

TEST(Ranks, OfAConstantModelAreTheMeanAndOfAPerfectOneAreOne) {
  const Line constant({1, 1, 1, 1, 1}), perfect({0, 1, 5, 9, 13});
  Triples test;
  test.heads = {0}, test.relations = {0}, test.tails = {1};

  EXPECT_EQ(Ranked(constant.model, test, nothing_known).ranks.tails[0].raw.rank(), 3);
  EXPECT_EQ(Ranked(perfect.model, test, nothing_known).ranks.tails[0].raw.rank(), 1);
  EXPECT_EQ(Ranked(perfect.model, test, nothing_known).ranks.heads[0].raw.rank(), 1);
}

TEST(Ranks, OfARandomModelHaveTheirHitsByChance) {
  const TripleTables tables(Score::distmult, 1000, 1, 16, false, false, 10);
  const RankingReport report = mean_ranks(Ranked(tables.model, random_triples(3000, 1000, 1, 11), nothing_known).ranks);

  EXPECT_NEAR(report.raw.both.hits_at_10, 0.01, 0.005);  // 6000 queries: 3.9 standard deviations
  EXPECT_NEAR(report.raw.both.mean_rank, 500.5, 15);
}

TEST(Ranks, NanIsBehindEveryNumberAndIsCounted) {
  Line line({0, NAN, 1, NAN, 5});
  Triples test;
  test.heads = {0, 0}, test.relations = {0, 0}, test.tails = {2, 3};
  Triples train;
  train.heads = {0}, train.relations = {0}, train.tails = {1};
  const KnownAnswers known = known_of(test, {&train});

  const RankedTriples ranks = Ranked(line.model, test, known.lookup()).ranks;

  EXPECT_EQ(ranks.tails[0].raw.rank(), 1);
  EXPECT_EQ(ranks.tails[1].raw.rank(), 5);       // behind the other NaN, too
  EXPECT_EQ(ranks.tails[1].filtered.rank(), 3);  // rows 1 and 2 are known
  EXPECT_EQ(ranks.heads[1].raw.rank(), 5);       // nobody has a score
  EXPECT_EQ(ranks.nan_answers, 2);
  EXPECT_EQ(ranks.nan_scores, 2 + 2 + 2 + 5);
}

TEST(Ranks, RefuseRowsThatAreNotThere) {
  const Line line({0, 1});
  Triples test;
  test.heads = {0}, test.relations = {2}, test.tails = {1};

  EXPECT_SAYS(sentence_of(Fault::internal, [&] { Ranked(line.model, test, nothing_known); }), "relation 2 of 2");
}

TEST(Ranks, HoldWhatTheyPlannedHoweverManyEntities) {
  for (const Offset entities : {2000, 200'000}) {
    const TripleTables tables(Score::transe_l1, entities, 2, 3, false, true, 12);
    const Triples test = random_triples(70, 2000, 2, 13);

    const Ranked alone(tables.model, test, nothing_known), together(tables.model, test, nothing_known, {}, 3);

    EXPECT_EQ(alone.ledger.peak_bytes(), rank_bytes(tables.model, 70, {}, alone.exec));
    EXPECT_EQ(rank_bytes(tables.model, 70, {}, together.exec), 3 * alone.ledger.peak_bytes());
    EXPECT_LE(together.ledger.peak_bytes(), 3 * alone.ledger.peak_bytes());  // one may end before another begins
    EXPECT_LT(alone.ledger.peak_bytes(), 1 << 18);
  }
}

// ------------------------------------------------------------------------------------------------------------ sample

RankOptions sampled(Offset negatives, const std::vector<double>& degrees = {}, std::uint64_t seed = 1) {
  RankOptions options;
  options.negatives = negatives, options.degrees = degrees, options.seed = seed;
  return options;
}

TEST(SampledRanks, AreTheSameForAnyThreadsAndBlocksAndOthersForAnotherSeed) {
  const TripleTables tables(Score::complex, 700, 3, 8, false, true, 14);
  const Triples test = random_triples(200, 700, 3, 15), train = random_triples(4000, 700, 3, 16);
  const KnownAnswers known = known_of(test, {&train});
  const RankedTriples expected = Ranked(tables.model, test, known.lookup(), sampled(500)).ranks;

  for (const auto& [threads, queries, entities] :
       std::vector<std::array<int, 3>>{{2, 0, 0}, {8, 7, 0}, {2, 64, 33}, {1, 1, 3}, {3, 100, 7}}) {
    RankOptions options = sampled(500);
    options.query_block = queries, options.entity_block = entities;

    EXPECT_TRUE(same(Ranked(tables.model, test, known.lookup(), options, threads).ranks, expected))
        << threads << " threads, blocks of " << queries << " queries and " << entities << " entities";
  }
  EXPECT_FALSE(same(Ranked(tables.model, test, known.lookup(), sampled(500, {}, 2)).ranks, expected));
}

TEST(SampledRanks, EstimateTheShareOfEntitiesAbove) {
  const TripleTables tables(Score::distmult, 400, 2, 8, false, false, 17);
  const Triples test = random_triples(50, 400, 2, 18), train = random_triples(3000, 400, 2, 19);
  const KnownAnswers known = known_of(test, {&train});
  const RankedTriples all = Ranked(tables.model, test, known.lookup()).ranks;

  const RankedTriples some = Ranked(tables.model, test, known.lookup(), sampled(20'000)).ranks;

  constexpr double kSixDeviations = 6 * 0.5 / 141.4;  // of a share of 20,000 draws
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_NEAR(some.tails[i].raw.above / 20'000.0, all.tails[i].raw.above / 400.0, kSixDeviations) << i;
    EXPECT_NEAR(some.heads[i].filtered.above / 20'000.0, all.heads[i].filtered.above / 400.0, kSixDeviations) << i;
  }
}

TEST(SampledRanks, ByDegreeDrawInProportionToIt) {
  const Line line({0, 1, 4, 1.5, 9});  // (0, up, ?) is answered by row 1, then by rows 3, 0, 2, 4
  Triples test;
  test.heads = {0, 0}, test.relations = {0, 0}, test.tails = {2, 1};

  const RankedTriples ranks = Ranked(line.model, test, nothing_known, sampled(10'000, {0, 3, 0, 1, 4})).ranks;

  EXPECT_NEAR(ranks.tails[0].raw.above, 5000, 300);  // rows 1 and 3 of row 2's better ones
  EXPECT_EQ(ranks.tails[1].raw.rank(), 1);           // the answer itself is drawn and does not count
}

TEST(SampledRanks, EndWhereEveryEntityIsKnown) {
  const Line line({0, 1, 2});
  Triples test;  // the complete graph, loops among it
  for (RowId head = 0; head < 3; ++head)
    for (RowId tail = 0; tail < 3; ++tail)
      test.heads.push_back(head), test.relations.push_back(0), test.tails.push_back(tail);
  const KnownAnswers known = known_of(test);

  const RankingReport report = mean_ranks(Ranked(line.model, test, known.lookup(), sampled(1000)).ranks);

  EXPECT_EQ(report.filtered.both.mean_rank, 1);
  EXPECT_GT(report.raw.both.mean_rank, 1);
}

// ------------------------------------------------------------------------------------------------------------- known

TEST(Known, AnswersAreThoseOfAnIndexOfAllTriples) {
  const Triples test = random_triples(60, 40, 3, 20), train = random_triples(900, 40, 3, 21);
  const KnownAnswers asked = known_of(test, {&train});
  const std::vector<Offset> no_arcs(41, 0);
  Csr empty;
  empty.offsets = no_arcs, empty.num_relations = 3;
  const TripleIndex index(empty, {&test, &train});
  const KnownLookup all = known_in(index.view());

  for (std::size_t i = 0; i < 60; ++i)
    for (const bool asks_head : {true, false}) {
      const TripleQuery query = query_of(test, i, asks_head);
      const std::set<RowId> expected = slow_known({&test, &train}, query);
      for (const Span<const RowId> known : {asked.answers(query), all(query)})
        EXPECT_EQ(std::vector<RowId>(known.begin(), known.end()), std::vector<RowId>(expected.begin(), expected.end()));
    }
  EXPECT_TRUE(asked.answers({39, 7, true}).empty());  // nobody asked
}

// ------------------------------------------------------------------------------------------------------------- means

TEST(MeanRanks, AreTheirDefinitions) {
  RankedTriples ranked;
  ranked.heads = {{{3, 0}, {1, 0}}, {{9, 1}, {9, 0}}};  // raw 4, 10.5; filtered 2, 10
  ranked.tails = {{{0, 0}, {0, 0}}, {{0, 1}, {0, 1}}};  // 1, 1.5

  const RankingReport report = mean_ranks(ranked, 1, 100);

  EXPECT_EQ(report.triples, 3);
  EXPECT_EQ(report.filtered.head.queries, 3);
  EXPECT_EQ(report.filtered.both.queries, 6);
  EXPECT_NEAR(report.filtered.head.mrr, (0.5 + 0.1 + 0.01) / 3, 1e-12);
  EXPECT_NEAR(report.filtered.tail.mean_rank, (1 + 1.5 + 100) / 3, 1e-12);
  EXPECT_NEAR(report.raw.both.mrr, (1 / 4.0 + 1 / 10.5 + 1 + 1 / 1.5 + 0.02) / 6, 1e-12);
  EXPECT_NEAR(report.filtered.both.hits_at_1, 1 / 6.0, 1e-12);
  EXPECT_NEAR(report.filtered.both.hits_at_3, 3 / 6.0, 1e-12);
  EXPECT_NEAR(report.filtered.both.hits_at_10, 4 / 6.0, 1e-12);
  EXPECT_NEAR(report.raw.both.hits_at_10, 3 / 6.0, 1e-12);  // 10.5 is not within 10
}

// ------------------------------------------------------------------------------------------------------------- pairs

class RankPairs : public InFolder {
 protected:
  RankingReport rank(const NamedVectors& vectors, Metric metric, const std::string& test, RankFiles files = {},
                     const RankOptions& options = {}) const {
    const Embeddings embeddings = make_embeddings(folder_, vectors);
    files.test = make("test", test);
    MemoryLedger ledger{Device{}};
    return eval_rank(embeddings, metric, files, options, {{}, 2, nullptr, &ledger});
  }
  RankFiles known(const std::string& lines) const {
    RankFiles files;
    files.known = {make("known", lines)};
    return files;
  }

  const NamedVectors vectors_{{"q", {1, 0}}, {"far", {10, 10}}, {"near", {0.9f, 0.1f}}, {"z", {0, 0}}};
};

TEST_F(RankPairs, ByTheMetricThatIsNamed) {
  // tails of q: by product far 10, q 1, near .9, z 0; by direction q 1, near .994, far .71, z 0; by nearness q, near, z
  EXPECT_EQ(rank(vectors_, Metric::dot, "q near\n").filtered.tail.mean_rank, 3);
  EXPECT_EQ(rank(vectors_, Metric::cosine, "q near\n").filtered.tail.mean_rank, 2);
  EXPECT_EQ(rank(vectors_, Metric::cosine, "q z\n").filtered.tail.mean_rank, 4);
  EXPECT_EQ(rank(vectors_, Metric::l2, "q z\n").filtered.tail.mean_rank, 3);
}

TEST_F(RankPairs, KnownPairsAreNoCandidatesInEitherDirectionUnlessDirected) {
  EXPECT_EQ(rank(vectors_, Metric::dot, "q near\n", known("q far 0.5\n")).filtered.tail.mean_rank, 2);
  EXPECT_EQ(rank(vectors_, Metric::dot, "q near\n", known("far q\n")).filtered.tail.mean_rank, 2);
  EXPECT_EQ(rank(vectors_, Metric::dot, "q near\n", known("q far\n")).raw.tail.mean_rank, 3);

  RankFiles directed = known("far q\n");
  directed.directed = true;
  EXPECT_EQ(rank(vectors_, Metric::dot, "q near\n", directed).filtered.tail.mean_rank, 3);
}

TEST_F(RankPairs, AStoresEdgesAreKnownAndDecideDirection) {
  IngestOptions options;
  IngestCounts counts;
  for (const bool directed : {false, true}) {
    options.directed = directed;
    const fs::path store = folder_ / (directed ? "directed" : "undirected");
    publish(store, ingest({make("edges", "far q\nfar stranger\n")}, options, counts), "test");
    RankFiles files;
    files.graph = store;

    EXPECT_EQ(rank(vectors_, Metric::dot, "q near\n", files).filtered.tail.mean_rank, directed ? 3 : 2);
  }
}

TEST_F(RankPairs, UnseenNamesAreCountedNamedAndTreatedAsAsked) {
  RankFiles worst;
  worst.unseen_worst = true;
  testing::internal::CaptureStderr();

  const RankingReport left_out = rank(vectors_, Metric::dot, "q far\nq zeta\neta zeta\n");

  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_SAYS(log, "2 of 3 pairs have a name without a row and are left out: nodes zeta, eta");
  EXPECT_EQ(left_out.triples, 1);
  EXPECT_EQ(left_out.unseen_triples, 2);
  EXPECT_EQ(left_out.filtered.tail.mean_rank, 1);
  const RankingReport last = rank(vectors_, Metric::dot, "q far\nq zeta\neta zeta\n", worst);
  EXPECT_EQ(last.triples, 3);
  EXPECT_EQ(last.filtered.tail.mean_rank, (1 + 5 + 5) / 3.0);
}

TEST_F(RankPairs, BadFilesAndContradictionsAreRefused) {
  EXPECT_SAYS(sentence_of(Fault::input, [&] { rank(vectors_, Metric::dot, "zeta eta\n"); }),
              "no pair of known names (1 with an unknown one)");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { rank(vectors_, Metric::dot, "q far\nq\n"); }), "test:2: one field");
  RankFiles by_degree, by_relation;
  by_degree.by_degree = true, by_relation.by_relation = true;
  EXPECT_SAYS(sentence_of(Fault::usage, [&] { rank(vectors_, Metric::dot, "q far\n", by_degree, sampled(3)); }),
              "name --known files or --graph");
  EXPECT_SAYS(sentence_of(Fault::usage, [&] { rank(vectors_, Metric::dot, "q far\n", by_relation); }), "no relations");
  by_degree.known = {make("strangers", "x y\n")};
  EXPECT_SAYS(sentence_of(Fault::input, [&] { rank(vectors_, Metric::dot, "q far\n", by_degree, sampled(3)); }),
              "no known pair has names of the run");
}

}  // namespace
}  // namespace gs
