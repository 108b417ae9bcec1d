#include "graphscale/eval.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "src/eval/one_vs_rest.hpp"

namespace gs {
namespace {

constexpr double kLiblinearTolerance = 0.01;

struct Sample {
  std::vector<float> values;
  Rows<const float> vectors;
  Labels labels;
  LabelSplit split;
};

/// `rows` vectors around the centres of their classes, `spread` away from them; row r has the classes of_row(r).
template <class ClassesOf>
Sample make_sample(Offset rows, int dim, int classes, double spread, ClassesOf&& of_row) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> centres;
  centres.resize(std::size_t(classes), std::vector<double>(std::size_t(dim), 0.0));
  for (auto& centre : centres)
    for (double& x : centre) x = 3 * normal(random);

  Sample sample;
  for (int c = 0; c < classes; ++c) sample.labels.class_names.push_back(cat("class", c));
  for (Offset row = 0; row < rows; ++row) {
    const std::vector<int> own = of_row(row);
    for (int column = 0; column < dim; ++column) {
      double x = spread * normal(random);
      for (const int c : own) x += centres[c][column];
      sample.values.push_back(float(x));
    }
    sample.labels.rows.push_back(RowId(row));
    sample.labels.offsets.push_back(Offset(sample.labels.classes.size()));
    sample.labels.classes.insert(sample.labels.classes.end(), own.begin(), own.end());
  }
  sample.labels.offsets.push_back(Offset(sample.labels.classes.size()));
  sample.vectors = {sample.values.data(), rows, dim, dim};
  sample.split = random_split(rows, 0.5, 1);
  return sample;
}

std::vector<double> scores_of(const OneVsRest& model, const std::vector<float>& vector, int classes) {
  std::vector<double> scores(static_cast<std::size_t>(classes));
  model.scores(vector.data(), scores);
  return scores;
}

TEST(F1, EqualsItsDefinitionByPrecisionAndRecall) {
  std::mt19937 random(3);
  constexpr int kNodes = 200, kClasses = 7;
  std::vector<ClassCounts> counts(kClasses);
  double macro = 0, all_right = 0, all_predicted = 0, all_actual = 0;

  for (ClassCounts& count : counts) {
    double right = 0, predicted = 0, actual = 0;
    for (int node = 0; node < kNodes; ++node) {
      const bool said = random() % 3 == 0, is = random() % 4 == 0;
      right += said && is, predicted += said, actual += is;
    }
    count = {Offset(right), Offset(predicted), Offset(actual)};
    const double precision = right / predicted, recall = right / actual;
    macro += 2 * precision * recall / (precision + recall) / kClasses;
    all_right += right, all_predicted += predicted, all_actual += actual;
  }
  const double precision = all_right / all_predicted, recall = all_right / all_actual;

  EXPECT_NEAR(macro_f1(counts), macro, 1e-12);
  EXPECT_NEAR(micro_f1(counts), 2 * precision * recall / (precision + recall), 1e-12);
}

TEST(F1, AClassNeitherPredictedNorPresentCountsZeroInTheMacroMean) {
  const std::vector<ClassCounts> counts{{5, 5, 5}, {0, 0, 0}};

  EXPECT_EQ(macro_f1(counts), 0.5);
  EXPECT_EQ(micro_f1(counts), 1.0);
}

TEST(OneVsRest, EveryClassifierIsAtTheMinimumOfItsRegularizedLoss) {
  const Sample sample = make_sample(300, 5, 3, 4.0, [](Offset row) { return std::vector<int>{int(row % 3)}; });
  const int dim = sample.vectors.dim;

  const OneVsRest model(sample.vectors, sample.labels, sample.split.train, {});

  // The weights by probing: the scores of zero are the biases, those of a unit vector add one weight.
  const std::vector<double> biases = scores_of(model, std::vector<float>(std::size_t(dim)), 3);
  for (int label = 0; label < 3; ++label) {
    std::vector<double> weights(std::size_t(dim) + 1, biases[label]);
    for (int c = 0; c < dim; ++c) {
      std::vector<float> unit(static_cast<std::size_t>(dim));
      unit[c] = 1;
      weights[c] = scores_of(model, unit, 3)[label] - biases[label];
    }
    std::vector<double> gradient = weights, at_zero(weights.size());
    double positives = 0;
    for (const Offset i : sample.split.train) {
      const float* x = sample.vectors.row(i);
      const double target = sample.labels.of(i)[0] == label ? 1 : -1;
      double score = weights[dim];
      for (int c = 0; c < dim; ++c) score += weights[c] * x[c];
      const double slope = -target / (1 + std::exp(target * score));
      for (int c = 0; c <= dim; ++c) {
        gradient[c] += slope * (c < dim ? x[c] : 1);
        at_zero[c] += -target / 2 * (c < dim ? x[c] : 1);
      }
      positives += target > 0;
    }
    const double size = double(sample.split.train.size()), rarer = std::min(positives, size - positives) / size;
    const auto length = [](const std::vector<double>& v) {
      return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
    };
    EXPECT_LE(length(gradient), kLiblinearTolerance * rarer * length(at_zero) * 1.0001) << "class " << label;
  }
}

TEST(OneVsRest, AClassOfNoTrainingNodeIsBelowAllOthersAndOneOfAllIsAbove) {
  const Sample sample = make_sample(40, 3, 4, 1.0, [](Offset row) {
    return std::vector<int>{int(row % 2), 3};  // 2 is never there, 3 always
  });

  const OneVsRest model(sample.vectors, sample.labels, sample.split.train, {});

  const auto scores = scores_of(model, {1, 2, 3}, 4);
  EXPECT_EQ(scores[2], -INFINITY);
  EXPECT_EQ(scores[3], INFINITY);
  EXPECT_TRUE(std::isfinite(scores[0]) && std::isfinite(scores[1]));
}

TEST(Classify, SeparableClassesAreToldApartWithoutError) {
  const Sample sample = make_sample(400, 8, 4, 0.1, [](Offset row) { return std::vector<int>{int(row % 4)}; });

  const SplitScore score = classify(sample.vectors, sample.labels, sample.split, {});

  EXPECT_EQ(score.micro_f1, 1.0);
  EXPECT_EQ(score.macro_f1, 1.0);
  EXPECT_EQ(score.accuracy, 1.0);
}

TEST(Classify, LabelsThatDoNotDependOnTheVectorsScoreLikeChance) {
  Sample sample = make_sample(2000, 8, 4, 1.0, [](Offset row) { return std::vector<int>{int(row % 4)}; });
  std::mt19937 random(5);
  for (int& label : sample.labels.classes) label = int(random() % 4);

  const SplitScore score = classify(sample.vectors, sample.labels, sample.split, {});

  const double chance = 0.25, four_sd = 4 * std::sqrt(chance * (1 - chance) / 1000);
  EXPECT_NEAR(score.accuracy, chance, four_sd);
}

TEST(Classify, ATestNodeIsGivenItsBestScoredClassesAsManyAsItHas) {
  constexpr int kClasses = 5;
  const Sample sample = make_sample(300, 4, kClasses, 4.0, [](Offset row) {
    std::vector<int> own{int(row % kClasses)};
    if (row % 3 == 0) own.push_back(int((row + 1) % kClasses));
    if (row % 6 == 0) own.push_back(int((row + 3) % kClasses));
    std::sort(own.begin(), own.end());
    return own;
  });
  const OneVsRest model(sample.vectors, sample.labels, sample.split.train, {});
  double right[kClasses] = {}, wrong[kClasses] = {}, missed[kClasses] = {};
  for (const Offset i : sample.split.test) {
    const float* x = sample.vectors.row(i);
    const auto scores = scores_of(model, {x, x + 4}, kClasses);
    const Span<const int> own = sample.labels.of(i);
    for (int c = 0; c < kClasses; ++c) {
      const auto better = std::count_if(scores.begin(), scores.end(), [&](double s) { return s > scores[c]; });
      const bool predicted = better < own.size, actual = std::find(own.begin(), own.end(), c) != own.end();
      right[c] += predicted && actual, wrong[c] += predicted && !actual, missed[c] += !predicted && actual;
    }
  }
  double macro = 0, all_right = 0, all_wrong = 0, all_missed = 0;
  for (int c = 0; c < kClasses; ++c) {
    macro += right[c] / (right[c] + (wrong[c] + missed[c]) / 2) / kClasses;
    all_right += right[c], all_wrong += wrong[c], all_missed += missed[c];
  }
  ASSERT_EQ(all_wrong, all_missed);  // as many predicted as there are

  const SplitScore score = classify(sample.vectors, sample.labels, sample.split, {});

  EXPECT_NEAR(score.micro_f1, all_right / (all_right + all_wrong), 1e-12);
  EXPECT_NEAR(score.macro_f1, macro, 1e-12);
  EXPECT_GT(all_wrong, 0);
  EXPECT_TRUE(std::isnan(score.accuracy));
}

TEST(Classify, IsTheSameForAnyNumberOfThreads) {
  const Sample sample = make_sample(3000, 6, 9, 4.0, [](Offset row) { return std::vector<int>{int(row % 9)}; });

  const SplitScore one = classify(sample.vectors, sample.labels, sample.split, {false, 1, nullptr});

  EXPECT_LT(one.micro_f1, 0.99);
  for (const int threads : {2, 3, 16}) {
    const SplitScore many = classify(sample.vectors, sample.labels, sample.split, {false, threads, nullptr});
    EXPECT_EQ(many.micro_f1, one.micro_f1) << threads;
    EXPECT_EQ(many.macro_f1, one.macro_f1) << threads;
  }
}

TEST(Classify, LengthsOfRowsDoNotCountWhereTheyAreNormalized) {
  const Sample sample = make_sample(400, 4, 3, 4.0, [](Offset row) { return std::vector<int>{int(row % 3)}; });
  Sample stretched = sample;
  for (Offset row = 0; row < 400; ++row)  // powers of two: lengths change, directions do not by a bit
    for (int c = 0; c < 4; ++c) stretched.values[row * 4 + c] *= std::ldexp(1.0f, int(row % 7) - 3);
  stretched.vectors.data = stretched.values.data();
  const auto micro = [&](const Sample& s, bool normalize) {
    return classify(s.vectors, s.labels, s.split, {normalize, 1, nullptr}).micro_f1;
  };

  EXPECT_EQ(micro(stretched, true), micro(sample, true));
  EXPECT_NE(micro(stretched, false), micro(sample, false));
}

TEST(Classify, AZeroRowIsAVectorLikeAnother) {
  Sample sample = make_sample(60, 3, 2, 0.1, [](Offset row) { return std::vector<int>{int(row % 2)}; });
  std::fill_n(sample.values.begin(), 6, 0.0f);

  const SplitScore score = classify(sample.vectors, sample.labels, sample.split, {true, 1, nullptr});

  EXPECT_GE(score.accuracy, 28.0 / 30);
}

TEST(RandomSplit, EveryNodeIsInOnePart) {
  const LabelSplit split = random_split(1001, 0.3, 4);

  EXPECT_EQ(split.train.size(), 300u);
  std::vector<Offset> all = split.train;
  all.insert(all.end(), split.test.begin(), split.test.end());
  std::sort(all.begin(), all.end());
  std::vector<Offset> every(1001);
  std::iota(every.begin(), every.end(), Offset{0});
  EXPECT_EQ(all, every);
}

TEST(RandomSplit, ASmallerRatioTrainsOnTheFirstNodesOfALarger) {
  const LabelSplit small = random_split(100, 0.1, 2), large = random_split(100, 0.9, 2);

  EXPECT_TRUE(std::equal(small.train.begin(), small.train.end(), large.train.begin()));
}

TEST(RandomSplit, IsDecidedByTheSeedOnEveryMachine) {
  EXPECT_EQ(random_split(12, 0.5, 1).train, (std::vector<Offset>{6, 3, 2, 4, 0, 1}));  // as first computed
  EXPECT_NE(random_split(12, 0.5, 0).train, random_split(12, 0.5, 1).train);
}

TEST(RandomSplit, AllNodesAreEquallyLikelyToTrain) {
  constexpr int kSeeds = 4000;
  std::vector<int> trained(20);

  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    for (const Offset i : random_split(20, 0.25, seed).train) ++trained[i];

  const double mean = kSeeds * 0.25, five_sd = 5 * std::sqrt(kSeeds * 0.25 * 0.75);
  for (const int count : trained) EXPECT_NEAR(count, mean, five_sd);
}

TEST(RandomSplit, APartWithoutNodesIsRefused) {
  EXPECT_THROW(random_split(5, 0.1, 0), Error);
  EXPECT_THROW(random_split(1, 0.5, 0), Error);
  EXPECT_THROW(random_split(5, 1.0, 0), Error);
}

}  // namespace
}  // namespace gs
