// Transfers in pieces that a system call, a frame or a library's int count holds.
#pragma once

#include <algorithm>

#include "graphscale/core.hpp"

namespace gs {

/// Bytes of the next piece of a transfer of `total_bytes` of which done_bytes are through.
inline Offset next_piece(Offset total_bytes, Offset done_bytes, Offset most_bytes) {
  return std::min(total_bytes - done_bytes, most_bytes);
}

/// Piece `index` of [0, size) cut into `count` pieces as even as can be; exact for any size below 2^63 / count.
inline std::pair<Offset, Offset> even_piece(Offset size, int count, int index) {
  const Offset whole = size / count, rest = size % count;
  const Offset first = whole * index + std::min<Offset>(index, rest);
  return {first, first + whole + (index < rest ? 1 : 0)};
}

}  // namespace gs
