// totals[0] += sums of the tiles' losses (in double) and pairs.
//
// One team: each thread sums every size-th result, the first adds up the threads. The order of adds is fixed.
#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

struct AddTotals {
  Span<const TileResult> results;
  Span<TrainTotals> totals;

  GS_DEV void operator()(const Team& team, Offset, Offset) const {
    auto* partial = reinterpret_cast<TrainTotals*>(team.scratch);  // [team]
    TrainTotals sum;
    for (Offset i = team.rank(); i < results.size; i += team.size()) {
      sum.loss += double(results[i].loss);
      sum.pairs += results[i].pairs;
    }
    partial[team.rank()] = sum;
    team.sync();
    if (team.rank() != 0) return;
    for (int t = 0; t < team.size(); ++t) {
      totals[0].loss += partial[t].loss;
      totals[0].pairs += partial[t].pairs;
    }
  }
};

void add_totals(Span<const TileResult> results, Span<TrainTotals> totals, const Exec& exec) {
  GS_EXPECT(totals.size == 1, "add_totals: ", totals.size, " totals");
  constexpr Offset kLargestTeam = 1024;
  for_each_team("add_totals", 1, kLargestTeam * Offset(sizeof(TrainTotals)), AddTotals{results, totals}, exec);
}

}  // namespace gs::kernels::GS_BACKEND
