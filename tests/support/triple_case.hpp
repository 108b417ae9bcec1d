// Batches of tiles of triples made by hand, the same on every backend.
#pragma once

#include <algorithm>

#include "tests/support/backends.hpp"
#include "tests/support/triple_twin.hpp"

namespace gs {

/// Tiles over a few entities and relations, with repeats, a tile that is not full, an empty one, and negatives that are
/// answers. Rows: relations, then entities. Values are multiples of 2^-10, so that sums of them are exact.
struct TripleCase {
  static constexpr int kRelations = 3;

  TripleCase(TestDevice& with_device, const kernels::TripleShape& with, Offset tiles, Offset entities,
             std::uint64_t with_seed)
      : on(with_device),
        shape(with),
        seed(with_seed),
        first_entity(kRelations * (with.reciprocal > 0 ? 2 : 1)),
        row_count(first_entity + entities),
        node_values(made_triples(tiles)),
        negative_values(drawn(tiles * with.shared_negatives, 1)),
        row_values(made_rows()),
        nodes(on, node_values),
        negatives(on, negative_values),
        rows(on, row_values),
        results(on, tiles, kernels::TileResult{-1, 77}) {
    batch.shape = shape;
    batch.tiles = {seed, 3, 11, tiles, shape.width() * shape.triples};
    batch.nodes = nodes.span(), batch.negatives = negatives.span();
    batch.rows = rows_of(rows), batch.results = results.span();
    batch.first_entity = RowId(first_entity);
  }

  Rows<float> rows_of(const Values<float>& values) const {
    return {values.span().data, row_count, shape.dim, padded_stride(shape.dim)};
  }
  std::vector<float> zero_rows() const { return std::vector<float>(std::size_t(row_count * padded_stride(shape.dim))); }

  /// The batch as the twin reads it: in host memory.
  kernels::TripleBatch host_batch() const {
    kernels::TripleBatch host = batch;
    host.nodes = node_values, host.negatives = negative_values;
    return host;
  }

  /// [rows][dim]; padding must be zero.
  std::vector<twin::Row> table_of(const std::vector<float>& flat) const {
    std::vector<twin::Row> table;
    const Offset stride = padded_stride(shape.dim);
    for (Offset i = 0; i < row_count; ++i) {
      const auto row = flat.begin() + i * stride;
      table.emplace_back(row, row + shape.dim);
      EXPECT_TRUE(std::all_of(row + shape.dim, row + stride, [](float x) { return x == 0; }))
          << "padding of row " << i << " was written";
    }
    return table;
  }

  RowId random(std::uint64_t key, Offset i, Offset below_this) const {
    return RowId(
        below(draw(seed, 0, std::uint64_t(i), std::uint32_t(key), Draw::negative).low(), std::uint64_t(below_this)));
  }
  std::vector<RowId> drawn(Offset count, std::uint64_t key) const {
    std::vector<RowId> entities;
    for (Offset i = 0; i < count; ++i)
      entities.push_back(RowId(first_entity) + random(key, i, row_count - first_entity));
    return entities;
  }

  std::vector<RowId> made_triples(Offset tiles) const {
    const int width = shape.width();
    std::vector<RowId> all = drawn(tiles * shape.triples * width, 0);
    for (Offset i = 0; i < tiles * shape.triples; ++i) {
      RowId* const triple = &all[std::size_t(width * i)];
      triple[1] = random(2, i, kRelations);
      if (width == 4) triple[3] = triple[1] + RowId(shape.reciprocal);
      const Offset tile = i / shape.triples, last = tile == 1 ? shape.triples / 2 : tile == 2 ? 0 : shape.triples;
      if (i % shape.triples >= last) std::fill_n(triple, width, kNoRow);
    }
    return all;
  }

  std::vector<float> made_rows() const {
    std::vector<float> flat = zero_rows();
    const Offset stride = padded_stride(shape.dim);
    for (Offset i = 0; i < row_count; ++i)
      for (int c = 0; c < shape.dim; ++c)
        flat[std::size_t(i * stride + c)] =
            float(int(draw(seed, 1, std::uint64_t(i), std::uint32_t(c), Draw::initial).word[0] % 2048) - 1024) / 1024;
    return flat;
  }

  TestDevice& on;
  kernels::TripleShape shape;
  std::uint64_t seed;
  Offset first_entity, row_count;
  std::vector<RowId> node_values, negative_values;
  std::vector<float> row_values;
  Values<RowId> nodes, negatives;
  Values<float> rows;
  Values<kernels::TileResult> results;
  kernels::TripleBatch batch;
};

/// The known triples of a case, as kernels look them up.
struct KnownCase {
  KnownCase(TestDevice& on, const std::set<twin::Triple>& triples, RowId first_entity, Offset entities)
      : tail_offsets(on, offsets(triples, first_entity, entities, 0)),
        head_offsets(on, offsets(triples, first_entity, entities, 2)),
        tails(on, sorted(triples, first_entity, 0, 2)),
        heads(on, sorted(triples, first_entity, 2, 0)),
        tail_relations(on, sorted(triples, first_entity, 0, 1)),
        head_relations(on, sorted(triples, first_entity, 2, 1)) {}

  kernels::KnownTriples view() const {
    return {tail_offsets.span(), head_offsets.span(),   tails.span(),
            heads.span(),        tail_relations.span(), head_relations.span()};
  }

  static std::vector<Offset> offsets(const std::set<twin::Triple>& triples, RowId first_entity, Offset entities,
                                     std::size_t by) {
    std::vector<Offset> ends(std::size_t(entities + 1));
    for (const twin::Triple& triple : triples)
      for (Offset e = Offset(triple[by] - first_entity); e < entities; ++e) ++ends[std::size_t(e + 1)];
    return ends;
  }
  /// Part `of` of the triples by (part `by`, relation, the other).
  static std::vector<RowId> sorted(const std::set<twin::Triple>& triples, RowId first_entity, std::size_t by,
                                   std::size_t of) {
    std::set<twin::Triple> keyed;
    for (const twin::Triple& t : triples) keyed.insert({t[by], t[1], t[2 - by]});
    std::vector<RowId> values;
    for (const twin::Triple& t : keyed) values.push_back(of == 1 ? t[1] : t[2] - first_entity);
    return values;
  }

  Values<Offset> tail_offsets, head_offsets;
  Values<RowId> tails, heads, tail_relations, head_relations;
};

}  // namespace gs
