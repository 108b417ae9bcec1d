// Input files cut into blocks of whole lines.
#pragma once

#include <deque>

#include "src/graph/edge_file.hpp"

namespace gs {

/// A piece of one file, read as a whole by one thread: whole lines of text, or rows of an array.
struct Block {
  Offset number = 0;  ///< in the order of the input
  const EdgeFile* file = nullptr;
  Offset file_bytes = 0;      ///< of the file on disk, read for this block
  FileHead head;              ///< at the start of a file's first block; empty in all others
  std::vector<char> storage;  ///< kept between blocks
  std::size_t bytes = 0;      ///< of text in storage; the last one is a newline
  Offset first_pair = 0, pair_count = 0;

  /// The lines behind the head.
  std::string_view text() const { return {storage.data() + head.bytes, bytes - head.bytes}; }
};

/// Hands out the input's blocks in order to any number of threads. Whoever asks reads (and decompresses) its own block
/// while others parse theirs: the pipeline needs no thread and no queue of its own, and holds a block a thread.
class BlockReader {
 public:
  BlockReader(std::vector<fs::path> files, const IngestOptions& options);

  /// Fills `block`; false at the end of the input, and for all threads after a failure. Throws BadLine (with `block`'s
  /// number and file set) or Error.
  bool next(Block& block);

  const std::deque<EdgeFile>& files() const { return files_; }  ///< as far as they were opened, in order

 private:
  bool read_block(Block& block);
  void open(Block& block);
  bool read_text(Block& block);
  void read_pairs(Block& block);

  const std::vector<fs::path> paths_;
  const IngestOptions& options_;
  std::mutex mutex_;
  bool ended_ = false;
  Offset next_number_ = 0;
  std::deque<EdgeFile> files_;        // a deque: blocks point into it
  std::optional<ByteSource> source_;  // of files_.back() while it is open
  bool at_start_ = false;             // of that file
  std::vector<char> rest_;            // its bytes that were read behind the last whole line
  Offset consumed_ = 0, pair_ = 0;    // of that file, so far
};

}  // namespace gs
