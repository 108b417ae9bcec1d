// Lines of text in memory: what every reader of edges agrees on.
#pragma once

#include "graphscale/graph.hpp"

namespace gs {

/// A line of an input that is wrong. Blocks are read in parallel, so whoever finds it knows the line's number within
/// the block only (from 1; from the file's start in its first block); ingest turns it into FILE:LINE.
struct BadLine {
  Offset line = 0;
  std::string what;
};

/// Blank lines, and lines whose first non-blank character is # or %, hold no data.
inline bool is_data(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first != std::string_view::npos && line[first] != '#' && line[first] != '%';
}

/// Walks the lines of a text that ends in a newline.
class LineCursor {
 public:
  LineCursor(std::string_view text, std::size_t position) : text_(text), position_(position) {}

  /// The next line without its LF or CR LF; false at the end of the text.
  bool next(std::string_view& line) {
    if (position_ >= text_.size()) return false;
    const std::size_t end = text_.find('\n', position_);
    line = text_.substr(position_, end - position_);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    position_ = end + 1;
    ++number_;
    return true;
  }
  std::size_t position() const { return position_; }  ///< of the byte behind the last line returned
  Offset number() const { return number_; }           ///< of the last line returned, from 1

 private:
  std::string_view text_;
  std::size_t position_;
  Offset number_ = 0;
};

/// A field for a message: in quotes, bytes that do not print as \xNN, cut after 40.
std::string quoted(std::string_view field);

}  // namespace gs
