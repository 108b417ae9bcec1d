// Is a table of vectors any good: node classification and link prediction.
#pragma once

#include "graphscale/checkpoint.hpp"

namespace gs {

// ---------------------------------------------------------------------------------------------------- classification

/// The classes of the rows that have any: rows[i] has classes[offsets[i] .. offsets[i + 1]).
struct Labels {
  std::vector<RowId> rows;               ///< [labelled] ascending
  std::vector<Offset> offsets;           ///< [labelled + 1]
  std::vector<int> classes;              ///< ascending within a row, none twice
  std::vector<std::string> class_names;  ///< [classes] in the order of their bytes
  Offset unknown_nodes = 0;              ///< names in the file that have no row: left out, and their classes with them

  Offset count() const { return Offset(rows.size()); }
  int num_classes() const { return int(class_names.size()); }
  bool multi_label() const { return Offset(classes.size()) > count(); }
  Span<const int> of(Offset i) const {
    return Span<const int>(classes).subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
};

/// Positions in Labels::rows, none in both.
struct LabelSplit {
  std::vector<Offset> train, test;
};

/// Lines of a node and its classes, `node label[,label...]` or further columns; a node may have several lines. Names
/// without a row and lines without a label are left out, counted and warned of.
/// Throws input: fewer than two classes on rows that exist.
Labels read_labels(const fs::path& path, const NodeNames& names);

/// The first floor(ratio count) of a shuffled order of [0, count) train, the others test. The order depends on `seed`
/// and `count` alone. Throws usage: ratio outside (0, 1); input: one of the parts is empty.
LabelSplit random_split(Offset count, double ratio, std::uint64_t seed);

/// Lines `node train|valid|test`; valid nodes are in neither part. Names without a row or label are left out, counted
/// and warned of. Throws input with file and line: another part, a node twice; input: one of the parts is empty.
LabelSplit read_split(const fs::path& path, const NodeNames& names, const Labels& labels);

/// How one class fared in the test nodes.
struct ClassCounts {
  Offset right = 0, predicted = 0, actual = 0;
};

double micro_f1(Span<const ClassCounts> classes);  ///< of all assignments together
double macro_f1(Span<const ClassCounts> classes);  ///< mean over classes; one neither predicted nor there counts 0

struct SplitScore {
  double micro_f1 = 0, macro_f1 = 0;
  double accuracy = 0;  ///< NaN where a node may have several labels
};

struct ClassifierOptions {
  bool normalize = false;        ///< rows scaled to length 1; a zero row stays zero
  int threads = 1;               ///< at most one a class is busy in training
  Progress* progress = nullptr;  ///< advanced by one a class trained
};

/// One-vs-rest logistic regression (LIBLINEAR; L2 with C = 1, the bias regularised too) trained on split.train. A test
/// node with m labels is given its m best-scored classes (the protocol of Perozzi, Al-Rfou, Skiena: "DeepWalk", KDD
/// 2014). A class that no training node has is scored below all others, one that all have above. The same for any
/// number of threads.
///
/// vectors  [n, dim] finite values, any stride; labels.rows are rows of it
/// Memory   16 (dim + 2) bytes a training node
/// Throws   memory; internal: a row out of range, an empty part
SplitScore classify(Rows<const float> vectors, const Labels& labels, const LabelSplit& split,
                    const ClassifierOptions& options);

struct ClassifyOptions {
  std::vector<double> ratios = {0.5};  ///< shares of the labelled nodes to train on, each in (0, 1)
  int seeds = 5;                       ///< random splits a ratio, seeded 0, 1, ...
  std::string split_file;              ///< one fixed split instead
  ClassifierOptions classifier;
};

struct Statistic {
  double mean = 0, sd = 0;  ///< sd: of the population, 0 for one split
};

struct ClassifyScore {
  double ratio = 0;  ///< as asked for; of a fixed split: train_nodes over all labelled nodes
  int seeds = 0;
  Offset train_nodes = 0, test_nodes = 0;  ///< in each split
  Statistic micro_f1, macro_f1, accuracy;
};

struct ClassifyReport {
  Offset labelled = 0, unknown_nodes = 0, unlabelled_rows = 0;
  int classes = 0;
  bool multi_label = false;
  std::vector<ClassifyScore> scores;  ///< one a ratio
};

/// Throws usage: no ratio or one outside (0, 1), no seed.
void check_classify(const ClassifyOptions& options);

/// `classify` over files and splits. Throws what check_classify, read_labels, random_split, read_split and classify do.
ClassifyReport eval_classify(const Embeddings& embeddings, const fs::path& labels, const ClassifyOptions& options);

// --------------------------------------------------------------------------------------------------- link prediction

enum class Metric { cosine, dot, l2 };

struct LinkReport {
  Offset positives = 0, negatives = 0;  ///< pairs judged
  Offset unknown_pairs = 0;             ///< pairs with a name that has no row: left out
  double auc = 0, average_precision = 0;
};

/// Area under the ROC curve, equal scores counted half, and average precision, equal scores as one threshold.
/// Scores may be infinite. Throws internal: an empty side, NaN.
LinkReport link_scores(Span<const double> positive, Span<const double> negative);

/// Scores pairs, lines `node node` (further columns are not read), by dot, cosine (0 with a zero vector) or negative
/// l2. Throws input: a line of one field, a pair in both files, a file without a pair of known names.
LinkReport eval_link(const Embeddings& embeddings, const fs::path& positives, const fs::path& negatives, Metric metric);

}  // namespace gs
