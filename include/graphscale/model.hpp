// What is learnt: the tables of a model and the shape of its tiles.
#pragma once

#include "graphscale/config.hpp"
#include "graphscale/sampler.hpp"

namespace gs {

/// The tile that a configuration asks for. Walks of more than kTileCentres nodes are cut into tiles of equal size, so
/// that a tile's shape depends on the configuration alone and never on the device.
kernels::TileShape tile_shape(const Config& config);
inline constexpr int kTileCentres = 64;

/// Skip-gram with negative sampling: a centre and a context table, [n, dim] float32, rows padded to 64 bytes, on exec's
/// device. Centres start uniform in [-1/(2 dim), 1/(2 dim)), contexts at 0, as word2vec does.
class SkipGram {
 public:
  SkipGram(Offset nodes, int dim, std::uint64_t seed, const Exec& exec);

  Rows<float> centres() const { return rows(centres_); }  ///< the embeddings
  Rows<float> contexts() const { return rows(contexts_); }
  static float initial_scale(int dim) { return 0.5f / float(dim); }
  static Offset table_bytes(Offset nodes, int dim) { return nodes * padded_stride(dim) * Offset(sizeof(float)); }

 private:
  Rows<float> rows(const Buffer<float>& table) const { return {table.data(), nodes_, dim_, padded_stride(dim_)}; }

  Offset nodes_;
  int dim_;
  Buffer<float> centres_, contexts_;
};

/// The first value that is not finite in host rows, as (row, column), or (-1, -1).
std::pair<Offset, int> first_not_finite(Rows<const float> rows);

}  // namespace gs
