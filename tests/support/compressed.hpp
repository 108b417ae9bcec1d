// Compressed bytes made in memory, and a text that compresses.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include "graphscale/files.hpp"

namespace gs {

inline std::string gzipped(const std::string& text) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data())), z.avail_in = uInt(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data()), z.avail_out = uInt(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

inline std::string zstded(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

/// `count` lines "i<TAB>i * i": compresses, and no two lines are equal.
inline std::string edge_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += cat(i, "\t", std::int64_t{i} * i, "\n");
  return text;
}

/// All of the source, asked for in pieces of `capacity`.
inline std::string drained(const fs::path& path, Offset capacity = 1 << 16) {
  ByteSource source(path);
  std::string text;
  std::vector<char> block(std::size_t(capacity), '\0');
  while (const Offset count = source.read(block.data(), capacity)) text.append(block.data(), std::size_t(count));
  return text;
}

}  // namespace gs
