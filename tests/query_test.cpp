#include "graphscale/query.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace gs {
namespace {

struct Table {
  explicit Table(std::vector<std::vector<float>> rows) : dim(int(rows[0].size())) {
    for (const auto& row : rows) {
      values.insert(values.end(), row.begin(), row.end());
      values.resize(values.size() + 3, std::nanf(""));  // a stride beyond dim: what lies there must not count
    }
    view = {values.data(), Offset(rows.size()), dim, dim + 3};
  }
  int dim;
  std::vector<float> values;
  Rows<const float> view;
};

/// Whole numbers in a small range give exact sums and many ties, others few.
Table random_table(Offset rows, int dim, bool whole, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<float>> values(std::size_t(rows), std::vector<float>(std::size_t(dim), 0.0f));
  for (auto& row : values)
    for (float& x : row)
      x = whole ? float(int(random() % 5) - 2) : std::uniform_real_distribution<float>(-1, 1)(random);
  return Table(values);
}

std::vector<RowId> rows_of(const std::vector<Neighbour>& answer) {
  std::vector<RowId> rows;
  for (const Neighbour& n : answer) rows.push_back(n.row);
  return rows;
}

double slow_score(Rows<const float> table, Offset a, Offset b, Metric metric) {
  double dot = 0, aa = 0, bb = 0, distance = 0;
  for (int c = 0; c < table.dim; ++c) {
    const double x = table(a, c), y = table(b, c);
    dot += x * y, aa += x * x, bb += y * y, distance += (x - y) * (x - y);
  }
  if (metric == Metric::dot) return dot;
  if (metric == Metric::l2) return std::sqrt(distance);
  return aa == 0 || bb == 0 ? 0 : dot / (std::sqrt(aa) * std::sqrt(bb));
}

std::vector<Neighbour> slow_nearest(Rows<const float> table, RowId query, const QueryOptions& options) {
  std::vector<Neighbour> all;
  for (Offset row = 0; row < table.count; ++row)
    if (options.include_self || row != Offset(query))
      all.push_back({RowId(row), float(slow_score(table, query, row, options.metric))});
  std::stable_sort(all.begin(), all.end(), [&](const Neighbour& a, const Neighbour& b) {
    return options.metric == Metric::l2 ? a.score < b.score : a.score > b.score;
  });
  all.resize(std::min(all.size(), std::size_t(options.k)));
  return all;
}

struct Case {
  Metric metric;
  int threads;
};

class Nearest : public testing::TestWithParam<Case> {};
class NearestTies : public testing::TestWithParam<Case> {};  // cosine has none but of equal rows: its norms round

TEST_P(Nearest, AgreesWithSortingAllRows) {
  constexpr float kLastBits = 1e-6f;  // sums are taken in another order
  const Table table = random_table(3000, 33, false, 1);
  const std::vector<RowId> queries{0, 17, 17, 2999};
  const QueryOptions options{GetParam().metric, 25, false, GetParam().threads};

  const auto answers = nearest(table.view, queries, options);

  ASSERT_EQ(answers.size(), queries.size());
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const auto expected = slow_nearest(table.view, queries[q], options);
    ASSERT_EQ(answers[q].size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(answers[q][i].score, expected[i].score, kLastBits * std::max(1.0f, std::abs(expected[i].score)));
      EXPECT_NEAR(slow_score(table.view, queries[q], answers[q][i].row, options.metric), answers[q][i].score,
                  kLastBits * std::max(1.0f, std::abs(expected[i].score)));
    }
  }
}

TEST_P(NearestTies, AreBrokenByAscendingRow) {
  const Table table = random_table(5000, 3, true, 2);
  const QueryOptions options{GetParam().metric, 400, false, GetParam().threads};

  const auto answer = nearest(table.view, {7}, options)[0];

  EXPECT_EQ(rows_of(answer), rows_of(slow_nearest(table.view, 7, options)));
}

TEST_P(Nearest, IsTheSameForAnyNumberOfThreads) {
  const Table table = random_table(5000, 3, true, 3);
  const QueryOptions one{GetParam().metric, 100, false, 1}, many{GetParam().metric, 100, false, GetParam().threads};

  EXPECT_EQ(rows_of(nearest(table.view, {5}, one)[0]), rows_of(nearest(table.view, {5}, many)[0]));
}

constexpr Case kCosine{Metric::cosine, 1}, kCosineThreads{Metric::cosine, 4}, kDot{Metric::dot, 1},
    kDotThreads{Metric::dot, 4}, kL2{Metric::l2, 1}, kL2Threads{Metric::l2, 4};
INSTANTIATE_TEST_SUITE_P(MetricsAndThreads, Nearest,
                         testing::Values(kCosine, kCosineThreads, kDot, kDotThreads, kL2, kL2Threads));
INSTANTIATE_TEST_SUITE_P(MetricsAndThreads, NearestTies, testing::Values(kDot, kDotThreads, kL2, kL2Threads));

const Table& twins() {  // n1, n2, n3, n4, z
  static const Table table({{1, 0}, {1, 0}, {3, 0}, {0, 1}, {0, 0}});
  return table;
}

