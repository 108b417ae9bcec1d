#include "src/graph/edge_parser.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "src/graph/decimal.hpp"

namespace gs {
namespace {

const char* delimiter_words(Delimiter delimiter) {
  switch (delimiter) {
    case Delimiter::tab:
      return "tabs";
    case Delimiter::comma:
      return "commas";
    default:
      return "blanks";
  }
}

}  // namespace

std::string quoted(std::string_view field) {
  constexpr std::size_t kLongest = 40;
  std::string text = "\"";
  for (const char c : field.substr(0, kLongest)) {
    char escaped[8];
    if (std::uint8_t(c) < 0x20 || c == 0x7F) {
      std::snprintf(escaped, sizeof escaped, c == '\t' ? "\\t" : "\\x%02X", unsigned(std::uint8_t(c)));
      text += escaped;
    } else {
      text += c;
    }
  }
  return text + (field.size() > kLongest ? "...\"" : "\"");
}

std::optional<float> parse_weight(std::string_view text, std::string& why_not) {
  const auto refuse = [&](const char* why) -> std::optional<float> {
    why_not = cat("weight ", quoted(text), " ", why);
    return std::nullopt;
  };
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  float weight = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), weight);
  if (status == std::errc::invalid_argument || end != digits.data() + digits.size()) return refuse("is not a number");
  if (status == std::errc::result_out_of_range) return refuse("is out of the range of a 32-bit float");
  if (!std::isfinite(weight)) return refuse("is not finite");
  if (weight < 0) return refuse("is negative");
  return weight + 0.0f;  // -0 becomes 0
}

void EdgeParser::fail(const std::string& what) const { throw BadLine{parsed_->lines, what}; }

void EdgeParser::parse(const Block& block, ParsedBlock& parsed) {
  file_ = parsed.file = block.file;
  parsed_ = &parsed;
  tokens_ = 0;
  weights_.clear();
  unquoted_.clear();
  if (options_.triples && (file_->pairs || file_->matrix))
    throw Error(Fault::input,
                cat(file_->path.string(), ": ", file_->pairs ? "an array of pairs" : "a MatrixMarket file",
                    " has no relations: leave --triples out"));
  if (file_->pairs) {
    parse_pairs(block);
  } else {
    parse_text(block);
  }

  token_ids_.resize(tokens_);
  ids_.resolve(names_, token_ids_.data());
  EdgeList& edges = parsed.edges;
  edges.both_ways = file_->matrix && file_->matrix->symmetric;
  edges.from.resize(tokens_ / 2);  // to size: what these hold is nearly all of ingest's memory
  edges.to.resize(tokens_ / 2);
  for (std::size_t e = 0; e < tokens_ / 2; ++e) edges.from[e] = token_ids_[2 * e], edges.to[e] = token_ids_[2 * e + 1];
  if (options_.weighted) edges.weight.assign(weights_.begin(), weights_.end());
  if (!options_.triples) return;
  edges.relation.resize(edges.from.size());
  relation_ids_.resolve(relation_names_, edges.relation.data());
}

void EdgeParser::parse_text(const Block& block) {
  classify_bytes(file_->delimiter);
  splitter_ = FieldSplitter(file_->delimiter);
  parsed_->lines = block.head.lines;
  parsed_->skipped_lines = block.head.skipped_lines;
  parsed_->header_lines = block.head.header_lines;
  const std::string_view text = block.text();
  for (const char *line = text.data(), *end = line + text.size(); line < end;) {
    ++parsed_->lines;
    // Found first, so that the parser may leave a line at any of its bytes.
    const auto* newline = static_cast<const char*>(std::memchr(line, '\n', std::size_t(end - line)));
    if (!parse_plain(line)) parse_unusual({line, std::size_t(newline - line)});
    line = newline + 1;
  }
}

/// Blanks in a name are allowed by tabs and commas, and end it by blanks. A comma in a file of blanks and a tab in one
/// of commas suggest a line that is written otherwise than the first.
void EdgeParser::classify_bytes(Delimiter delimiter) {
  kind_.fill(Byte::plain);
  const auto set = [&](char byte, Byte kind) { kind_[std::uint8_t(byte)] = kind; };
  set('\n', Byte::end), set('\r', Byte::end), set('\0', Byte::unusual);
  if (delimiter == Delimiter::tab) {
    set('\t', Byte::delimiter);
  } else if (delimiter == Delimiter::comma) {
    set(',', Byte::delimiter), set('"', Byte::unusual), set('\t', Byte::unusual), set(' ', Byte::blank);
  } else {
    set(' ', Byte::delimiter), set('\t', Byte::delimiter), set(',', Byte::unusual);
  }
}

// ------------------------------------------------------------------------------------------------------- plain lines

