// What one input file is, told by its first bytes.
#pragma once

#include "src/graph/matrix_market.hpp"

namespace gs {

/// One input file and how its edges are written. Text where neither `matrix` nor `pairs` is there.
struct EdgeFile {
  fs::path path;
  Delimiter delimiter = Delimiter::blank;
  std::optional<MatrixMarket> matrix;
  std::optional<NpyArray> pairs;  ///< [m, 2] of u32, u64, i32 or i64
};

/// The lines at the start of a text file that the parser of edges does not see.
struct FileHead {
  std::size_t bytes = 0;
  Offset lines = 0, skipped_lines = 0, header_lines = 0;
};

/// Decides how `file` is to be read, and how much of `text`, its beginning in whole lines (all of it where
/// `whole`), is head: byte order mark, MatrixMarket banner and size line, column header (said by a warning). nullopt
/// where more text is needed to tell. Throws BadLine.
std::optional<FileHead> read_head(EdgeFile& file, std::string_view text, bool whole, const IngestOptions& options);

/// Opens a .npy file of pairs. Throws input: not [m, 2], not of integers.
NpyArray open_pairs(const fs::path& path);

/// Is the first data line a header of columns, the second being the next data line? Either neither of the names of its
/// two nodes is an integer and both of the next line's are; or its third should be a weight and is a word; or the two
/// are a known pair (source target, src dst, from to ...; of triples also subject object ...) of which the next line
/// uses neither as a name.
bool looks_like_header(const std::vector<std::string_view>& first, const std::vector<std::string_view>& second,
                       const IngestOptions& options);

}  // namespace gs
