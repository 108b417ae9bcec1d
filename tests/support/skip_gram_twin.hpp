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
  int reach = batch.shape.window;
  if (batch.shape.shrink_window) {
    const Philox4 random = draw(batch.walks.seed, batch.walks.epoch, std::uint64_t(batch.walks.first + walk),
                                std::uint32_t(at / 4), Draw::window);
    reach = 1 + int(std::uint64_t(random.word[at % 4]) * std::uint64_t(batch.shape.window) >> 32);
  }
  std::vector<int> contexts;
  for (int j = std::max(0, at - reach); j <= std::min(nodes - 1, at + reach); ++j)
    if (j != at) contexts.push_back(j);
  return contexts;
}

/// Loss of the tile and, where asked for, its gradient by both tables.
inline double tile_loss(const kernels::TileBatch& batch, Offset tile, const Table& centres, const Table& contexts,
                        Table* centre_gradient = nullptr, Table* context_gradient = nullptr, Offset* pairs = nullptr) {
  const auto& shape = batch.shape;
  const Offset walk = tile / shape.tiles_per_walk;
  const RowId* nodes = &batch.nodes[walk * shape.walk_length];
  int count = 0;
  while (count < shape.walk_length && nodes[count] != kNoRow) ++count;
  const int first = int(tile % shape.tiles_per_walk) * shape.centres();
  double loss = 0;
  const auto add = [&](RowId u, RowId v, double sign, double weight) {
    const double score = dot(centres[u], contexts[v]);
    loss += weight * softplus(-sign * score);
    if (!centre_gradient) return;
    const double slope = -weight * sign / (1 + std::exp(sign * score));
    for (std::size_t c = 0; c < centres[u].size(); ++c) {
      (*centre_gradient)[u][c] += slope * contexts[v][c];
      (*context_gradient)[v][c] += slope * centres[u][c];
    }
  };
  for (int at = first; at < std::min(count, first + shape.centres()) && count >= 2; ++at) {
    const std::vector<int> window = contexts_of(batch, walk, at, count);
    std::set<RowId> positive{nodes[at]};
    for (const int j : window) {
      positive.insert(nodes[j]);
      add(nodes[at], nodes[j], 1, 1);
    }
    if (pairs) *pairs += Offset(window.size());
    for (int s = 0; s < shape.shared_negatives; ++s) {
      const RowId negative = batch.negatives[tile * shape.shared_negatives + s];
      if (!positive.count(negative))
        add(nodes[at], negative, -1, double(shape.negatives) * double(window.size()) / shape.shared_negatives);
    }
  }
  return loss;
}

/// What each row's step is multiplied by: (centre table, context table).
inline std::pair<std::vector<double>, std::vector<double>> shortenings(const kernels::TileBatch& batch,
                                                                       const Table& centres, const Table& contexts) {
  const auto& shape = batch.shape;
  std::vector<double> centre_mass(centres.size(), 0), context_mass(contexts.size(), 0);
  int count = 0;
  while (count < shape.walk_length && batch.nodes[count] != kNoRow) ++count;
  const auto add = [&](RowId u, RowId v, double weight) {
    centre_mass[u] += weight * dot(contexts[v], contexts[v]) * double(batch.learning_rate) / 4;
    context_mass[v] += weight * dot(centres[u], centres[u]) * double(batch.learning_rate) / 4;
  };
  for (int at = 0; at < count; ++at) {
    const std::vector<int> window = contexts_of(batch, 0, at, count);
    for (const int j : window) add(batch.nodes[at], batch.nodes[j], 1);
    for (int s = 0; s < shape.shared_negatives; ++s)
      add(batch.nodes[at], batch.negatives[s],
          double(shape.negatives) * double(window.size()) / shape.shared_negatives);
  }
  for (auto* side : {&centre_mass, &context_mass})
    for (double& m : *side) m = m > double(batch.curvature_limit) ? double(batch.curvature_limit) / m : 1;
  return {centre_mass, context_mass};
}

}  // namespace gs::twin