/// Adds the line's edge; false, with nothing added, where the line is not plain.
bool EdgeParser::parse_plain(const char* line) {
  if (*line == '#' || *line == '%' || *line == ' ' || *line == '\t') return false;
  const char* at = line;
  Field from, to;
  if (!read_name(at, from) || kind_[std::uint8_t(*at)] != Byte::delimiter) return false;
  skip_delimiter(at);
  if (!read_name(at, to)) return false;
  if (options_.triples) {
    const Field relation = to;
    Field tail;
    if (kind_[std::uint8_t(*at)] != Byte::delimiter) return false;
    skip_delimiter(at);
    if (!read_name(at, tail) || kind_[std::uint8_t(*at)] != Byte::end || (*at == '\r' && at[1] != '\n')) return false;
    add_triple(from, relation, tail);
    return true;
  }
  std::string_view third;
  bool has_third = false, has_more = false;
  if (kind_[std::uint8_t(*at)] == Byte::delimiter) {
    skip_delimiter(at);
    has_third = kind_[std::uint8_t(*at)] != Byte::end;
    if (has_third && !read_third(at, third)) return false;
    has_more = kind_[std::uint8_t(*at)] == Byte::delimiter;
  }
  if (*at == '\r' && at[1] != '\n') return false;
  add_edge(from, to, third, has_third, has_more);
  return true;
}

/// One name up to a delimiter or the end of the line, numbers in the same pass that finds the end.
bool EdgeParser::read_name(const char*& at, Field& field) const {
  const char* const begin = at;
  std::uint64_t value = 0;
  unsigned digit = 0;
  while ((digit = unsigned(*at) - '0') <= 9) value = 10 * value + digit, ++at;
  const auto ends = [&] {
    return kind_[std::uint8_t(*at)] == Byte::delimiter || kind_[std::uint8_t(*at)] == Byte::end;
  };
  const std::ptrdiff_t digits = at - begin;
  if (ends() && digits >= 1 && digits <= 19 && (*begin != '0' || digits == 1)) {
    field.number = value, field.is_number = true;
    field.text = {begin, std::size_t(digits)};
    return true;
  }
  while (kind_[std::uint8_t(*at)] <= Byte::blank) ++at;
  if (!ends() || at == begin || kind_[std::uint8_t(*begin)] == Byte::blank ||
      kind_[std::uint8_t(at[-1])] == Byte::blank)
    return false;
  field.text = {begin, std::size_t(at - begin)};
  const auto number = digits == 20 ? canonical_number(field.text) : std::nullopt;  // 20 digits may fit 64 bits
  field.is_number = number.has_value();
  field.number = number.value_or(0);
  return true;
}

void EdgeParser::skip_delimiter(const char*& at) const {
  ++at;
  if (file_->delimiter == Delimiter::blank) {
    while (*at == ' ' || *at == '\t') ++at;
  } else if (file_->delimiter == Delimiter::comma) {
    while (*at == ' ') ++at;
  }
}

bool EdgeParser::read_third(const char*& at, std::string_view& third) const {
  const char* const begin = at;
  while (kind_[std::uint8_t(*at)] == Byte::plain) ++at;
  if (kind_[std::uint8_t(*at)] > Byte::end || kind_[std::uint8_t(*at)] == Byte::blank) return false;
  third = {begin, std::size_t(at - begin)};
  if (kind_[std::uint8_t(*at)] == Byte::delimiter && file_->delimiter == Delimiter::blank) {
    const char* behind = at;
    skip_delimiter(behind);
    if (kind_[std::uint8_t(*behind)] == Byte::end) at = behind;  // blanks at the end of a line are no fourth column
  }
  return true;
}

// ----------------------------------------------------------------------------------------------------- all other lines

void EdgeParser::parse_unusual(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (!is_data(line)) {
    ++parsed_->skipped_lines;
    return;
  }
  if (line.find('\0') != std::string_view::npos) fail("a zero byte: this is no text");
  if (line.find('\r') != std::string_view::npos) fail("a carriage return inside the line: lines end in LF or CR LF");
  const std::string wrong = splitter_.split(line, fields_);
  if (!wrong.empty()) fail(wrong);
  check_fields(line);
  if (options_.triples) return add_triple(field_of(fields_[0]), field_of(fields_[1]), field_of(fields_[2]));
  const Field from = field_of(fields_[0]), to = field_of(fields_[1]);
  const bool has_third = fields_.size() > 2;
  add_edge(from, to, has_third ? fields_[2] : std::string_view(), has_third, fields_.size() > 3);
}

