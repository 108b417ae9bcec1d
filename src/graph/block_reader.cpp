#include "src/graph/block_reader.hpp"

#include <algorithm>

namespace gs {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20, kMaxLineBytes = 64 << 20;
constexpr Offset kBlockPairs = 1 << 16;
constexpr std::string_view kNpyMagic = "\x93NUMPY";

}  // namespace

BlockReader::BlockReader(std::vector<fs::path> files, const IngestOptions& options)
    : paths_(std::move(files)), options_(options) {}

bool BlockReader::next(Block& block) {
  const std::lock_guard lock(mutex_);
  if (ended_) return false;
  ended_ = true;  // unless this block becomes whole
  block.number = next_number_;
  block.head = {};
  block.bytes = 0, block.pair_count = 0, block.file_bytes = 0;
  if (!read_block(block)) return false;
  ++next_number_;
  ended_ = false;
  return true;
}

bool BlockReader::read_block(Block& block) {
  for (;;) {
    if (!source_) {
      if (files_.size() == paths_.size()) return false;
      open(block);
    }
    block.file = &files_.back();
    if (files_.back().pairs) {
      read_pairs(block);
      if (block.pair_count > 0) return true;
    } else if (read_text(block)) {
      return true;
    }
    source_.reset();
  }
}

void BlockReader::open(Block& block) {
  files_.push_back({paths_[files_.size()], {}, {}, {}});
  block.file = &files_.back();
  source_.emplace(files_.back().path);
  at_start_ = true;
  rest_.clear();
  consumed_ = 0, pair_ = 0;

  rest_.resize(kNpyMagic.size());
  rest_.resize(std::size_t(source_->read(rest_.data(), Offset(rest_.size()))));
  if (std::string_view(rest_.data(), rest_.size()) != kNpyMagic) return;
  if (source_->compressed())
    throw Error(Fault::input, cat(files_.back().path.string(), ": a compressed .npy array: unpack it first"));
  files_.back().pairs = open_pairs(files_.back().path);
}

/// Text in whole lines: rest_ and what follows it in the file, up to the last line's end that fits.
bool BlockReader::read_text(Block& block) {
  EdgeFile& file = files_.back();
  std::size_t capacity = std::max(kBlockBytes, 2 * rest_.size()), filled = rest_.size();
  const auto reserve = [&] {  // a byte more: for the newline that a file's last line may lack
    if (block.storage.size() < capacity + 1) block.storage.resize(capacity + 1);
  };
  reserve();
  std::copy(rest_.begin(), rest_.end(), block.storage.begin());
  rest_.clear();

  for (;; capacity *= 2, reserve()) {
    for (Offset count = 1; filled < capacity && count > 0; filled += std::size_t(count))
      count = source_->read(block.storage.data() + filled, Offset(capacity - filled));
    const bool whole = filled < capacity;
    if (whole && filled > 0 && block.storage[filled - 1] != '\n') block.storage[filled++] = '\n';
    const std::size_t newline = std::string_view(block.storage.data(), filled).rfind('\n');
    block.bytes = newline == std::string_view::npos ? 0 : newline + 1;
    if (block.bytes > 0 || whole) {
      if (!at_start_) break;
      const auto head = read_head(file, {block.storage.data(), block.bytes}, whole, options_);
      if (head) {
        block.head = *head;
        at_start_ = false;
        break;
      }
    }
    if (capacity > kMaxLineBytes) {
      const auto lines = std::count(block.storage.data(), block.storage.data() + block.bytes, '\n');
      if (filled - block.bytes < filled / 2) throw BadLine{lines, "no edges in the file's first 64 MiB"};
      throw BadLine{lines + 1, "a line of more than 64 MiB: this is no list of edges"};
    }
  }
  rest_.assign(block.storage.data() + block.bytes, block.storage.data() + filled);
  block.file_bytes = source_->consumed_bytes() - consumed_;
  consumed_ += block.file_bytes;
  return block.bytes > 0;
}

void BlockReader::read_pairs(Block& block) {
  const NpyArray& pairs = *files_.back().pairs;
  block.first_pair = pair_;
  block.pair_count = std::min(kBlockPairs, pairs.rows() - pair_);
  pair_ += block.pair_count;
  if (block.pair_count == 0) return;
  block.file_bytes = source_->file_bytes() * pair_ / pairs.rows() - consumed_;
  consumed_ += block.file_bytes;
}

}  // namespace gs
