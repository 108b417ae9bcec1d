// Embeddings in the formats of other programs.
#include <bit>
#include <charconv>

#include "graphscale/checkpoint.hpp"

namespace gs {
namespace {

static_assert(std::endian::native == std::endian::little, "the binary formats are little-endian");

/// Bytes of the blank or control character that `text` begins with, 0 where it begins with another. Readers split at
/// Unicode's blanks too (Python's str.split does).
std::size_t blank_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (byte(0) <= 0x20 || byte(0) == 0x7F) return 1;
  if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) <= 0xA0) return 2;  // U+0080 .. U+00A0
  const unsigned code = byte(0) << 16 | byte(1) << 8 | byte(2);
  const bool blank = code == 0xE19A80                           // U+1680
                     || (code >= 0xE28080 && code <= 0xE2808A)  // U+2000 .. U+200A
                     || code == 0xE280A8 || code == 0xE280A9    // U+2028, U+2029
                     || code == 0xE280AF || code == 0xE2819F    // U+202F, U+205F
                     || code == 0xE38080;                       // U+3000
  return blank ? 3 : 0;
}

std::string escaped(std::string_view name) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  if (name.empty()) return "%";
  std::string text;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t special = name[at] == '%' ? 1 : blank_bytes(name.substr(at));
    if (special == 0) text += name[at++];
    for (; special > 0; --special, ++at) {
      const auto byte = static_cast<unsigned char>(name[at]);
      text += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text;
}

bool has_blank(std::string_view name) {
  for (std::size_t at = 0; at < name.size(); ++at)
    if (blank_bytes(name.substr(at)) > 0) return true;
  return false;
}

void require_plain_names(const NodeNames& names) {
  for (Offset row = 0; row < names.size(); ++row) {
    const std::string name = names.name(row);
    if (!name.empty() && !has_blank(name)) continue;
    throw Error(Fault::input, cat("the node \"", name, "\" (row ", row, ") ",
                                  name.empty() ? "has an empty name" : "has a blank in it",
                                  ", and word2vec files part columns at blanks: give --escape, which writes it as ",
                                  escaped(name), ", or choose npy or safetensors"));
  }
}

/// " 0.25 -1.5 ..."; `text` keeps its storage from row to row.
void append_numbers(const float* row, int dim, std::string& text) {
  constexpr std::size_t kLongest = 17;  // " -1.23456789e-38" and one to spare
  constexpr int kDigits = 9;            // tell any two floats apart
  const std::size_t start = text.size();
  text.resize(start + kLongest * std::size_t(dim));
  char *at = text.data() + start, *const end = text.data() + text.size();
  for (int c = 0; c < dim; ++c) {
    *at++ = ' ';
    at = std::to_chars(at, end, row[c], std::chars_format::general, kDigits).ptr;
  }
  text.resize(std::size_t(at - text.data()));
}

void write_word2vec(const Embeddings& embeddings, const fs::path& path, bool binary, bool escape) {
  const Rows<const float> rows = embeddings.rows();
  const NodeNames& names = embeddings.names();
  if (!escape) require_plain_names(names);

  OutputFile file(path);
  file.write(cat(rows.count, " ", rows.dim, "\n"));
  std::string line;
  for (Offset row = 0; row < rows.count; ++row) {
    line = escape ? escaped(names.name(row)) : names.name(row);
    if (binary) {
      line += ' ';
      line.append(reinterpret_cast<const char*>(rows.row(row)), std::size_t(rows.dim) * sizeof(float));
    } else {
      append_numbers(rows.row(row), rows.dim, line);
    }
    line += '\n';
    file.write(line);
  }
  file.commit();
}

void write_safetensors(const Embeddings& embeddings, const fs::path& path) {
  const Rows<const float> rows = embeddings.rows();
  const NodeNames& names = embeddings.names();
  const Offset row_bytes = rows.dim * Offset(sizeof(float)), table_bytes = rows.count * row_bytes;
  Offset name_bytes = std::max<Offset>(0, rows.count - 1);  // the line breaks between
  for (Offset row = 0; row < rows.count; ++row) name_bytes += Offset(names.name(row).size());

  std::string header = cat(R"({"__metadata__":{"format":"graphscale","names":"UTF-8 or other bytes, one line a row"},)",
                           R"("embeddings":{"dtype":"F32","shape":[)", rows.count, ",", rows.dim,
                           R"(],"data_offsets":[0,)", table_bytes, R"(]},"names":{"dtype":"U8","shape":[)", name_bytes,
                           R"(],"data_offsets":[)", table_bytes, ",", table_bytes + name_bytes, "]}}");
  header.resize((header.size() + 7) / 8 * 8, ' ');  // so that the tensors are aligned where the file is mapped
  const std::uint64_t header_bytes = header.size();

  OutputFile file(path);
  file.write(&header_bytes, sizeof header_bytes);
  file.write(header);
  for (Offset row = 0; row < rows.count; ++row) file.write(rows.row(row), row_bytes);
  for (Offset row = 0; row < rows.count; ++row) {
    if (row > 0) file.write("\n");
    file.write(names.name(row));
  }
  file.commit();
}

}  // namespace

void export_embeddings(const Embeddings& embeddings, ExportFormat format, const fs::path& path, bool escape) {
  switch (format) {
    case ExportFormat::npy:
      return save_embeddings(path, embeddings.rows(), embeddings.names());
    case ExportFormat::word2vec_text:
      return write_word2vec(embeddings, path, false, escape);
    case ExportFormat::word2vec_binary:
      return write_word2vec(embeddings, path, true, escape);
    case ExportFormat::safetensors:
      return write_safetensors(embeddings, path);
  }
}

}  // namespace gs
