#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "graphscale/eval.hpp"

#include "tests/support/embeddings_folder.hpp"

namespace gs {
namespace {

double slow_auc(const std::vector<double>& positive, const std::vector<double>& negative) {
  double won = 0;
  for (const double p : positive)
    for (const double n : negative) won += p > n ? 1 : p == n ? 0.5 : 0;
  return won / double(positive.size()) / double(negative.size());
}

/// Sum over thresholds, highest first, of (recall - recall before) precision.
double slow_average_precision(const std::vector<double>& positive, const std::vector<double>& negative) {
  std::set<double, std::greater<>> thresholds(positive.begin(), positive.end());
  thresholds.insert(negative.begin(), negative.end());
  const auto at_least = [](const std::vector<double>& scores, double threshold) {
    return double(std::count_if(scores.begin(), scores.end(), [&](double s) { return s >= threshold; }));
  };
  double sum = 0, recall_before = 0;
  for (const double threshold : thresholds) {
    const double hits = at_least(positive, threshold), misses = at_least(negative, threshold);
    const double recall = hits / double(positive.size());
    sum += (recall - recall_before) * hits / (hits + misses);
    recall_before = recall;
  }
  return sum;
}

TEST(LinkScores, EqualTheirDefinitionsUnderHeavyTies) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> positive(1 + random() % 60), negative(1 + random() % 60);
    const unsigned levels = 1 + random() % 12;
    for (double& s : positive) s = double(random() % levels) + 1;
    for (double& s : negative) s = double(random() % levels);

    const LinkReport report = link_scores(positive, negative);

    EXPECT_NEAR(report.auc, slow_auc(positive, negative), 1e-12) << "round " << round;
    EXPECT_NEAR(report.average_precision, slow_average_precision(positive, negative), 1e-12) << "round " << round;
  }
}

TEST(LinkScores, AConstantModelHasAnAucOfOneHalf) {
  const std::vector<double> positive(30, 1.0), negative(70, 1.0);

  const LinkReport report = link_scores(positive, negative);

  EXPECT_EQ(report.auc, 0.5);
  EXPECT_NEAR(report.average_precision, 0.3, 1e-12);
}

TEST(LinkScores, APerfectModelHasOneAndItsReverseZero) {
  const std::vector<double> high{INFINITY, 3, 2}, low{1, 0, -INFINITY};

  EXPECT_EQ(link_scores(high, low).auc, 1.0);
  EXPECT_EQ(link_scores(high, low).average_precision, 1.0);
  EXPECT_EQ(link_scores(low, high).auc, 0.0);
}

TEST(LinkScores, AnEmptySideAndNanAreRefused) {
  const std::vector<double> none, one{1.0}, bad{NAN};

  EXPECT_THROW(link_scores(none, one), Error);
  EXPECT_THROW(link_scores(one, none), Error);
  EXPECT_THROW(link_scores(one, bad), Error);
}

class EvalLink : public InFolder {
 protected:
  LinkReport judge(const NamedVectors& vectors, const std::string& positives, const std::string& negatives,
                   Metric metric = Metric::dot) const {
    const Embeddings embeddings = make_embeddings(folder_, vectors);
    return eval_link(embeddings, make("pos", positives), make("neg", negatives), metric);
  }

  const NamedVectors vectors_{{"q", {1, 0}}, {"far", {10, 10}}, {"near", {0.9f, 0.1f}}, {"z", {0, 0}}};
};

TEST_F(EvalLink, DotFavoursLengthCosineDirectionAndL2Nearness) {
  EXPECT_EQ(judge(vectors_, "q\tnear\n", "q\tfar\n", Metric::dot).auc, 0.0);
  EXPECT_EQ(judge(vectors_, "q\tnear\n", "q\tfar\n", Metric::cosine).auc, 1.0);
  EXPECT_EQ(judge(vectors_, "q\tnear\n", "q\tfar\n", Metric::l2).auc, 1.0);
}

TEST_F(EvalLink, TheCosineWithAZeroVectorIsZero) {
  const NamedVectors vectors{{"a", {1, 0}}, {"b", {0, 1}}, {"z", {0, 0}}};

  EXPECT_EQ(judge(vectors, "a\tb\n", "a\tz\n", Metric::cosine).auc, 0.5);
}

TEST_F(EvalLink, PairsWithUnknownNamesAreCountedAndLeftOut) {
  const LinkReport report = judge(vectors_, "q\tfar\nq\tzeta\n", "q\tz\neta\tzeta\nnear\tz\n");

  EXPECT_EQ(report.positives, 1);
  EXPECT_EQ(report.negatives, 2);
  EXPECT_EQ(report.unknown_pairs, 2);
  EXPECT_EQ(report.auc, 1.0);
}

TEST_F(EvalLink, FurtherColumnsAreNotRead) { EXPECT_EQ(judge(vectors_, "q far 0.5 1999\n", "q z 1 2001\n").auc, 1.0); }

TEST_F(EvalLink, AFileWithoutAPairOfKnownNamesIsRefused) {
  EXPECT_SAYS(sentence_of(Fault::input, [&] { judge(vectors_, "", "q\tz\n"); }), "pos: no pair");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { judge(vectors_, "q\tz\n", "zeta\teta\n"); }), "neg: no pair");
}

TEST_F(EvalLink, ALineOfOneFieldAndAPairInBothFilesAreRefusedByLine) {
  EXPECT_SAYS(sentence_of(Fault::input, [&] { judge(vectors_, "q\tfar\nq\n", "q\tz\n"); }), "pos:2: ");
  EXPECT_SAYS(sentence_of(Fault::input, [&] { judge(vectors_, "q\tfar\n", "q\tz\nq\tfar\n"); }), "neg:2: ");
}

TEST_F(EvalLink, ANegativeMayBeAPositiveReversedAsInADirectedGraph) {
  EXPECT_EQ(judge(vectors_, "q\tfar\n", "far\tq\n").auc, 0.5);
}

}  // namespace
}  // namespace gs
