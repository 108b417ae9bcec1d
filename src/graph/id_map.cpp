#include "src/graph/id_map.hpp"

#include <xxhash.h>

#include <charconv>

namespace gs {
namespace {

constexpr int kShardBits = 8;
static_assert(IdMap::kShards == 1 << kShardBits);
constexpr std::size_t kFirstCapacity = 16, kPrefetchAhead = 8;

// The finalizer of MurmurHash3. It is a bijection, so a table may keep the mixed number in place of the number: the
// hash is computed once and equality is still exact.
constexpr std::uint64_t kMix1 = 0xff51afd7ed558ccd, kMix2 = 0xc4ceb9fe1a85ec53;
constexpr std::uint64_t kUnmix1 = 0x4f74430c22a54005, kUnmix2 = 0x9cb4b2f8129337db;
static_assert(kMix1 * kUnmix1 == 1 && kMix2 * kUnmix2 == 1);

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 33) * kMix1;
  x = (x ^ x >> 33) * kMix2;
  return x ^ x >> 33;
}

std::uint64_t unmix(std::uint64_t x) {
  x = (x ^ x >> 33) * kUnmix2;
  x = (x ^ x >> 33) * kUnmix1;
  return x ^ x >> 33;
}

int shard_of(std::uint64_t hash) { return int(hash >> (64 - kShardBits)); }

/// A place in [0, capacity) that ascends with the hash's bits below the shard's: any capacity will do, and growing
/// a table walks both the old and the new one in order.
std::size_t place_of(std::uint64_t hash, std::size_t capacity) {
  __extension__ using Wide = unsigned __int128;
  return std::size_t(Wide(hash << kShardBits) * capacity >> 64);
}

/// Open addressing with linear probing; at most 3/4 full, grown by half: 1.3 to 2 slots a name.
template <class Slot>
class Table {
 public:
  /// The slot of the name that has `hash` and that `same(slot)` recognises, or the free slot where it belongs.
  template <class Same>
  Slot& find(std::uint64_t hash, const Same& same) {
    if (4 * (used_ + 1) > 3 * slots_.size()) grow();
    std::size_t at = place_of(hash, slots_.size());
    while (slots_[at].id != kNoRow && !same(slots_[at])) at = at + 1 == slots_.size() ? 0 : at + 1;
    return slots_[at];
  }
  void count_new() { ++used_; }
  void prefetch(std::uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[place_of(hash, slots_.size())], 1);
  }
  template <class Visit>
  void each(const Visit& visit) const {
    for (const Slot& slot : slots_)
      if (slot.id != kNoRow) visit(slot);
  }
  std::size_t size() const { return used_; }
  void clear() { slots_ = {}, used_ = 0; }

 private:
  void grow() {
    std::vector<Slot> old(std::max(kFirstCapacity, slots_.size() + slots_.size() / 2));
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id == kNoRow) continue;
      std::size_t at = place_of(slot.hash, slots_.size());
      while (slots_[at].id != kNoRow) at = at + 1 == slots_.size() ? 0 : at + 1;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

struct [[gnu::packed]] NumberSlot {  // 12 bytes
  std::uint64_t hash = 0;            // the mixed number
  RowId id = kNoRow;
};

struct WordSlot {
  std::uint64_t hash = 0, begin = 0;  // of the bytes in the shard's store
  std::uint32_t length = 0;
  RowId id = kNoRow;
};

}  // namespace

struct alignas(64) IdMap::Shard {
  std::mutex mutex;
  Table<NumberSlot> numbers;
  Table<WordSlot> words;
  std::vector<char> bytes;  // of the words, end to end

  std::string_view text(const WordSlot& slot) const { return {bytes.data() + slot.begin, slot.length}; }
};

IdMap::Batch::Batch() {
  static std::atomic<unsigned> batches{0};
  first_shard_ = int(batches++ * 97 % kShards);
}

void IdMap::Batch::add(std::uint64_t number, std::uint32_t token) {
  const std::uint64_t mixed = mix(number);
  numbers_[std::size_t(shard_of(mixed))].push_back({mixed, token});
}

void IdMap::Batch::add(std::string_view word, std::uint32_t token) {
  const std::uint64_t hash = XXH3_64bits(word.data(), word.size());
  words_[std::size_t(shard_of(hash))].push_back({word, hash, token});
}

