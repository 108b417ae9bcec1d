#include "src/graph/row_merge.hpp"

#include <algorithm>
#include <limits>

#include "src/graph/node_order.hpp"

namespace gs {

Offset RowMerger::merge(RowId row, Span<RowId> targets, float* weights) {
  return weights ? merge_weighted(row, targets, weights) : merge_unweighted(row, targets);
}

Offset RowMerger::merge_unweighted(RowId row, Span<RowId> targets) {
  std::sort(targets.begin(), targets.end());
  Offset kept = 0;
  for (Offset i = 0; i < targets.size; ++i) {
    const bool duplicate = i > 0 && targets[i] == targets[i - 1];
    if (duplicate) count_duplicates(row, targets[i], 1);
    if (!duplicate || policy_ == Duplicates::keep) targets[kept++] = targets[i];
  }
  return kept;
}

Offset RowMerger::merge_triples(RowId row, Span<RowId> targets, RowId* relations) {
  arcs_.clear();
  for (Offset i = 0; i < targets.size; ++i) arcs_.push_back(packed_triple(targets[i], relations[i]));
  std::sort(arcs_.begin(), arcs_.end());
  Offset kept = 0;
  for (std::size_t i = 0; i < arcs_.size(); ++i) {
    if (i > 0 && arcs_[i] == arcs_[i - 1]) {
      count_duplicates(row, target_of(arcs_[i]), 1);
    } else {
      targets[kept] = target_of(arcs_[i]), relations[kept++] = relation_of(arcs_[i]);
    }
  }
  return kept;
}

Offset RowMerger::merge_weighted(RowId row, Span<RowId> targets, float* weights) {
  arcs_.clear();
  for (Offset i = 0; i < targets.size; ++i) arcs_.push_back(packed_arc(targets[i], weights[i]));
  if (policy_ == Duplicates::first) {
    const auto by_target = [](std::uint64_t a, std::uint64_t b) { return target_of(a) < target_of(b); };
    std::stable_sort(arcs_.begin(), arcs_.end(), by_target);
  } else {
    std::sort(arcs_.begin(), arcs_.end());
  }

  Offset kept = 0;
  const auto keep = [&](RowId target, float weight) { targets[kept] = target, weights[kept++] = weight; };
  const auto size = Offset(arcs_.size());
  for (Offset begin = 0, end = 0; begin < size; begin = end) {
    const RowId target = target_of(arcs_[std::size_t(begin)]);
    while (end < size && target_of(arcs_[std::size_t(end)]) == target) ++end;
    const Span<const std::uint64_t> run(arcs_.data() + begin, end - begin);
    count_duplicates(row, target, run.size - 1);
    switch (policy_) {
      case Duplicates::sum:
        keep(target, sum(row, run));
        break;
      case Duplicates::max:
        keep(target, weight_of(run[run.size - 1]));
        break;
      case Duplicates::first:
        keep(target, weight_of(run[0]));
        break;
      case Duplicates::keep:
        for (const std::uint64_t arc : run) keep(target, weight_of(arc));
        break;
    }
  }
  return kept;
}

float RowMerger::sum(RowId row, Span<const std::uint64_t> run) const {
  double total = 0;
  for (const std::uint64_t arc : run) total += double(weight_of(arc));
  if (total > double(std::numeric_limits<float>::max()))
    throw Error(Fault::input,
                cat("the weights of the edge ", name_text(names_, row), " - ", name_text(names_, target_of(run[0])),
                    " add up to ", total, ", more than a 32-bit float holds: scale them, or merge by max"));
  return float(total);
}

}  // namespace gs
