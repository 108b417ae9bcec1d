#include <cmath>

#include "graphscale/model.hpp"

namespace gs {

kernels::TileShape tile_shape(const Config& config) {
  kernels::TileShape shape;
  shape.walk_length = config.sampler.walk_length;
  shape.tiles_per_walk = (config.sampler.walk_length + kTileCentres - 1) / kTileCentres;
  shape.window = config.model.window;
  shape.shrink_window = config.model.shrink_window;
  shape.shared_negatives = config.sampler.shared_negatives;
  shape.negatives = float(config.model.negatives);
  shape.dim = config.model.dim;
  return shape;
}

SkipGram::SkipGram(Offset nodes, int dim, std::uint64_t seed, const Exec& exec)
    : nodes_(nodes),
      dim_(dim),
      centres_(*exec.ledger, nodes * padded_stride(dim), "model: centre table"),
      contexts_(*exec.ledger, nodes * padded_stride(dim), "model: context table") {
  kernels::ops(exec).initialize_rows(centres(), {}, initial_scale(dim), seed, exec);
}

std::pair<Offset, int> first_not_finite(Rows<const float> rows) {
  for (Offset i = 0; i < rows.count; ++i)
    for (int c = 0; c < rows.dim; ++c)
      if (!std::isfinite(rows(i, c))) return {i, c};
  return {-1, -1};
}

}  // namespace gs
