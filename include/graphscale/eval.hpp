// Is a table of vectors any good: node classification and link prediction.
#pragma once

#include "graphscale/checkpoint.hpp"

namespace gs {

struct ClassifyOptions {
  std::vector<double> ratios = {0.5};  ///< labelled shares
  int seeds = 5;                       ///< splits a ratio
  std::string split_file;              ///< `node TAB train|valid|test` (Planetoid): one fixed split instead
  bool normalize = false;              ///< unit rows first
  double c = 1.0;                      ///< LIBLINEAR's C
  int threads = 1;
};

struct ClassifyScore {
  double ratio = 0;
  int seeds = 0;
  double micro_f1 = 0, macro_f1 = 0, accuracy = 0;           ///< means over seeds; accuracy: single-label data only, else NaN
  double micro_sd = 0, macro_sd = 0, accuracy_sd = 0;
};

struct ClassifyReport {
  Offset labelled = 0, unknown_nodes = 0, unlabelled_rows = 0;
  int classes = 0;
  bool multi_label = false;
  std::vector<ClassifyScore> scores;
};

/// One-vs-rest L2 logistic regression (LIBLINEAR, primal or dual by size, with bias); a test node with m labels gets its
/// m best-scored classes (DeepWalk's protocol, Perozzi et al. 2014). labels: `node label[,label...]`.
ClassifyReport eval_classify(const Embeddings& embeddings, const fs::path& labels, const ClassifyOptions& options);

enum class Metric { cosine, dot, l2 };

struct LinkReport {
  Offset positives = 0, negatives = 0, unknown_pairs = 0;
  double auc = 0, average_precision = 0;
};

/// Scores pairs by dot, cosine or negative l2; ties count half in AUC and share one threshold in average precision.
LinkReport eval_link(const Embeddings& embeddings, const fs::path& positives, const fs::path& negatives, Metric metric);

/// AUC and average precision of scores; the building block of eval_link.
LinkReport link_scores(Span<const float> positive, Span<const float> negative);

}  // namespace gs
