#include "src/eval/one_vs_rest.hpp"

#include <linear.h>

#include <cmath>
#include <limits>

namespace gs {
namespace {

constexpr double kCost = 1;  // LIBLINEAR's C, as DeepWalk's protocol and scikit-learn have it

// LIBLINEAR's own default for the primal solver. 1e-4, scikit-learn's, changes micro and macro-F1 by at most .0013 (one
// split at 50 % of Cora, PPI, BlogCatalog and WordNet) and takes 1.4 to 1.5 times as long; .1 changes macro-F1 by .002
// for three quarters of the time. The dual solver takes half the time on the small ones and twice on WordNet, but it
// visits rows in the order of the process's one rand(): its result would depend on threads.
constexpr double kTolerance = 0.01;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// 1 / length of the vector where rows are normalized; a zero vector is left as it is.
double row_scale(const float* vector, int dim, bool normalize) {
  if (!normalize) return 1;
  double squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int c = 0; c < dim; ++c) squares += double(vector[c]) * double(vector[c]);
  return squares > 0 ? 1 / std::sqrt(squares) : 1;
}

/// Training rows as LIBLINEAR reads them: (column from 1, value) each, the bias as a last column of ones, an end mark.
/// All classes share them.
class FeatureRows {
 public:
  FeatureRows(Rows<const float> vectors, const Labels& labels, Span<const Offset> train,
              const ClassifierOptions& options)
      : ledger_(Device{}),
        nodes_(ledger_, train.size * (vectors.dim + 2), "training rows of the classifier (a lower ratio needs less)"),
        rows_(static_cast<std::size_t>(train.size)) {
    const int dim = vectors.dim;
    parallel_for(options.threads, train.size, 1024, [&](Offset first, Offset last, int) {
      for (Offset i = first; i < last; ++i) {
        const float* vector = vectors.row(labels.rows[train[i]]);
        const double scale = row_scale(vector, dim, options.normalize);
        feature_node* row = rows_[i] = nodes_.data() + i * (dim + 2);
        for (int c = 0; c < dim; ++c) row[c] = {c + 1, scale * double(vector[c])};
        row[dim] = {dim + 1, 1};
        row[dim + 1] = {-1, 0};
      }
    });
  }
  feature_node** data() { return rows_.data(); }

 private:
  MemoryLedger ledger_;
  Buffer<feature_node> nodes_;
  std::vector<feature_node*> rows_;
};

/// Minimizes |w|^2 / 2 + C sum log(1 + exp(-target_i w.x_i)). targets: -1 and 1, both present. weights: [dim], bias
/// one.
void train_binary(FeatureRows& features, std::vector<double>& targets, Span<double> weights, double& bias) {
  const int columns = int(weights.size) + 1;
  const problem task{int(targets.size()), columns, targets.data(), features.data(), 1};
  parameter settings{};
  settings.solver_type = L2R_LR;
  settings.eps = kTolerance;
  settings.C = kCost;
  const auto destroy = [](model* trained) { free_and_destroy_model(&trained); };
  const std::unique_ptr<model, decltype(destroy)> trained(train(&task, &settings), destroy);
  const double sign = trained->label[0] > 0 ? 1 : -1;  // w tells label[0] from the other one
  for (int c = 0; c < columns - 1; ++c) weights[c] = sign * trained->w[c];
  bias = sign * trained->w[columns - 1];
}

/// 1 for training nodes of the class, -1 for others, and how many are of it.
Offset fill_targets(const Labels& labels, Span<const Offset> train, int label, std::vector<double>& targets) {
  Offset positives = 0;
  for (Offset i = 0; i < train.size; ++i) {
    bool has = false;
    for (const int other : labels.of(train[i])) has |= other == label;
    targets[i] = has ? 1 : -1;
    positives += has;
  }
  return positives;
}

}  // namespace

OneVsRest::OneVsRest(Rows<const float> vectors, const Labels& labels, Span<const Offset> train,
                     const ClassifierOptions& options)
    : dim_(vectors.dim),
      normalize_(options.normalize),
      weights_(std::size_t(labels.num_classes()) * std::size_t(vectors.dim)),
      biases_(std::size_t(labels.num_classes())) {
  GS_EXPECT(train.size > 0 && train.size <= std::numeric_limits<int>::max(), "classify: ", train.size,
            " training nodes; LIBLINEAR takes 1 to 2^31 - 1");
  set_print_string_function([](const char*) {});
  FeatureRows features(vectors, labels, train, options);
  parallel_for(options.threads, labels.num_classes(), 1, [&](Offset first, Offset last, int) {
    std::vector<double> targets(static_cast<std::size_t>(train.size));
    for (Offset label = first; label < last; ++label) {
      const Offset positives = fill_targets(labels, train, int(label), targets);
      if (positives == 0 || positives == train.size)
        biases_[label] = positives == 0 ? -kInfinity : kInfinity;
      else
        train_binary(features, targets, {weights_.data() + label * dim_, dim_}, biases_[label]);
      if (options.progress) options.progress->advance(1);
    }
  });
}

void OneVsRest::scores(const float* vector, Span<double> out) const {
  const double scale = row_scale(vector, dim_, normalize_);
  for (Offset label = 0; label < out.size; ++label) {
    const double* weights = weights_.data() + label * dim_;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < dim_; ++c) sum += weights[c] * double(vector[c]);
    out[label] = scale * sum + biases_[label];
  }
}

}  // namespace gs
