// How often rows are read.
#pragma once

#include <algorithm>
#include <vector>

#include "graphscale/core.hpp"

namespace gs::bench {

/// Reads by row: of walks' positions (centre and context, two each) and of negatives, position by position and with a
/// step's repeats left out.
struct Reads {
  explicit Reads(Offset rows) : last_step(std::size_t(rows), -1) {
    for (auto* reads : {&walks, &all, &distinct}) reads->assign(std::size_t(rows), 0);
  }

  void add(Span<const RowId> nodes, Span<const RowId> negatives, int step) {
    const auto read = [&](RowId row, int vectors) {
      all[row] += vectors;
      if (last_step[row] == step) return;
      last_step[row] = step, distinct[row] += vectors;
    };
    for (const RowId row : nodes)
      if (row != kNoRow) read(row, 2), walks[row] += 2;
    for (const RowId row : negatives) read(row, 1);
  }

  std::vector<Offset> walks, all, distinct;
  std::vector<int> last_step;
};

/// Share of reads that fall on the first `share` of rows, those of highest degree.
inline double share_of_first(const std::vector<Offset>& reads, double share) {
  const auto hot = std::ptrdiff_t(share * double(reads.size()));
  Offset in_hot = 0, total = 0;
  for (std::size_t row = 0; row < reads.size(); ++row) {
    total += reads[row];
    if (std::ptrdiff_t(row) < hot) in_hot += reads[row];
  }
  return double(in_hot) / double(std::max<Offset>(1, total));
}

}  // namespace gs::bench
