#include "src/graph/matrix_market.hpp"

#include "src/graph/decimal.hpp"

namespace gs {
namespace {

constexpr std::string_view kBanner = "%%matrixmarket";

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return result;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  FieldSplitter(Delimiter::blank).split(line, words);
  return words;
}

MatrixMarket parse_banner(std::string_view line) {
  const std::string text = lower(line);
  const std::vector<std::string_view> words = words_of(text);
  const auto refuse = [&](const std::string& why) -> BadLine {
    return {1, cat("MatrixMarket banner ", quoted(line), ": ", why)};
  };
  if (words.size() != 5) throw refuse("expected \"%%MatrixMarket matrix coordinate FIELD SYMMETRY\"");
  if (words[1] != "matrix") throw refuse(cat("object ", words[1], " is not supported, only matrix"));
  if (words[2] != "coordinate") throw refuse(cat("format ", words[2], " is not supported, only coordinate (sparse)"));
  if (words[3] != "pattern" && words[3] != "real" && words[3] != "integer")
    throw refuse(cat("field ", words[3], " is not supported, only pattern, real and integer"));
  if (words[4] != "general" && words[4] != "symmetric")
    throw refuse(cat("symmetry ", words[4], " is not supported, only general and symmetric"));
  MatrixMarket matrix;
  matrix.pattern = words[3] == "pattern";
  matrix.symmetric = words[4] == "symmetric";
  return matrix;
}

void parse_size_line(std::string_view line, MatrixMarket& matrix) {
  const std::vector<std::string_view> words = words_of(line);
  std::vector<std::uint64_t> sizes;
  for (const std::string_view word : words)
    if (const auto number = canonical_number(word); number && *number < std::uint64_t{1} << 62)
      sizes.push_back(*number);
  if (words.size() != 3 || sizes.size() != 3)
    throw BadLine{matrix.size_line, cat("expected the size line \"ROWS COLUMNS ENTRIES\", found ", quoted(line))};
  if (sizes[0] != sizes[1])
    throw BadLine{matrix.size_line,
                  cat("a matrix of ", sizes[0], " rows and ", sizes[1],
                      " columns is no graph: its rows and columns are different things under the same numbers; write "
                      "an edge list with names for both")};
  if (sizes[0] > std::uint64_t(kMaxRows))
    throw BadLine{matrix.size_line, cat("claims ", sizes[0], " nodes, more than the limit of ", kMaxRows)};
  matrix.nodes = Offset(sizes[0]), matrix.entries = Offset(sizes[2]);
}

}  // namespace

bool is_matrix_market(std::string_view text) { return lower(text.substr(0, kBanner.size())) == kBanner; }

std::optional<MatrixMarket> read_matrix_market(LineCursor& lines) {
  std::string_view line;
  if (!lines.next(line)) return std::nullopt;
  MatrixMarket matrix = parse_banner(line);
  do {
    if (!lines.next(line)) return std::nullopt;
  } while (!is_data(line));
  matrix.size_line = lines.number();
  parse_size_line(line, matrix);
  return matrix;
}

}  // namespace gs
