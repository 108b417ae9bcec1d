// Small graphs and configurations to train, and the vectors that come of it.
#pragma once

#include <gtest/gtest.h>

#include "graphscale/train.hpp"

namespace gs {

/// Equal blocks of nodes named by their number: node i is in block i * blocks / nodes.
inline GeneratorOptions block_model(Offset nodes, Offset edges, int blocks, double inside_share) {
  GeneratorOptions options;
  options.kind = "sbm", options.nodes = nodes, options.edges = edges;
  options.blocks = blocks, options.inside_share = inside_share;
  return options;
}

/// A few thousand pairs a node at most: a test trains in well under a second.
inline Config small_config(int dim = 16) {
  Config config;
  config.model.dim = dim;
  config.model.window = 3;
  config.sampler.walk_length = 10, config.sampler.walks_per_node = 4, config.sampler.shared_negatives = 8;
  return config;
}

inline Trainer::Step train_all(Trainer& trainer) {  ///< the last step
  Trainer::Step step;
  while (!trainer.done()) step = trainer.step();
  return step;
}

/// The embeddings, row after row, without padding.
inline std::vector<float> values_of(const Trainer& trainer) {
  std::vector<float> copy, values;
  const Rows<const float> rows = trainer.table(copy);
  for (Offset row = 0; row < rows.count; ++row) values.insert(values.end(), rows.row(row), rows.row(row) + rows.dim);
  return values;
}

inline std::vector<float> trained(const Csr& graph, const Config& config, int threads = 1) {
  Trainer trainer(graph, config, Device{}, threads);
  train_all(trainer);
  return values_of(trainer);
}

}  // namespace gs
