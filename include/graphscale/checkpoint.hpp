// Vectors on disk: what `train` leaves behind, what `eval`, `query` and `export` read.
#pragma once

#include "graphscale/graph.hpp"

namespace gs {

/// RUN/embeddings: embeddings.npy [n, dim] float32 C order, and names.txt, one name a line in the order of the rows,
/// its bytes as they came. Rows are numbered by descending degree, ties by name.
class Embeddings {
 public:
  /// `path`: a run's folder, its embeddings folder, or an .npy file; `names`: names.txt beside the array where empty.
  /// Reads every value once. Throws input: missing or cut files, another dtype or shape, not as many names as rows, a
  /// name twice, a value not finite.
  static Embeddings open(const fs::path& path, const fs::path& names = {});

  Rows<const float> rows() const { return rows_; }  ///< [n, dim], stride dim
  const NodeNames& names() const { return *names_; }

 private:
  NpyArray array_;
  Rows<const float> rows_;
  std::shared_ptr<NodeNames> names_;
};

/// Fills `rows`, host memory, with rows first, first + 1, ... of a table; called for all rows in order.
using RowSource = std::function<void(Offset first, Rows<float> rows)>;
RowSource source_of(Rows<const float> rows);   ///< of rows in host memory, any stride, which must outlive it
inline constexpr Offset kSaveBlock = 1 << 12;  ///< rows that a RowSource is asked for at once; fewer at the end

/// Writes `folder`, whole or not at all; it must not exist. As many rows as there are names, [n, dim] from `source`.
/// Throws output; internal for a value that is not finite or a name that has a line break, naming node, row and column.
void save_embeddings(const fs::path& folder, int dim, const RowSource& source, const NodeNames& names);

/// The same of rows [n, dim] in host memory, any stride; padding is dropped.
void save_embeddings(const fs::path& folder, Rows<const float> rows, const NodeNames& names);

enum class ExportFormat { npy, word2vec_text, word2vec_binary, safetensors };

/// Writes `path` whole or not at all.
///
/// npy          a folder as `save_embeddings` makes it
/// word2vec     "n dim", then a line a row; text: 9 significant digits, which read back bit-equal; binary: name, blank,
///              dim little-endian floats, line break
/// safetensors  tensors "embeddings" F32 [n, dim] and "names" U8, the names joined by line breaks
///
/// A word2vec name ends at the first blank. With `escape`, the bytes of blanks and control characters (ASCII's and
/// Unicode's) and of '%' are written as %XX and the empty name as a lone %, so two names never become one. Without,
/// names are written as they are, and one that is empty or has such a blank is refused.
/// Throws input: a name refused (by name); output.
void export_embeddings(const Embeddings& embeddings, ExportFormat format, const fs::path& path, bool escape);

}  // namespace gs