IdMap::IdMap(Offset max_nodes) : max_nodes_(max_nodes), shards_(new Shard[kShards]) {}
IdMap::~IdMap() = default;

RowId IdMap::new_id() {
  const Offset id = next_id_.fetch_add(1, std::memory_order_relaxed);
  if (id >= max_nodes_)
    throw Error(Fault::input, cat("more than ", with_commas(max_nodes_), " different nodes: the limit of this build"));
  return RowId(id);
}

void IdMap::resolve(Batch& batch, RowId* ids) {
  for (int round = 0; round < kShards; ++round) {
    const auto index = std::size_t((batch.first_shard_ + round) % kShards);
    auto& numbers = batch.numbers_[index];
    auto& words = batch.words_[index];
    if (numbers.empty() && words.empty()) continue;
    Shard& shard = shards_[index];
    const std::lock_guard lock(shard.mutex);

    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (i + kPrefetchAhead < numbers.size()) shard.numbers.prefetch(numbers[i + kPrefetchAhead].mixed);
      const std::uint64_t mixed = numbers[i].mixed;
      NumberSlot& slot = shard.numbers.find(mixed, [&](const NumberSlot& s) { return s.hash == mixed; });
      if (slot.id == kNoRow) {
        slot = {mixed, new_id()};
        shard.numbers.count_new();
      }
      ids[numbers[i].token] = slot.id;
    }

    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i + kPrefetchAhead < words.size()) shard.words.prefetch(words[i + kPrefetchAhead].hash);
      const auto& [text, hash, token] = words[i];
      WordSlot& slot = shard.words.find(
          hash, [&, wanted = text, h = hash](const WordSlot& s) { return s.hash == h && shard.text(s) == wanted; });
      if (slot.id == kNoRow) {
        slot = {hash, shard.bytes.size(), std::uint32_t(text.size()), new_id()};
        shard.words.count_new();
        shard.bytes.insert(shard.bytes.end(), text.begin(), text.end());
      }
      ids[token] = slot.id;
    }
    numbers.clear();
    words.clear();
  }
}

BuiltGraph IdMap::take_names(int threads) {
  BuiltGraph names;
  const auto count = std::size_t(size());
  bool all_numbers = true;
  for (int s = 0; s < kShards; ++s) all_numbers = all_numbers && shards_[std::size_t(s)].words.size() == 0;
  const auto each_shard = [&](const auto& body) {
    parallel_for(threads, kShards, 1, [&](Offset first, Offset last, int) {
      for (Offset s = first; s < last; ++s) body(shards_[std::size_t(s)]);
    });
  };

  if (all_numbers) {
    names.name_numbers.resize(count);
    each_shard([&](Shard& shard) {
      shard.numbers.each([&](const NumberSlot& slot) { names.name_numbers[slot.id] = unmix(slot.hash); });
      shard.numbers.clear();
    });
    return names;
  }

  struct Decimal {
    char digits[20];
    std::size_t length;
    explicit Decimal(std::uint64_t value)
        : length(std::size_t(std::to_chars(digits, digits + sizeof digits, value).ptr - digits)) {}
  };
  names.name_bounds.resize(count + 1);
  each_shard([&](Shard& shard) {
    shard.numbers.each([&](const NumberSlot& slot) {
      names.name_bounds[std::size_t(slot.id) + 1] = Offset(Decimal(unmix(slot.hash)).length);
    });
    shard.words.each([&](const WordSlot& slot) { names.name_bounds[std::size_t(slot.id) + 1] = slot.length; });
  });
  for (std::size_t id = 0; id < count; ++id) names.name_bounds[id + 1] += names.name_bounds[id];
  names.name_bytes.resize(std::size_t(names.name_bounds.back()));
  each_shard([&](Shard& shard) {
    const auto write = [&](RowId id, const char* text, std::size_t length) {
      std::memcpy(names.name_bytes.data() + names.name_bounds[id], text, length);
    };
    shard.numbers.each([&](const NumberSlot& slot) {
      const Decimal decimal(unmix(slot.hash));
      write(slot.id, decimal.digits, decimal.length);
    });
    shard.words.each([&](const WordSlot& slot) { write(slot.id, shard.bytes.data() + slot.begin, slot.length); });
    shard.numbers.clear(), shard.words.clear();
    shard.bytes = {};
  });
  return names;
}

}  // namespace gs
