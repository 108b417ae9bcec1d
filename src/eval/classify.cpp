#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "src/eval/one_vs_rest.hpp"

namespace gs {
namespace {

struct Tally {
  std::vector<ClassCounts> classes;
  Offset exact = 0;  ///< nodes whose predicted classes are their classes
};

/// Gives every test node as many classes as it has, the best-scored ones; equal scores by ascending class.
Tally predict(const OneVsRest& model, Rows<const float> vectors, const Labels& labels, Span<const Offset> test,
              int threads) {
  const std::size_t classes = std::size_t(labels.num_classes());
  std::vector<Tally> tallies(std::size_t(threads), Tally{std::vector<ClassCounts>(classes)});
  parallel_for(threads, test.size, 256, [&](Offset first, Offset last, int thread) {
    Tally& tally = tallies[thread];
    std::vector<double> scores(classes);
    std::vector<int> order(classes);
    for (Offset i = first; i < last; ++i) {
      const Span<const int> actual = labels.of(test[i]);
      model.scores(vectors.row(labels.rows[test[i]]), scores);
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + actual.size, order.end(),
                        [&](int a, int b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
      Offset right = 0;
      for (Offset k = 0; k < actual.size; ++k) {
        const bool is_right = std::binary_search(actual.begin(), actual.end(), order[k]);
        tally.classes[order[k]].predicted += 1;
        tally.classes[order[k]].right += is_right;
        tally.classes[actual[k]].actual += 1;
        right += is_right;
      }
      tally.exact += right == actual.size;
    }
  });

  Tally& total = tallies[0];
  for (std::size_t thread = 1; thread < tallies.size(); ++thread) {
    total.exact += tallies[thread].exact;
    for (std::size_t c = 0; c < classes; ++c) {
      total.classes[c].right += tallies[thread].classes[c].right;
      total.classes[c].predicted += tallies[thread].classes[c].predicted;
      total.classes[c].actual += tallies[thread].classes[c].actual;
    }
  }
  return std::move(total);
}

double f1(const ClassCounts& counts) {
  const Offset both = counts.predicted + counts.actual;
  return both > 0 ? 2 * double(counts.right) / double(both) : 0;
}

Statistic statistic(const std::vector<SplitScore>& splits, double SplitScore::*field) {
  double sum = 0, squares = 0;
  for (const SplitScore& split : splits) sum += split.*field;
  const double mean = sum / double(splits.size());
  for (const SplitScore& split : splits) squares += (split.*field - mean) * (split.*field - mean);
  return {mean, std::sqrt(squares / double(splits.size()))};
}

ClassifyScore summary(double ratio, const LabelSplit& split, const std::vector<SplitScore>& scores) {
  return {ratio,
          int(scores.size()),
          Offset(split.train.size()),
          Offset(split.test.size()),
          statistic(scores, &SplitScore::micro_f1),
          statistic(scores, &SplitScore::macro_f1),
          statistic(scores, &SplitScore::accuracy)};
}

}  // namespace

double micro_f1(Span<const ClassCounts> classes) {
  ClassCounts total;
  for (const ClassCounts& counts : classes) {
    total.right += counts.right;
    total.predicted += counts.predicted;
    total.actual += counts.actual;
  }
  return f1(total);
}

double macro_f1(Span<const ClassCounts> classes) {
  double sum = 0;
  for (const ClassCounts& counts : classes) sum += f1(counts);
  return sum / double(classes.size);
}

SplitScore classify(Rows<const float> vectors, const Labels& labels, const LabelSplit& split,
                    const ClassifierOptions& options) {
  GS_EXPECT(!split.train.empty() && !split.test.empty(), "classify: ", split.train.size(), " nodes to train on, ",
            split.test.size(), " to test on; both must have one");
  GS_EXPECT(labels.rows.back() < vectors.count, "classify: row ", labels.rows.back(), " of ", vectors.count);
  const OneVsRest model(vectors, labels, split.train, options);
  const Tally tally = predict(model, vectors, labels, split.test, options.threads);
  const double accuracy =
      labels.multi_label() ? std::numeric_limits<double>::quiet_NaN() : double(tally.exact) / double(split.test.size());
  return {micro_f1(tally.classes), macro_f1(tally.classes), accuracy};
}

void check_classify(const ClassifyOptions& options) {
  if (!options.split_file.empty()) return;
  if (options.seeds < 1) throw Error(Fault::usage, cat("seeds: ", options.seeds, "; at least 1 is expected"));
  if (options.ratios.empty()) throw Error(Fault::usage, "ratios: none given; at least one is expected");
  for (const double ratio : options.ratios)
    if (!(ratio > 0 && ratio < 1))
      throw Error(Fault::usage, cat("ratios: ", ratio, "; numbers between 0 and 1 are expected"));
}

ClassifyReport eval_classify(const Embeddings& embeddings, const fs::path& labels_file,
                             const ClassifyOptions& options) {
  check_classify(options);
  const Rows<const float> vectors = embeddings.rows();
  const Labels labels = read_labels(labels_file, embeddings.names());
  ClassifyReport report;
  report.labelled = labels.count();
  report.unknown_nodes = labels.unknown_nodes;
  report.unlabelled_rows = vectors.count - labels.count();
  report.classes = labels.num_classes();
  report.multi_label = labels.multi_label();
  const bool fixed = !options.split_file.empty();
  const Offset splits = fixed ? 1 : Offset(options.ratios.size()) * options.seeds;
  Progress progress("classify", "classes", splits * labels.num_classes());
  ClassifierOptions classifier = options.classifier;
  classifier.progress = &progress;
  if (fixed) {
    const LabelSplit split = read_split(options.split_file, embeddings.names(), labels);
    const double ratio = double(split.train.size()) / double(labels.count());
    report.scores.push_back(summary(ratio, split, {classify(vectors, labels, split, classifier)}));
  } else {
    for (const double ratio : options.ratios) {
      LabelSplit split;
      std::vector<SplitScore> scores;
      for (int seed = 0; seed < options.seeds; ++seed) {
        split = random_split(labels.count(), ratio, std::uint64_t(seed));
        scores.push_back(classify(vectors, labels, split, classifier));
      }
      report.scores.push_back(summary(ratio, split, scores));
    }
  }
  progress.finish();
  return report;
}

}  // namespace gs
