#include "src/graph/node_order.hpp"

#include <algorithm>

#include "src/graph/decimal.hpp"

namespace gs {
namespace {

constexpr Offset kGrain = 1 << 16, kBuckets = 1 << 16;

std::string_view name_bytes(const BuiltGraph& names, RowId id) {
  const Offset begin = names.name_bounds[id], end = names.name_bounds[std::size_t(id) + 1];
  return {names.name_bytes.data() + begin, std::size_t(end - begin)};
}

/// What decides a node's place, most of it without a look at the name's bytes.
struct NodeKey {
  Offset degree;
  std::uint64_t leading;  ///< the number, or the first 8 bytes of the word, big-endian, filled up with zeros
  RowId id;
  bool is_word;
};

NodeKey node_key(Offset degree, const BuiltGraph& names, RowId id) {
  if (names.name_bounds.empty()) return {degree, names.name_numbers[id], id, false};
  const std::string_view name = name_bytes(names, id);
  if (const auto number = canonical_number(name)) return {degree, *number, id, false};
  std::uint64_t leading = 0;
  for (std::size_t i = 0; i < 8; ++i) leading = leading << 8 | (i < name.size() ? std::uint8_t(name[i]) : 0u);
  return {degree, leading, id, true};
}

/// std::sort in pieces, one a thread, merged pairwise.
template <class T, class Less>
void sort_on_threads(std::vector<T>& values, const Less& less, int threads) {
  const auto bound = [&](Offset piece) {
    return values.begin() + std::ptrdiff_t(Offset(values.size()) * std::min<Offset>(piece, threads) / threads);
  };
  parallel_for(threads, threads, 1, [&](Offset first, Offset last, int) {
    for (Offset piece = first; piece < last; ++piece) std::sort(bound(piece), bound(piece + 1), less);
  });
  for (Offset width = 1; width < threads; width *= 2)
    parallel_for(threads, (threads + 2 * width - 1) / (2 * width), 1, [&](Offset first, Offset last, int) {
      for (Offset pair = first; pair < last; ++pair)
        std::inplace_merge(bound(2 * width * pair), bound(2 * width * pair + width), bound(2 * width * (pair + 1)),
                           less);
    });
}

}  // namespace

std::string name_text(const BuiltGraph& names, RowId id) {
  return names.name_bounds.empty() ? std::to_string(names.name_numbers[id]) : std::string(name_bytes(names, id));
}

std::vector<RowId> ids_by_row(Span<const Offset> degrees, const BuiltGraph& names, int threads) {
  // A counting sort by degree leaves only the order inside each degree to comparisons, and their keys (24 bytes a node)
  // in memory for one degree at a time. The few nodes of the highest degrees share a bucket.
  const auto bucket_of = [&](RowId id) { return std::size_t(kBuckets - 1 - std::min(degrees[id], kBuckets - 1)); };
  const auto nodes = std::size_t(degrees.size);
  std::vector<Offset> bounds(std::size_t(kBuckets) + 1);
  for (std::size_t id = 0; id < nodes; ++id) ++bounds[bucket_of(RowId(id)) + 1];
  for (std::size_t bucket = 0; bucket < std::size_t(kBuckets); ++bucket) bounds[bucket + 1] += bounds[bucket];
  std::vector<RowId> ids(nodes);
  for (std::size_t id = 0; id < nodes; ++id) ids[std::size_t(bounds[bucket_of(RowId(id))]++)] = RowId(id);

  const auto before = [&](const NodeKey& a, const NodeKey& b) {
    if (a.degree != b.degree) return a.degree > b.degree;
    if (a.is_word != b.is_word) return b.is_word;
    if (a.leading != b.leading || !a.is_word) return a.leading < b.leading;
    return name_bytes(names, a.id) < name_bytes(names, b.id);
  };
  std::vector<NodeKey> keys;
  Offset begin = 0;
  for (const Offset end : bounds) {  // each bound has moved to its bucket's end
    const Offset count = end - begin;
    keys.resize(std::size_t(count));
    const int sorting_threads = count < kGrain ? 1 : threads;
    RowId* const bucket = ids.data() + begin;
    parallel_for(sorting_threads, count, kGrain, [&](Offset first, Offset last, int) {
      for (Offset i = first; i < last; ++i) keys[std::size_t(i)] = node_key(degrees[bucket[i]], names, bucket[i]);
    });
    sort_on_threads(keys, before, sorting_threads);
    for (Offset i = 0; i < count; ++i) bucket[i] = keys[std::size_t(i)].id;
    begin = end;
  }
  return ids;
}

void reorder_names(BuiltGraph& names, Span<const RowId> ids, int threads) {
  const auto each_row = [&](const auto& body) {
    parallel_for(threads, ids.size, kGrain, [&](Offset first, Offset last, int) {
      for (Offset row = first; row < last; ++row) body(std::size_t(row), ids[row]);
    });
  };
  if (names.name_bounds.empty()) {
    std::vector<std::uint64_t> numbers(names.name_numbers.size());
    each_row([&](std::size_t row, RowId id) { numbers[row] = names.name_numbers[id]; });
    names.name_numbers = std::move(numbers);
    return;
  }

  std::vector<Offset> bounds(names.name_bounds.size());
  for (Offset row = 0; row < ids.size; ++row)
    bounds[std::size_t(row) + 1] = bounds[std::size_t(row)] + Offset(name_bytes(names, ids[row]).size());
  std::vector<char> bytes(names.name_bytes.size());
  each_row([&](std::size_t row, RowId id) {
    const std::string_view name = name_bytes(names, id);
    if (!name.empty()) std::memcpy(bytes.data() + bounds[row], name.data(), name.size());
  });
  names.name_bounds = std::move(bounds);
  names.name_bytes = std::move(bytes);
}

}  // namespace gs