void EdgeParser::check_fields(std::string_view line) const {
  const char* const words = delimiter_words(file_->delimiter);
  const std::size_t names = options_.triples ? 3 : 2;
  if (fields_.size() < names || (options_.triples && fields_.size() > names))
    fail(cat("expected ", options_.triples ? "3 columns (head, relation, tail)" : "at least 2 columns",
             " separated by ", words, ", found ", fields_.size(), ": ", quoted(line),
             " (--delimiter sets the separator, else the first data line decides)"));
  for (std::size_t i = 0; i < names; ++i) {
    const std::string_view field = fields_[i];
    if (field.empty())
      fail(cat("column ", i + 1, " is empty: ", options_.triples ? "a triple needs three" : "an edge needs two",
               " names"));
    const bool raw = field.data() >= line.data() && field.data() < line.data() + line.size();
    const bool stray_comma = file_->delimiter == Delimiter::blank && (field.front() == ',' || field.back() == ',');
    const bool stray_tab = file_->delimiter == Delimiter::comma && raw && field.find('\t') != std::string_view::npos;
    if (stray_comma || stray_tab)
      fail(cat("column ", i + 1, ", ", quoted(field), ", holds a ", stray_comma ? "comma" : "tab",
               " where this file's columns are separated by ", words, ": one separator a file"));
  }
}

EdgeParser::Field EdgeParser::field_of(std::string_view text) {
  const auto number = canonical_number(text);
  if (!number) text = unquoted_.emplace_back(text);
  return {text, number.value_or(0), number.has_value()};
}

// -------------------------------------------------------------------------------------------------------------- edges

void EdgeParser::add_edge(const Field& from, const Field& to, std::string_view third, bool has_third, bool has_more) {
  if (file_->matrix) check_index(from), check_index(to);
  if (options_.weighted) {
    float weight = 1;
    const bool unweighted_matrix = file_->matrix && file_->matrix->pattern;
    if (!unweighted_matrix && !read_weight(third, has_third, weight)) return;
    weights_.push_back(weight);
    parsed_->ignores_columns |= has_more;
  } else if (has_third) {
    std::string why_not;
    if (!parsed_->ignores_weights && !parsed_->ignores_columns)
      (parse_weight(third, why_not) ? parsed_->ignores_weights : parsed_->ignores_columns) = !third.empty();
  }
  add_nodes(from, to);
}

void EdgeParser::add_triple(const Field& head, const Field& relation, const Field& tail) {
  add_name(relation_names_, relation, tokens_ / 2);
  add_nodes(head, tail);
}

/// False where the line is to be dropped for its weight.
bool EdgeParser::read_weight(std::string_view text, bool there, float& weight) {
  std::string why_not = "no weight: expected 3 columns, found 2";
  const std::optional<float> read = there ? parse_weight(text, why_not) : std::nullopt;
  if (!read && !options_.drop_bad_weights)
    fail(why_not + " (weights are finite numbers >= 0; --bad-weights drop leaves such lines out)");
  if (!read) ++parsed_->dropped_weights;
  weight = read.value_or(0);
  return read.has_value();
}

void EdgeParser::check_index(const Field& field) const {
  const Offset nodes = file_->matrix->nodes;
  if (!field.is_number || field.number < 1 || field.number > std::uint64_t(nodes))
    fail(cat("index ", quoted(field.text), " is not in 1..", nodes, ", the size on line ", file_->matrix->size_line));
}

void EdgeParser::add_nodes(const Field& from, const Field& to) {
  add_name(names_, from, tokens_++);
  add_name(names_, to, tokens_++);
}

void EdgeParser::add_name(IdMap::Batch& batch, const Field& field, std::uint32_t token) {
  if (field.is_number) {
    batch.add(field.number, token);
  } else {
    batch.add(field.text, token);
  }
}

void EdgeParser::parse_pairs(const Block& block) {
  const NpyArray& pairs = *file_->pairs;
  if (options_.weighted)
    throw Error(Fault::input, cat(file_->path.string(), ": pairs in an array have no weights: leave --weighted out"));
  switch (pairs.dtype()) {
    case Dtype::u32:
      return add_pairs(pairs.values<std::uint32_t>(), block);
    case Dtype::u64:
      return add_pairs(pairs.values<std::uint64_t>(), block);
    case Dtype::i32:
      return add_pairs(pairs.values<std::int32_t>(), block);
    default:
      return add_pairs(pairs.values<std::int64_t>(), block);
  }
}

template <class T>
void EdgeParser::add_pairs(Span<const T> values, const Block& block) {
  for (Offset i = 2 * block.first_pair; i < 2 * (block.first_pair + block.pair_count); ++i) {
    if (std::is_signed_v<T> && values[i] < T{0})
      throw Error(Fault::input, cat(file_->path.string(), ": row ", i / 2, " (from 0) holds ", values[i],
                                    ": node ids are not negative"));
    names_.add(std::uint64_t(values[i]), tokens_++);
  }
}

}  // namespace gs
