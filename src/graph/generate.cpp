#include <algorithm>
#include <cmath>
#include <numeric>

#include "graphscale/graph.hpp"
#include "kernels/philox.hpp"

#include "src/graph/build_graph.hpp"

namespace gs {
namespace {

constexpr Offset kBlock = 1 << 18;  // edges a thread makes at a time; freed one by one as rows are built

constexpr Offset kMaxEdges = Offset{1} << 50;  // their bytes are then counted in 64 bits, with room

struct Edge {
  Offset from, to;
};

Philox4 edge_bits(const GeneratorOptions& o, Offset index, std::uint32_t step) {
  return draw(o.seed, 0, std::uint64_t(index), step, Draw::edge);
}

/// Uniform in [0, bound).
Offset uniform(std::uint64_t bits, Offset bound) { return Offset(below(bits, std::uint64_t(bound))); }

/// R-MAT (Chakrabarti, Zhan, Faloutsos, SDM 2004): a quadrant of the adjacency matrix, a quadrant of that, and so on.
/// Where a side is odd, its lower half is the larger one: any number of nodes, no draw is thrown away.
Edge rmat_edge(const GeneratorOptions& o, Offset index) {
  constexpr double kUnit = 1.0 / 4294967296.0;
  Offset row = 0, rows = o.nodes, column = 0, columns = o.nodes;
  Philox4 bits{};
  for (std::uint32_t level = 0; rows > 1 || columns > 1; ++level) {
    if (level % 4 == 0) bits = edge_bits(o, index, level / 4);
    const double where = double(bits.word[level % 4]) * kUnit;
    const bool low_row = where < o.a + o.b;
    const bool low_column = low_row ? where < o.a : where < o.a + o.b + o.c;
    const auto halve = [](Offset& first, Offset& size, bool low) {
      if (size == 1) return;
      const Offset half = (size + 1) / 2;
      if (!low) first += half;
      size = low ? half : size - half;
    };
    halve(row, rows, low_row), halve(column, columns, low_column);
  }
  return {row, column};
}

/// Erdos-Renyi G(n, m): any two different nodes, with replacement.
Edge er_edge(const GeneratorOptions& o, Offset index) {
  const Philox4 bits = edge_bits(o, index, 0);
  const Offset from = uniform(bits.low(), o.nodes);
  if (o.nodes == 1) return {from, from};
  const Offset to = uniform(bits.high(), o.nodes - 1);
  return {from, to + (to >= from ? 1 : 0)};
}

/// Stochastic block model of equal blocks: the other end is in the node's own block with probability inside_share.
Edge sbm_edge(const GeneratorOptions& o, Offset index) {
  const Philox4 ends = edge_bits(o, index, 0), coin = edge_bits(o, index, 1);
  const Offset from = uniform(ends.low(), o.nodes);
  const Offset block = ((from + 1) * o.blocks - 1) / o.nodes;  // the one with first <= from < last
  const Offset first = block * o.nodes / o.blocks, last = (block + 1) * o.nodes / o.blocks, size = last - first;
  const bool wants_inside = double(coin.word[0]) < o.inside_share * 4294967296.0;
  const bool inside = size == o.nodes || (wants_inside && size > 1);
  if (o.nodes == 1) return {from, from};
  if (inside) {
    const Offset to = first + uniform(ends.high(), size - 1);
    return {from, to + (to >= from ? 1 : 0)};
  }
  const Offset to = uniform(ends.high(), o.nodes - size);
  return {from, to < first ? to : to + size};
}

using EdgeMaker = Edge (*)(const GeneratorOptions&, Offset);

EdgeMaker maker_of(const std::string& kind) {
  if (kind == "rmat") return rmat_edge;
  if (kind == "er") return er_edge;
  if (kind == "sbm") return sbm_edge;
  if (kind == "ring") return [](const GeneratorOptions& o, Offset i) { return Edge{i, (i + 1) % o.nodes}; };
  if (kind == "star") return [](const GeneratorOptions&, Offset i) { return Edge{0, i + 1}; };
  throw Error(Fault::usage, cat("generator '", kind, "' is not known; choose rmat, er, sbm, ring or star"));
}

}  // namespace

void check_generator(const GeneratorOptions& o) {
  const auto require = [](bool holds, const auto&... sentence) {
    if (!holds) throw Error(Fault::usage, cat("generate: ", sentence...));
  };
  maker_of(o.kind);
  require(o.nodes >= 1 && o.nodes <= kMaxRows, o.nodes, " nodes; 1 to ", kMaxRows, " are possible");
  require(o.edges >= 0 && o.edges <= kMaxEdges, o.edges, " edges; 0 to ", kMaxEdges, " are possible");
  require(o.a >= 0 && o.b >= 0 && o.c >= 0 && o.a + o.b + o.c <= 1 + 1e-9, "shares a = ", o.a, ", b = ", o.b,
          ", c = ", o.c, "; none may be negative and their sum not above 1");
  require(o.blocks >= 1 && o.blocks <= o.nodes, o.blocks, " blocks; 1 to as many as nodes (", o.nodes,
          ") are possible");
  require(o.inside_share >= 0 && o.inside_share <= 1, "inside share ", o.inside_share, " is not in [0, 1]");
}

Offset generated_edges(const GeneratorOptions& options) {
  if (options.kind == "ring") return options.nodes;
  if (options.kind == "star") return options.nodes - 1;
  return options.edges;
}

void generate_edges(const GeneratorOptions& options, Offset first, Span<RowId> from, Span<RowId> to) {
  const EdgeMaker make = maker_of(options.kind);
  for (Offset i = 0; i < from.size; ++i) {
    const Edge edge = make(options, first + i);
    from[i] = RowId(edge.from), to[i] = RowId(edge.to);
  }
}

BuiltGraph generate(const GeneratorOptions& options) {
  check_generator(options);
  const Offset count = generated_edges(options), block_count = (count + kBlock - 1) / kBlock;
  const Offset edge_bytes = 2 * Offset(sizeof(RowId)) * count,
               name_bytes = Offset(sizeof(std::uint64_t)) * options.nodes;
  require_memory(edge_bytes + name_bytes + build_bytes(count, 2 * count, options.nodes, false, false), "generate");

  std::vector<EdgeList> blocks(static_cast<std::size_t>(block_count));
  Progress progress("generate", "edges", count);
  parallel_for(options.threads, block_count, 1, [&](Offset from_block, Offset to_block, int) {
    for (Offset block = from_block; block < to_block; ++block) {
      EdgeList& edges = blocks[std::size_t(block)];
      const Offset first = block * kBlock, size = std::min(kBlock, count - first);
      edges.from.resize(std::size_t(size)), edges.to.resize(std::size_t(size));
      generate_edges(options, first, edges.from, edges.to);
      progress.advance(size);
    }
  });
  progress.finish();

  BuiltGraph names;
  names.name_numbers.resize(std::size_t(options.nodes));
  std::iota(names.name_numbers.begin(), names.name_numbers.end(), std::uint64_t{0});
  IngestOptions build;
  build.duplicates = Duplicates::first, build.threads = options.threads;
  IngestCounts counts;
  return build_rows(std::move(blocks), std::move(names), build, counts);
}

}  // namespace gs
