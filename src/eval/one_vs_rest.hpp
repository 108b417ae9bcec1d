// One linear classifier a class, each trained by LIBLINEAR against all other classes.
#pragma once

#include "graphscale/eval.hpp"

namespace gs {

class OneVsRest {
 public:
  /// train: positions in labels.rows; the rest as for `classify`.
  OneVsRest(Rows<const float> vectors, const Labels& labels, Span<const Offset> train,
            const ClassifierOptions& options);

  /// The decision values of one vector [dim] for all classes. out: [classes]; -inf for a class that no training node
  /// had, +inf for one that all had.
  void scores(const float* vector, Span<double> out) const;

 private:
  int dim_;
  bool normalize_;
  std::vector<double> weights_;  ///< [classes, dim]
  std::vector<double> biases_;   ///< [classes]
};

}  // namespace gs
