#include "src/graph/edge_file.hpp"

#include <algorithm>
#include <array>

#include "src/graph/decimal.hpp"

namespace gs {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

using Fields = std::vector<std::string_view>;

bool equal_words(std::string_view text, std::string_view lower_word) {
  return std::equal(text.begin(), text.end(), lower_word.begin(), lower_word.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? char(a - 'A' + 'a') : a) == b; });
}

bool are_column_names(std::string_view from, std::string_view to, bool of_triples) {
  using Pair = std::pair<std::string_view, std::string_view>;
  static constexpr std::array<Pair, 3> kTriplePairs{{{"subject", "object"}, {"h", "t"}, {"s", "o"}}};
  static constexpr std::array<Pair, 17> kPairs{{{"source", "target"},
                                                {"source", "destination"},
                                                {"src", "dst"},
                                                {"src", "dest"},
                                                {"from", "to"},
                                                {"head", "tail"},
                                                {"start", "end"},
                                                {"node1", "node2"},
                                                {"node_1", "node_2"},
                                                {"node_a", "node_b"},
                                                {"id1", "id2"},
                                                {"id_1", "id_2"},
                                                {"source_id", "target_id"},
                                                {"src_id", "dst_id"},
                                                {"fromnodeid", "tonodeid"},
                                                {"from_node", "to_node"},
                                                {"u", "v"}}};
  const auto is_used = [&](const Pair& p) { return equal_words(from, p.first) && equal_words(to, p.second); };
  return std::any_of(kPairs.begin(), kPairs.end(), is_used) ||
         (of_triples && std::any_of(kTriplePairs.begin(), kTriplePairs.end(), is_used));
}

/// A word where a number should be. What starts like a number, and NaN and infinity, are bad weights, not headers.
bool is_word(std::string_view field) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !field.empty() && is_letter(field[0]) && !equal_words(field, "nan") && !equal_words(field, "inf") &&
         !equal_words(field, "infinity");
}

/// Sets the delimiter by the first data line and looks for a header.
std::optional<FileHead> read_edge_list_head(EdgeFile& file, LineCursor lines, bool whole,
                                            const IngestOptions& options) {
  std::string_view first, second;
  bool has_first = false, has_second = false;
  FileHead head;
  head.bytes = lines.position();
  FileHead behind_first;
  for (std::string_view line; !has_second && lines.next(line);) {
    if (!is_data(line)) continue;
    (has_first ? second : first) = line;
    has_second = has_first;
    if (!has_second) behind_first = {lines.position(), lines.number(), lines.number() - 1, 1};
    has_first = true;
  }
  if (!has_second && !whole) return std::nullopt;
  file.delimiter = options.delimiter;
  if (file.delimiter == Delimiter::detect) file.delimiter = has_first ? detect_delimiter(first) : Delimiter::blank;
  if (!has_first || options.header == Header::no) return head;

  if (options.header == Header::detect) {
    FieldSplitter first_splitter(file.delimiter), second_splitter(file.delimiter);
    Fields first_fields, second_fields;
    if (!first_splitter.split(first, first_fields).empty() ||
        (has_second && !second_splitter.split(second, second_fields).empty()) ||
        !looks_like_header(first_fields, second_fields, options))
      return head;
    log_warn(cat(file.path.string(), ":", behind_first.lines, ": skipped as a header of columns: ", quoted(first),
                 " (--header=no reads it as an edge)"));
  }
  return behind_first;
}

}  // namespace

bool looks_like_header(const Fields& first, const Fields& second, const IngestOptions& options) {
  const std::size_t to = options.triples ? 2 : 1;  // the column of the second node
  if (first.size() <= to) return false;
  const auto is_number = [](std::string_view field) { return canonical_number(field).has_value(); };
  const bool has_second = second.size() > to;
  if (has_second && !is_number(first[0]) && !is_number(first[to]) && is_number(second[0]) && is_number(second[to]))
    return true;
  if (options.weighted && first.size() >= 3 && is_word(first[2])) return true;
  const auto is_used = [&](std::string_view name) { return name == second[0] || name == second[to]; };
  return are_column_names(first[0], first[to], options.triples) &&
         !(has_second && (is_used(first[0]) || is_used(first[to])));
}

std::optional<FileHead> read_head(EdgeFile& file, std::string_view text, bool whole, const IngestOptions& options) {
  if (text.substr(0, 2) == "\xFF\xFE" || text.substr(0, 2) == "\xFE\xFF")
    throw BadLine{1, "UTF-16 text: convert it first (iconv -f UTF-16 -t UTF-8)"};
  const std::size_t start = text.substr(0, kByteOrderMark.size()) == kByteOrderMark ? kByteOrderMark.size() : 0;
  LineCursor lines(text, start);
  if (!is_matrix_market(text.substr(start))) return read_edge_list_head(file, lines, whole, options);

  file.matrix = read_matrix_market(lines);
  if (!file.matrix) {
    if (whole) throw BadLine{lines.number(), "a MatrixMarket file that ends before its size line"};
    return std::nullopt;
  }
  return FileHead{lines.position(), lines.number(), lines.number(), 0};
}

NpyArray open_pairs(const fs::path& path) {
  NpyArray pairs(path);
  if (pairs.shape().size() != 2 || pairs.columns() != 2)
    throw Error(Fault::input, cat(path.string(), ": an array of pairs has the shape [m, 2], this one has ",
                                  pairs.shape().size(), pairs.shape().size() == 1 ? " dimension" : " dimensions and ",
                                  pairs.shape().size() == 1 ? "" : cat(pairs.columns(), " columns")));
  const Dtype type = pairs.dtype();
  if (type != Dtype::u32 && type != Dtype::u64 && type != Dtype::i32 && type != Dtype::i64)
    throw Error(Fault::input, cat(path.string(), ": node ids are u4, u8, i4 or i8, not of this array's type"));
  return pairs;
}

}  // namespace gs
