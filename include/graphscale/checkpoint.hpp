// Vectors on disk: what `train` leaves behind, what `eval`, `query` and `export` read.
#pragma once

#include "graphscale/graph.hpp"

namespace gs {

/// RUN/embeddings: embeddings.npy [n, dim] float32 C order and names.txt, one name a line in the order of the rows.
class Embeddings {
 public:
  /// A run's folder, its embeddings folder, or an .npy file with names.txt beside it (or `names`).
  /// Throws input: missing or cut files, another dtype, as many names as rows not given, a name twice, values not finite.
  static Embeddings open(const fs::path& path, const fs::path& names = {});

  Rows<const float> rows() const { return rows_; }  ///< [n, dim], stride dim
  const NodeNames& names() const { return *names_; }

 private:
  NpyArray array_;
  Rows<const float> rows_;
  std::shared_ptr<NodeNames> names_;
};

/// Writes `folder` (whole or not at all). rows: host memory, any stride. Throws output; internal for a value not finite.
void save_embeddings(const fs::path& folder, Rows<const float> rows, const NodeNames& names);

enum class ExportFormat { npy, word2vec_text, word2vec_binary, safetensors };

/// npy: `path` becomes a folder as `save_embeddings` makes it. The others: one file.
/// word2vec: a name with blanks, control characters or '%' where escaped is written with those bytes as %XX (`escape`),
/// or refused by name; two names never become one. Text has 9 significant digits: reads back bit-equal.
/// safetensors: tensor "embeddings" F32 [n, dim] and the names as a U8 tensor "names" (joined by \n) in the file.
void export_embeddings(const Embeddings& embeddings, ExportFormat format, const fs::path& path, bool escape);

}  // namespace gs
