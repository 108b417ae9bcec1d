// Nearest rows, exactly.
#pragma once

#include "graphscale/eval.hpp"

namespace gs {

struct Neighbour {
  RowId row = 0;
  float score = 0;  ///< cosine in [-1, 1], dot, or l2 distance
};

struct QueryOptions {
  Metric metric = Metric::cosine;
  int k = 10;
  bool include_self = false;
  int threads = 1;
};

/// The k best rows for each queried row, best first (cosine, dot: largest; l2: smallest); ties by ascending row; fewer
/// where the table has fewer. The queried row itself is left out by its row, never by its rank. Cosine with a zero
/// vector is 0, never NaN.
std::vector<std::vector<Neighbour>> nearest(Rows<const float> table, const std::vector<RowId>& queries,
                                            const QueryOptions& options);

}  // namespace gs
