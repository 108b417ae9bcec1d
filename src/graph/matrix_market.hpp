// The head of a MatrixMarket file.
#pragma once

#include "src/graph/text_lines.hpp"

namespace gs {

/// A square sparse matrix as a graph: entry (i, j) is an edge from the node named "i" to the node named "j".
struct MatrixMarket {
  bool pattern = false;    ///< entries without a value: they weigh 1
  bool symmetric = false;  ///< entry (i, j) stands for (j, i) too
  Offset nodes = 0;        ///< as the size line claims
  Offset entries = 0;      ///< as the size line claims: nothing is allocated by it
  Offset size_line = 0;    ///< its number
};

/// Does the text begin with the banner?
bool is_matrix_market(std::string_view text);

/// Reads banner, comments and size line and leaves the cursor behind them; nullopt where the text ends before the size
/// line. Throws BadLine: a kind of matrix that is no graph or not supported (named), a size line that is none.
std::optional<MatrixMarket> read_matrix_market(LineCursor& lines);

}  // namespace gs
