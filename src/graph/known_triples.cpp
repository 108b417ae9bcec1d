#include <algorithm>

#include "src/graph/edge_file.hpp"

namespace gs {
namespace {

using Fields = std::vector<std::string_view>;

void note(std::vector<std::string>& names, std::string_view name) {
  constexpr std::size_t kNoted = 5;
  if (names.size() < kNoted && std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
}

/// Adds lines to triples, those with unknown names to their counts.
class TripleReader {
 public:
  TripleReader(const fs::path& path, const NodeNames& entities, const NodeNames& relations)
      : table_(path), path_(path), entities_(entities), relations_(relations) {}

  Triples read() {
    const Fields* fields = next();
    if (!fields) return triples_;
    const std::vector<std::string> first(fields->begin(), fields->end());  // the next line moves what fields view
    const Offset first_line = table_.line();
    fields = next();
    IngestOptions options;
    options.triples = true;
    const Fields first_fields(first.begin(), first.end());
    if (looks_like_header(first_fields, fields ? *fields : Fields(), options)) {
      log_warn(cat(path_.string(), ":", first_line, ": skipped as a header of columns"));
    } else {
      add(first_fields);
    }
    for (; fields; fields = next()) add(*fields);
    return triples_;
  }

 private:
  const Fields* next() {
    const Fields* fields = table_.next();
    if (!fields) return nullptr;
    if (fields->size() != 3) table_.fail(cat("expected 3 columns (head, relation, tail), found ", fields->size()));
    for (std::size_t i = 0; i < 3; ++i)
      if ((*fields)[i].empty()) table_.fail(cat("column ", i + 1, " is empty: a triple needs three names"));
    return fields;
  }

  void add(const Fields& names) {
    const auto head = entities_.find(names[0]), relation = relations_.find(names[1]), tail = entities_.find(names[2]);
    if (head && relation && tail) {
      triples_.heads.push_back(*head), triples_.relations.push_back(*relation), triples_.tails.push_back(*tail);
      return;
    }
    ++triples_.left_out;
    triples_.unknown_entity_lines += head && tail ? 0 : 1;
    triples_.unknown_relation_lines += relation ? 0 : 1;
    if (!head) note(triples_.unknown_entities, names[0]);
    if (!tail) note(triples_.unknown_entities, names[2]);
    if (!relation) note(triples_.unknown_relations, names[1]);
  }

  TextTable table_;
  const fs::path& path_;
  const NodeNames &entities_, &relations_;
  Triples triples_;
};

/// each_triple(visit) calls visit(entity, relation, row at the other end) for every triple, and the same every time.
template <class Side, class EachTriple>
Side make_side(Offset entities, const EachTriple& each_triple, int threads) {
  constexpr Offset kGrain = 1 << 10;                       // entities a thread takes at a time
  std::vector<Offset> ends(std::size_t(entities) + 1, 0);  // each entity's begin, then, once it has its rows, its end
  each_triple([&](RowId entity, RowId, RowId) { ++ends[std::size_t(entity) + 1]; });
  for (std::size_t entity = 0; entity < std::size_t(entities); ++entity) ends[entity + 1] += ends[entity];
  std::vector<std::uint64_t> packed(std::size_t(ends.back()));  // by (relation, row)
  each_triple([&](RowId entity, RowId relation, RowId row) {
    packed[std::size_t(ends[entity]++)] = std::uint64_t{relation} << 32 | row;
  });

  Side side;
  side.offsets.assign(ends.size(), 0);
  const auto begin = [&](Offset entity) { return packed.begin() + (entity == 0 ? 0 : ends[std::size_t(entity) - 1]); };
  parallel_for(threads, entities, kGrain, [&](Offset first, Offset last, int) {
    for (Offset entity = first; entity < last; ++entity) {
      const auto end = packed.begin() + ends[std::size_t(entity)];
      std::sort(begin(entity), end);
      side.offsets[std::size_t(entity) + 1] = std::unique(begin(entity), end) - begin(entity);
    }
  });
  for (std::size_t entity = 0; entity < std::size_t(entities); ++entity)
    side.offsets[entity + 1] += side.offsets[entity];

  side.rows.resize(std::size_t(side.offsets.back())), side.relations.resize(side.rows.size());
  parallel_for(threads, entities, kGrain, [&](Offset first, Offset last, int) {
    for (Offset entity = first; entity < last; ++entity) {
      auto from = begin(entity);
      for (auto at = std::size_t(side.offsets[std::size_t(entity)]);
           at < std::size_t(side.offsets[std::size_t(entity) + 1]); ++at, ++from)
        side.relations[at] = RowId(*from >> 32), side.rows[at] = RowId(*from);
    }
  });
  return side;
}

}  // namespace

Triples read_triples(const fs::path& path, const NodeNames& entities, const NodeNames& relations) {
  return TripleReader(path, entities, relations).read();
}

TripleIndex::TripleIndex(const Csr& graph, const std::vector<const Triples*>& further, int threads) {
  GS_EXPECT(graph.relations.size == graph.num_arcs(), "TripleIndex: ", graph.relations.size, " relations of ",
            graph.num_arcs(), " arcs");
  const Offset entities = graph.num_nodes();
  for (const Triples* more : further)
    for (std::size_t i = 0; i < more->heads.size(); ++i)
      GS_EXPECT(more->heads[i] < entities && more->tails[i] < entities && more->relations[i] < graph.num_relations,
                "TripleIndex: triple ", i, " is none of the graph's entities and relations");

  const auto each_triple = [&](const auto& visit) {
    for (Offset head = 0; head < entities; ++head)
      for (Offset arc = graph.offsets[head]; arc < graph.offsets[head + 1]; ++arc)
        visit(RowId(head), graph.relations[arc], graph.targets[arc]);
    for (const Triples* more : further)
      for (std::size_t i = 0; i < more->heads.size(); ++i) visit(more->heads[i], more->relations[i], more->tails[i]);
  };
  tails_ = make_side<Side>(entities, each_triple, threads);
  heads_ = make_side<Side>(
      entities,
      [&](const auto& visit) {
        each_triple([&](RowId head, RowId relation, RowId tail) { visit(tail, relation, head); });
      },
      threads);
}

kernels::KnownTriples TripleIndex::view() const {
  return {tails_.offsets, heads_.offsets, tails_.rows, heads_.rows, tails_.relations, heads_.relations};
}

bool TripleIndex::contains(RowId head, RowId relation, RowId tail) const {
  if (Offset(head) + 1 >= Offset(tails_.offsets.size())) return false;
  const auto relations = tails_.relations.begin(), rows = tails_.rows.begin();
  const auto [first, last] =
      std::equal_range(relations + tails_.offsets[head], relations + tails_.offsets[std::size_t(head) + 1], relation);
  return std::binary_search(rows + (first - relations), rows + (last - relations), tail);
}

}  // namespace gs
