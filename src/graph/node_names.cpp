#include <xxhash.h>

#include <algorithm>
#include <tuple>

#include "graphscale/graph.hpp"

#include "src/graph/decimal.hpp"

namespace gs {
namespace {

constexpr Offset kSimilarRows =
    2'000'000;  // rows that `similar` looks at: those of highest degree, well under a second
constexpr std::size_t kShortestPrefix = 3;  // a shorter word begins too many names to say anything

std::string lower(std::string_view text) {
  std::string folded(text);
  for (char& c : folded)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return folded;
}

/// Levenshtein's distance, or `limit` + 1 where it is larger: only cells within `limit` of the diagonal are filled.
int edit_distance(std::string_view a, std::string_view b, int limit, std::vector<int>& row) {
  const int rows = int(a.size()), columns = int(b.size()), too_far = limit + 1;
  if (std::abs(rows - columns) > limit) return too_far;
  row.assign(b.size() + 1, too_far);
  for (int j = 0; j <= std::min(columns, limit); ++j) row[std::size_t(j)] = j;
  for (int i = 1; i <= rows; ++i) {
    const int first = std::max(1, i - limit), last = std::min(columns, i + limit);
    int diagonal = row[std::size_t(first) - 1], best = too_far;
    row[std::size_t(first) - 1] = first == 1 ? std::min(i, too_far) : too_far;
    for (int j = first; j <= last; ++j) {
      const int replaced = diagonal + (a[std::size_t(i) - 1] == b[std::size_t(j) - 1] ? 0 : 1);
      diagonal = row[std::size_t(j)];
      row[std::size_t(j)] = std::min({replaced, row[std::size_t(j)] + 1, row[std::size_t(j) - 1] + 1, too_far});
      best = std::min(best, row[std::size_t(j)]);
    }
    if (best == too_far && row[std::size_t(first) - 1] == too_far) return too_far;
  }
  return row.back();
}

/// Names with an open-addressing hash table of their rows, at most half full, built when it is first needed.
class IndexedNames : public NodeNames {
 public:
  std::vector<std::string> similar(std::string_view name, int count) const override {
    const std::string wanted = lower(name);
    const int limit = int(std::min<std::size_t>(3, 1 + wanted.size() / 4));
    std::vector<std::tuple<int, Offset, std::string>> close;  // rank, row, name
    std::vector<int> scratch;
    for (Offset row = 0; row < std::min(size(), kSimilarRows); ++row) {
      std::string candidate = this->name(row);
      const std::string folded = lower(candidate);
      const bool longer = wanted.size() >= kShortestPrefix && folded.compare(0, wanted.size(), wanted) == 0;
      const int distance = edit_distance(wanted, folded, limit, scratch);
      if (!longer && distance > limit) continue;
      constexpr int kLongerRank = 3;  // between one edit and two
      close.emplace_back(std::min(2 * distance, longer ? kLongerRank : 2 * limit), row, std::move(candidate));
    }
    const auto end = close.begin() + std::min<std::ptrdiff_t>(std::max(count, 0), std::ptrdiff_t(close.size()));
    std::partial_sort(close.begin(), end, close.end());
    std::vector<std::string> names;
    for (auto entry = close.begin(); entry != end; ++entry) names.push_back(std::move(std::get<2>(*entry)));
    return names;
  }

 protected:
  /// The row for which same(row), among those whose hash is `hash`.
  template <class Same>
  std::optional<RowId> look_up(std::uint64_t hash, Same&& same) const {
    std::call_once(built_, [this] { build(); });
    for (std::uint64_t slot = hash & mask_; slots_[slot] != kNoRow; slot = (slot + 1) & mask_)
      if (same(slots_[slot])) return slots_[slot];
    return std::nullopt;
  }

  virtual std::uint64_t hash_of(Offset row) const = 0;

 private:
  void build() const {
    std::uint64_t capacity = 2;
    while (capacity < 2 * std::uint64_t(size())) capacity *= 2;
    slots_.assign(capacity, kNoRow), mask_ = capacity - 1;
    for (Offset row = 0; row < size(); ++row) {
      std::uint64_t slot = hash_of(row) & mask_;
      while (slots_[slot] != kNoRow) slot = (slot + 1) & mask_;
      slots_[slot] = RowId(row);
    }
  }

  mutable std::once_flag built_;
  mutable std::vector<RowId> slots_;
  mutable std::uint64_t mask_ = 0;
};

class NumberNames final : public IndexedNames {
 public:
  NumberNames(Span<const std::uint64_t> numbers, std::shared_ptr<const void> owner)
      : numbers_(numbers), owner_(std::move(owner)) {}
  Offset size() const override { return numbers_.size; }
  std::string name(Offset row) const override { return std::to_string(numbers_[row]); }
  std::optional<RowId> find(std::string_view name) const override {
    const std::optional<std::uint64_t> number = canonical_number(name);
    if (!number) return std::nullopt;
    return look_up(XXH3_64bits(&*number, sizeof *number), [&](RowId row) { return numbers_[row] == *number; });
  }

 private:
  std::uint64_t hash_of(Offset row) const override { return XXH3_64bits(&numbers_[row], sizeof numbers_[row]); }

  Span<const std::uint64_t> numbers_;
  std::shared_ptr<const void> owner_;
};

class ByteNames final : public IndexedNames {
 public:
  ByteNames(Span<const char> bytes, Span<const Offset> bounds, std::shared_ptr<const void> owner)
      : bytes_(bytes), bounds_(bounds), owner_(std::move(owner)) {}
  Offset size() const override { return bounds_.size - 1; }
  std::string name(Offset row) const override { return std::string(view(row)); }
  std::optional<RowId> find(std::string_view name) const override {
    return look_up(XXH3_64bits(name.data(), name.size()), [&](RowId row) { return view(row) == name; });
  }

 private:
  std::string_view view(Offset row) const {
    return {bytes_.data + bounds_[row], std::size_t(bounds_[row + 1] - bounds_[row])};
  }
  std::uint64_t hash_of(Offset row) const override { return XXH3_64bits(view(row).data(), view(row).size()); }

  Span<const char> bytes_;
  Span<const Offset> bounds_;
  std::shared_ptr<const void> owner_;
};

}  // namespace

std::shared_ptr<NodeNames> names_of_numbers(Span<const std::uint64_t> numbers, std::shared_ptr<const void> owner) {
  return std::make_shared<NumberNames>(numbers, std::move(owner));
}

std::shared_ptr<NodeNames> names_of_bytes(Span<const char> bytes, Span<const Offset> bounds,
                                          std::shared_ptr<const void> owner) {
  GS_EXPECT(bounds.size >= 1, "names_of_bytes: bounds are [n + 1], but there are ", bounds.size);
  return std::make_shared<ByteNames>(bytes, bounds, std::move(owner));
}

std::shared_ptr<NodeNames> names_of(NameList list) {
  const auto kept = std::make_shared<NameList>(std::move(list));
  return names_of_bytes(kept->bytes, kept->bounds, kept);
}

}  // namespace gs
