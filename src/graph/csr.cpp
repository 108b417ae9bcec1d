#include <algorithm>

#include "graphscale/graph.hpp"

namespace gs {

bool Csr::has_arc(RowId from, RowId to) const {
  const Span<const RowId> row = neighbours(from);
  return std::binary_search(row.begin(), row.end(), to);
}

std::vector<Offset> offsets_from_degrees(Span<const std::uint32_t> degrees) {
  std::vector<Offset> offsets(std::size_t(degrees.size) + 1);
  Offset sum = 0;
  for (Offset row = 0; row < degrees.size; ++row) {
    offsets[std::size_t(row)] = sum;
    sum += degrees[row];
  }
  offsets.back() = sum;
  return offsets;
}

}  // namespace gs
