#include <algorithm>
#include <cmath>

#include "graphscale/query.hpp"

namespace gs {

std::vector<Neighbour> best_answers(const AnswerModel& model, const kernels::TripleQuery& query, int k,
                                    Span<const RowId> left_out, int threads) {
  GS_EXPECT(k >= 0, "best_answers: k is ", k, "; expected 0 or more");
  const std::vector<float> scores = answer_scores(model, query, threads);
  std::vector<RowId> rows;
  rows.reserve(scores.size());
  for (Offset row = 0; row < Offset(scores.size()); ++row)
    if (!std::binary_search(left_out.begin(), left_out.end(), RowId(row))) rows.push_back(RowId(row));

  const auto better = [&](RowId a, RowId b) {
    const bool a_is_number = !std::isnan(scores[a]), b_is_number = !std::isnan(scores[b]);
    if (a_is_number != b_is_number) return a_is_number;
    if (a_is_number && scores[a] != scores[b]) return scores[a] > scores[b];
    return a < b;
  };
  const auto end = rows.begin() + std::min(Offset(k), Offset(rows.size()));
  std::partial_sort(rows.begin(), end, rows.end(), better);
  rows.erase(end, rows.end());
  std::vector<Neighbour> best;
  for (const RowId row : rows) best.push_back({row, scores[row] + 0.0f});  // never -0
  return best;
}

}  // namespace gs
