// An all-to-all as messages that a library with int counts can send.
#pragma once

#include "src/exchange/pieces.hpp"

namespace gs {

/// A part of what goes to, or comes from, one rank.
struct Message {
  int rank = 0;
  bool incoming = false;
  Offset at = 0, bytes = 0;  ///< first byte in the rank's part; 1 to the limit
  bool done = false;
};

/// Adds parts of bytes [size], each cut into messages of at most most_bytes; ranks from `first` on, round to the one
/// before it.
inline void add_messages(std::vector<Message>& messages, bool incoming, const std::vector<Offset>& bytes, int first,
                         Offset most_bytes) {
  for (std::size_t step = 0; step < bytes.size(); ++step) {
    const std::size_t rank = (std::size_t(first) + step) % bytes.size();
    for (Offset at = 0; at < bytes[rank]; at += most_bytes)
      messages.push_back({int(rank), incoming, at, next_piece(bytes[rank], at, most_bytes)});
  }
}

}  // namespace gs
