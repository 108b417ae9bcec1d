// The slow twin of the walk tile: the same loss, a pair at a time, in double, with no blocks and no masks by infinity.
#pragma once

#include <cmath>
#include <set>
#include <vector>

#include "kernels/views.hpp"

namespace gs::twin {

using Table = std::vector<std::vector<double>>;

inline double softplus(double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
  return sum;
}

/// The walk positions that are contexts of the centre at `at`.
inline std::vector<int> contexts_of(const kernels::TileBatch& batch, Offset walk, int at, int nodes) {
  if (batch.shape.kind == kernels::TileKind::edges) {
    if (at % 2 == 0) return {at + 1};
    return batch.shape.both_ways ? std::vector<int>{at - 1} : std::vector<int>{};
  }
  int reach = batch.shape.window;
  if (batch.shape.shrink_window) {
    const Philox4 random = draw(batch.walks.seed, batch.walks.epoch, std::uint64_t(batch.walks.walk(walk)),
                                std::uint32_t(at / 4), Draw::window);
    reach = 1 + int(std::uint64_t(random.word[at % 4]) * std::uint64_t(batch.shape.window) >> 32);
  }
  std::vector<int> contexts;
  for (int j = std::max(0, at - reach); j <= std::min(nodes - 1, at + reach); ++j)
    if (j != at) contexts.push_back(j);
  return contexts;
}

/// Centre row u with context row v: drawn together (sign 1) or, a negative, apart (-1). masked: a negative that is the
/// centre or one of its contexts.
struct Product {
  RowId u, v;
  double sign, weight;
  bool masked;
};

/// Everything that a tile multiplies. Arrays of the batch are in host memory.
inline std::vector<Product> products_of(const kernels::TileBatch& batch, Offset tile) {
  const auto& shape = batch.shape;
  const Offset walk = tile / shape.tiles_per_walk;
  const RowId* nodes = &batch.nodes[walk * shape.walk_length];
  int count = 0;
  while (count < shape.walk_length && nodes[count] != kNoRow) ++count;
  const int first = int(tile % shape.tiles_per_walk) * shape.centres();
  std::vector<Product> products;
  for (int at = first; at < std::min(count, first + shape.centres()) && count >= 2; ++at) {
    const std::vector<int> window = contexts_of(batch, walk, at, count);
    std::set<RowId> positive{nodes[at]};
    for (const int j : window) {
      positive.insert(nodes[j]);
      products.push_back({nodes[at], nodes[j], 1, 1, false});
    }
    const double share = double(shape.negatives) * double(window.size()) / shape.shared_negatives;
    for (int s = 0; s < shape.shared_negatives; ++s) {
      const RowId negative = batch.negatives[tile * shape.shared_negatives + s];
      products.push_back({nodes[at], negative, -1, share, positive.count(negative) > 0});
    }
  }
  return products;
}

/// Loss of the tile; where asked for, adds its gradient by both tables and its pairs.
inline double tile_loss(const kernels::TileBatch& batch, Offset tile, const Table& centres, const Table& contexts,
                        Table* centre_gradient = nullptr, Table* context_gradient = nullptr, Offset* pairs = nullptr) {
  double loss = 0;
  for (const auto& [u, v, sign, weight, masked] : products_of(batch, tile)) {
    if (pairs) *pairs += sign > 0;
    if (masked) continue;
    const double score = dot(centres[u], contexts[v]);
    loss += weight * softplus(-sign * score);
    if (!centre_gradient) continue;
    const double slope = -weight * sign / (1 + std::exp(sign * score));
    for (std::size_t c = 0; c < centres[u].size(); ++c) {
      (*centre_gradient)[u][c] += slope * contexts[v][c];
      (*context_gradient)[v][c] += slope * centres[u][c];
    }
  }
  return loss;
}

/// Adds what bounds the second derivative of the tile's loss along a row, in any direction: sigma' <= 1/4. The kernel
/// counts masked negatives too.
inline void add_curvatures(const kernels::TileBatch& batch, Offset tile, const Table& centres, const Table& contexts,
                           std::vector<double>& centre_curvature, std::vector<double>& context_curvature) {
  for (const auto& [u, v, sign, weight, masked] : products_of(batch, tile)) {
    centre_curvature[u] += weight / 4 * dot(contexts[v], contexts[v]);
    context_curvature[v] += weight / 4 * dot(centres[u], centres[u]);
  }
}

/// What each row's step is multiplied by in a batch of one tile: (centre table, context table).
inline std::pair<std::vector<double>, std::vector<double>> shortenings(const kernels::TileBatch& batch,
                                                                       const Table& centres, const Table& contexts) {
  std::vector<double> of_centres(centres.size(), 0), of_contexts(contexts.size(), 0);
  add_curvatures(batch, 0, centres, contexts, of_centres, of_contexts);
  const double rate = double(batch.learning_rate), limit = double(batch.curvature_limit);
  for (auto* side : {&of_centres, &of_contexts})
    for (double& value : *side) value = rate * value > limit ? limit / (rate * value) : 1;
  return {of_centres, of_contexts};
}

}  // namespace gs::twin