TEST(NearestRows, LeaveOutTheQueriedRowAndNotItsTwin) {
  EXPECT_EQ(rows_of(nearest(twins().view, {1}, {Metric::dot, 2})[0]), (std::vector<RowId>{2, 0}));
  EXPECT_EQ(rows_of(nearest(twins().view, {1}, {Metric::cosine, 2})[0]), (std::vector<RowId>{0, 2}));
}

TEST(NearestRows, HoldTheQueriedRowWhereAsked) {
  EXPECT_EQ(rows_of(nearest(twins().view, {1}, {Metric::l2, 2, true})[0]), (std::vector<RowId>{0, 1}));
}

TEST(NearestRows, AreAllThatThereAreForATooLargeK) {
  EXPECT_EQ(nearest(twins().view, {1}, {Metric::cosine, 99})[0].size(), 4u);
  EXPECT_EQ(nearest(twins().view, {1}, {Metric::cosine, 99, true})[0].size(), 5u);
  EXPECT_EQ(nearest(twins().view, {1}, {Metric::cosine, std::numeric_limits<int>::max()})[0].size(), 4u);
}

TEST(NearestRows, AreNoneForKZero) {
  const auto answers = nearest(twins().view, {1, 2}, {Metric::cosine, 0});

  ASSERT_EQ(answers.size(), 2u);
  EXPECT_TRUE(answers[0].empty() && answers[1].empty());
}

TEST(NearestRows, RefuseANegativeKAndARowOutOfRange) {
  EXPECT_THROW(nearest(twins().view, {1}, {Metric::cosine, -1}), Error);
  EXPECT_THROW(nearest(twins().view, {5}, {Metric::cosine, 1}), Error);
}

TEST(NearestRows, ScoreZeroByCosineWhereAVectorIsZero) {
  testing::internal::CaptureStderr();

  const auto answer = nearest(twins().view, {4}, {Metric::cosine, 9})[0];

  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(rows_of(answer), (std::vector<RowId>{0, 1, 2, 3}));
  for (const Neighbour& n : answer) EXPECT_EQ(n.score, 0.0f);
  EXPECT_NE(log.find("1 of 5 rows are all zeros"), std::string::npos) << log;
}

TEST(NearestRows, HaveTheScoresOfTheirMetric) {
  const Table table({{1, 0}, {10, 10}, {0.9f, 0.1f}, {2, 0}});  // q, A, B, C

  const auto dot = nearest(table.view, {0}, {Metric::dot})[0];
  const auto cosine = nearest(table.view, {0}, {Metric::cosine})[0];
  const auto l2 = nearest(table.view, {0}, {Metric::l2})[0];

  EXPECT_EQ(rows_of(dot), (std::vector<RowId>{1, 3, 2}));
  EXPECT_FLOAT_EQ(dot[0].score, 10);
  EXPECT_FLOAT_EQ(dot[1].score, 2);
  EXPECT_FLOAT_EQ(dot[2].score, 0.9f);
  EXPECT_EQ(rows_of(cosine), (std::vector<RowId>{3, 2, 1}));
  EXPECT_FLOAT_EQ(cosine[0].score, 1);
  EXPECT_NEAR(cosine[1].score, 0.9939, 1e-4);
  EXPECT_NEAR(cosine[2].score, 0.7071, 1e-4);
  EXPECT_EQ(rows_of(l2), (std::vector<RowId>{2, 3, 1}));
  EXPECT_NEAR(l2[0].score, 0.1414, 1e-4);
  EXPECT_FLOAT_EQ(l2[1].score, 1);
  EXPECT_NEAR(l2[2].score, 13.4536, 1e-4);
}

TEST(NearestRows, HaveACosineWithinOneOfParallelVectors) {
  std::mt19937 random(4);
  std::vector<std::vector<float>> rows(200, std::vector<float>(17));
  for (float& x : rows[0]) x = std::uniform_real_distribution<float>(-1, 1)(random);
  for (std::size_t i = 1; i < rows.size(); ++i)
    for (std::size_t c = 0; c < 17; ++c) rows[i][c] = rows[0][c] * (i % 2 ? 1 : -1) * float(i);

  const auto answer = nearest(Table(rows).view, {0}, {Metric::cosine, 200})[0];

  for (const Neighbour& n : answer) {
    EXPECT_LE(std::abs(n.score), 1.0f);
    EXPECT_NEAR(std::abs(n.score), 1.0f, 1e-6f);
  }
}

TEST(NearestRows, AreFiniteAndInOrderForHugeAndTinyValues) {
  const float huge = 1e30f, tiny = 1e-30f;
  const Table table({{huge, huge}, {huge, tiny}, {tiny, tiny}, {-huge, -huge}});

  const auto cosine = nearest(table.view, {0}, {Metric::cosine, 9})[0];
  EXPECT_EQ(rows_of(cosine), (std::vector<RowId>{2, 1, 3}));
  EXPECT_FLOAT_EQ(cosine[0].score, 1);
  EXPECT_FLOAT_EQ(cosine[2].score, -1);
  for (const Metric metric : {Metric::dot, Metric::l2}) {
    const auto answer = nearest(table.view, {0}, {metric, 9})[0];
    for (const Neighbour& n : answer) EXPECT_TRUE(std::isfinite(n.score));
  }
}

}  // namespace
}  // namespace gs
