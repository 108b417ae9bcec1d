// Nearest rows and best answers, exactly.
#pragma once

#include "graphscale/eval.hpp"

namespace gs {

struct Neighbour {
  RowId row = 0;
  float score = 0;  ///< cosine in [-1, 1], dot, or l2 distance
};

bool larger_is_better(Metric metric);  ///< false for l2, a distance

struct QueryOptions {
  Metric metric = Metric::cosine;
  int k = 10;
  bool include_self = false;
  int threads = 1;
};

/// The k best rows for each queried row, best first; equal scores by ascending row; fewer where the table has fewer.
/// The same for any number of threads.
///
/// table    [n, dim]  finite values, any stride
/// queries  rows of the table; each is left out of its own answer by its row (others with equal values are not), unless
///          include_self
/// Scores   summed in double; cosine with an all-zero row is 0 (with one warning); dot and l2 end at the largest float
/// Memory   8 queries k threads bytes, and the table is read once
/// Throws   internal: k negative, a query out of range
std::vector<std::vector<Neighbour>> nearest(Rows<const float> table, const std::vector<RowId>& queries,
                                            const QueryOptions& options);

/// The k entities that answer a query best, by answer_scores; equal scores by ascending row, NaN last; those in
/// `left_out` (ascending) are not among them. Memory: 8 bytes an entity. Throws internal: k negative, what
/// answer_scores does.
std::vector<Neighbour> best_answers(const AnswerModel& model, const kernels::TripleQuery& query, int k,
                                    Span<const RowId> left_out, int threads);

}  // namespace gs
