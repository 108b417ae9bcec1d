#include <algorithm>

#include "graphscale/query.hpp"

#include "tests/support/folder.hpp"
#include "tests/support/triple_tables.hpp"

namespace gs {
namespace {

class BestAnswers : public testing::TestWithParam<Score> {};

TEST_P(BestAnswers, StandInTheOrderOfTheirRanks) {
  constexpr Offset kEntities = 5000;
  const TripleTables tables(GetParam(), kEntities, 2, 6, false, true, 1);
  MemoryLedger ledger{Device{}};

  for (const bool asks_head : {false, true}) {
    const TripleQuery query{7, 1, asks_head};
    const auto answers = best_answers(tables.model, query, kEntities, {}, 3);

    ASSERT_EQ(Offset(answers.size()), kEntities);
    Triples asked;  // each answer's rank, as eval finds it
    for (std::size_t i = 0; i < answers.size(); i += 37) {
      asked.heads.push_back(asks_head ? answers[i].row : query.entity), asked.relations.push_back(1);
      asked.tails.push_back(asks_head ? query.entity : answers[i].row);
    }
    const RankedTriples ranks = rank_triples(
        tables.model, asked, [](const TripleQuery&) { return Span<const RowId>(); }, {}, {{}, 2, nullptr, &ledger});
    for (std::size_t place = 0, i = 0; i < answers.size(); i += 37, ++place) {
      const AnswerPlace rank = (asks_head ? ranks.heads : ranks.tails)[place].raw;
      EXPECT_GE(i, rank.above);
      EXPECT_LE(i, rank.above + rank.ties);
    }
  }
}

TEST_P(BestAnswers, AreTheFirstOfAllWithEqualScoresByRow) {
  const TripleTables tables(GetParam(), 800, 2, 2, false, true, 2);
  const TripleQuery query{3, 0, true};
  const auto all = best_answers(tables.model, query, 800, {}, 1);

  const auto some = best_answers(tables.model, query, 25, {}, 4);

  ASSERT_EQ(some.size(), 25u);
  for (std::size_t i = 0; i < 25; ++i) EXPECT_EQ(some[i].row, all[i].row);
  for (std::size_t i = 1; i < 800; ++i)
    EXPECT_TRUE(all[i - 1].score > all[i].score || (all[i - 1].score == all[i].score && all[i - 1].row < all[i].row));
}

INSTANTIATE_TEST_SUITE_P(Scores, BestAnswers,
                         testing::Values(Score::transe_l1, Score::transe_l2, Score::distmult, Score::complex,
                                         Score::rotate),
                         [](const auto& info) { return name_of(info.param); });

TEST(BestAnswersOf, ALineLeaveOutWhoIsKnownAndPutNanLast) {
  std::vector<float> places{0, 1, NAN, 3, 1.5f};
  float step = 1;
  AnswerModel model;
  model.shape.score = Score::transe_l1, model.shape.dim = 1;
  model.entities = {places.data(), 5, 1, 1}, model.relations = {&step, 1, 1, 1};
  const std::vector<RowId> known{1};

  const auto answers = best_answers(model, {0, 0, false}, 99, known, 1);

  std::vector<RowId> rows;
  for (const Neighbour& answer : answers) rows.push_back(answer.row);
  EXPECT_EQ(rows, (std::vector<RowId>{4, 0, 3, 2}));
  EXPECT_EQ(answers[0].score, -0.5f);
  EXPECT_TRUE(best_answers(model, {0, 0, false}, 0, known, 1).empty());
}

TEST(BestAnswersOf, NoSuchRowAreRefused) {
  const TripleTables tables(Score::distmult, 5, 2, 4, true, true, 3);

  EXPECT_SAYS(sentence_of(Fault::internal, [&] { best_answers(tables.model, {5, 0, false}, 3, {}, 1); }), "entity 5");
  EXPECT_SAYS(sentence_of(Fault::internal,
                          [&] {
                            best_answers(tables.model, {0, 2, false}, 3, {}, 1);
                          }),
              "relation 2 of 2");
  EXPECT_SAYS(sentence_of(Fault::internal, [&] { best_answers(tables.model, {0, 0, false}, -1, {}, 1); }), "k is -1");
}

}  // namespace
}  // namespace gs
