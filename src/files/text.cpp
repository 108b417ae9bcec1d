#include <algorithm>

#include "graphscale/files.hpp"

namespace gs {
namespace {

constexpr std::string_view kBlanks = " \t", kByteOrderMark = "\xEF\xBB\xBF";
constexpr Offset kReadBytes = 1 << 18, kMaxLineBytes = Offset{1} << 30;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

Delimiter detect_delimiter(std::string_view line) {
  if (line.find('\t') != std::string_view::npos) return Delimiter::tab;
  return line.find(',') != std::string_view::npos ? Delimiter::comma : Delimiter::blank;
}

std::string FieldSplitter::split(std::string_view line, std::vector<std::string_view>& fields) {
  if (delimiter_ == Delimiter::detect) delimiter_ = detect_delimiter(line);
  fields.clear();
  if (delimiter_ == Delimiter::comma) return split_commas(line, fields);
  if (delimiter_ == Delimiter::tab) {
    std::size_t begin = 0, end = 0;
    for (; (end = line.find('\t', begin)) != std::string_view::npos; begin = end + 1)
      fields.push_back(line.substr(begin, end - begin));
    fields.push_back(line.substr(begin));
    return {};
  }
  for (std::size_t begin = 0; (begin = line.find_first_not_of(kBlanks, begin)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return {};
}

std::string FieldSplitter::split_commas(std::string_view line, std::vector<std::string_view>& fields) {
  unquoted_.clear();
  unquoted_.reserve(line.size());  // the fields are views of it: it may not move
  for (;;) {
    const std::size_t first = line.find_first_not_of(kBlanks);
    if (first == std::string_view::npos || line[first] != '"') {
      const std::size_t end = std::min(line.find(','), line.size());
      const std::string_view field = trimmed(line.substr(0, end));
      if (field.find('"') != std::string_view::npos)
        return cat("a quote inside the unquoted field ", field,
                   ": write the whole field in quotes, its quotes doubled");
      fields.push_back(field);
      if (end == line.size()) return {};
      line.remove_prefix(end + 1);
      continue;
    }

    const std::size_t start = unquoted_.size();
    line.remove_prefix(first + 1);
    for (;;) {
      const std::size_t quote = line.find('"');
      if (quote == std::string_view::npos) return "a quote is opened and never closed: a field may not span lines";
      unquoted_.append(line.substr(0, quote));
      const bool doubled = quote + 1 < line.size() && line[quote + 1] == '"';
      line.remove_prefix(quote + 1 + (doubled ? 1 : 0));
      if (!doubled) break;
      unquoted_ += '"';
    }
    fields.push_back(std::string_view(unquoted_).substr(start));
    const std::size_t end = std::min(line.find_first_not_of(kBlanks), line.size());
    if (end == line.size()) return {};
    if (line[end] != ',') return "text after a closing quote: a comma or the end of the line is expected";
    line.remove_prefix(end + 1);
  }
}

struct TextTable::State {
  fs::path path;
  ByteSource source;
  FieldSplitter splitter;
  std::vector<char> buffer;  // [begin, end) of it is read and not yet returned
  Offset begin = 0, end = 0, line = 0, skipped = 0;
  std::vector<std::string_view> fields;

  State(const fs::path& p, Delimiter delimiter) : path(p), source(p), splitter(delimiter), buffer(kReadBytes) {}

  bool refill() {
    if (begin > 0) {
      std::memmove(buffer.data(), buffer.data() + begin, std::size_t(end - begin));
      end -= begin, begin = 0;
    }
    if (end > kMaxLineBytes) throw Error(Fault::input, cat(path.string(), ":", line, ": a line longer than 1 GiB"));
    if (end == Offset(buffer.size())) buffer.resize(2 * buffer.size());
    const Offset count = source.read(buffer.data() + end, Offset(buffer.size()) - end);
    end += count;
    return count > 0;
  }

  /// The next line without its end, or nullopt after the last one.
  std::optional<std::string_view> next_line() {
    ++line;
    Offset searched = 0;
    for (;;) {
      const char* first = buffer.data() + begin;
      const void* newline = std::memchr(first + searched, '\n', std::size_t(end - begin - searched));
      searched = end - begin;
      if (!newline && refill()) continue;
      if (!newline && begin == end) return std::nullopt;
      const Offset length = newline ? static_cast<const char*>(newline) - first : searched;
      std::string_view text(buffer.data() + begin, std::size_t(length));
      begin += length + (newline ? 1 : 0);
      if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
      if (line == 1 && text.substr(0, kByteOrderMark.size()) == kByteOrderMark)
        text.remove_prefix(kByteOrderMark.size());
      return text;
    }
  }
};

TextTable::TextTable(const fs::path& path, Delimiter delimiter) : state_(new State(path, delimiter)) {}
TextTable::TextTable(TextTable&&) noexcept = default;
TextTable::~TextTable() = default;

const std::vector<std::string_view>* TextTable::next() {
  while (const std::optional<std::string_view> line = state_->next_line()) {
    const std::size_t first = line->find_first_not_of(kBlanks);
    if (first == std::string_view::npos || (*line)[first] == '#' || (*line)[first] == '%') {
      ++state_->skipped;
      continue;
    }
    const std::string wrong = state_->splitter.split(*line, state_->fields);
    if (!wrong.empty()) fail(wrong);
    return &state_->fields;
  }
  return nullptr;
}

Offset TextTable::line() const { return state_->line; }
Offset TextTable::skipped_lines() const { return state_->skipped; }

void TextTable::fail(const std::string& what) const {
  throw Error(Fault::input, cat(state_->path.string(), ":", state_->line, ": ", what));
}

}  // namespace gs
