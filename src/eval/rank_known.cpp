#include <algorithm>

#include "graphscale/eval.hpp"

namespace gs {
namespace {

std::uint64_t key_of(RowId entity, RowId relation) { return std::uint64_t(entity) << 32 | relation; }

void sort_unique(std::vector<std::uint64_t>& keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  keys.shrink_to_fit();
}

}  // namespace

KnownLookup known_in(const kernels::KnownTriples& triples) {
  return [triples](const kernels::TripleQuery& query) -> Span<const RowId> {
    const Span<const Offset> offsets = query.asks_head ? triples.head_offsets : triples.tail_offsets;
    const Span<const RowId> relations = query.asks_head ? triples.head_relations : triples.tail_relations;
    const RowId* const begin = relations.data + offsets[query.entity];
    const auto [first, last] = std::equal_range(begin, relations.data + offsets[query.entity + 1], query.relation);
    return (query.asks_head ? triples.heads : triples.tails)
        .subspan(offsets[query.entity] + (first - begin), last - first);
  };
}

KnownAnswers::KnownAnswers(const Triples& asked) {
  for (std::size_t i = 0; i < asked.heads.size(); ++i) {
    tail_keys_.push_back(key_of(asked.heads[i], asked.relations[i]));
    head_keys_.push_back(key_of(asked.tails[i], asked.relations[i]));
  }
  sort_unique(tail_keys_), sort_unique(head_keys_);
  for (std::size_t i = 0; i < asked.heads.size(); ++i) add(asked.heads[i], asked.relations[i], asked.tails[i]);
}

Offset KnownAnswers::place_of(const kernels::TripleQuery& query) const {
  const std::vector<std::uint64_t>& keys = query.asks_head ? head_keys_ : tail_keys_;
  const std::uint64_t key = key_of(query.entity, query.relation);
  const auto found = std::lower_bound(keys.begin(), keys.end(), key);
  if (found == keys.end() || *found != key) return -1;
  return (found - keys.begin()) + (query.asks_head ? Offset(tail_keys_.size()) : 0);
}

void KnownAnswers::add(RowId head, RowId relation, RowId tail) {
  if (const Offset place = place_of({head, relation, false}); place >= 0) gathered_.emplace_back(place, tail);
  if (const Offset place = place_of({tail, relation, true}); place >= 0) gathered_.emplace_back(place, head);
}

void KnownAnswers::finish() {
  std::sort(gathered_.begin(), gathered_.end());
  gathered_.erase(std::unique(gathered_.begin(), gathered_.end()), gathered_.end());
  offsets_.assign(tail_keys_.size() + head_keys_.size() + 1, 0);
  answers_.reserve(gathered_.size());
  for (const auto& [place, answer] : gathered_) {
    ++offsets_[std::size_t(place) + 1];
    answers_.push_back(answer);
  }
  for (std::size_t i = 1; i < offsets_.size(); ++i) offsets_[i] += offsets_[i - 1];
  gathered_ = {};
}

Span<const RowId> KnownAnswers::answers(const kernels::TripleQuery& query) const {
  const Offset place = place_of(query);
  if (place < 0) return {};
  const Offset first = offsets_[std::size_t(place)], last = offsets_[std::size_t(place) + 1];
  return Span<const RowId>(answers_).subspan(first, last - first);
}

}  // namespace gs
