// Embeddings of a few named vectors, as `train` would leave them.
#pragma once

#include "graphscale/checkpoint.hpp"

#include "tests/support/folder.hpp"

namespace gs {

using NamedVectors = std::vector<std::pair<std::string, std::vector<float>>>;

/// Writes embeddings.npy and names.txt into `folder` and opens them.
inline Embeddings make_embeddings(const fs::path& folder, const NamedVectors& vectors) {
  NpyWriter array(folder / "embeddings.npy", Dtype::f32, {Offset(vectors.size()), Offset(vectors[0].second.size())});
  std::string names;
  for (const auto& [name, values] : vectors) {
    array.write(values.data(), Offset(values.size() * sizeof(float)));
    names += name + "\n";
  }
  array.commit();
  write_text(folder / "names.txt", names);
  return Embeddings::open(folder);
}

}  // namespace gs
