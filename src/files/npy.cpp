// The .npy format, versions 1 to 3: magic, version, header length, a Python dict literal, padding, the values.
#include <algorithm>
#include <array>

#include "graphscale/files.hpp"

namespace gs {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr Offset kDataAlignment = 64;  // where the values of a file written here begin

struct DtypeName {
  Dtype dtype;
  std::string_view descr;
  Offset bytes;
};
constexpr std::array<DtypeName, 7> kDtypes{{{Dtype::u8, "|u1", 1},
                                            {Dtype::u32, "<u4", 4},
                                            {Dtype::u64, "<u8", 8},
                                            {Dtype::i32, "<i4", 4},
                                            {Dtype::i64, "<i8", 8},
                                            {Dtype::f32, "<f4", 4},
                                            {Dtype::f64, "<f8", 8}}};

const DtypeName& name_of(Dtype dtype) {
  return *std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeName& d) { return d.dtype == dtype; });
}

/// Reads the dict literal that numpy writes, and nothing else of Python.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const fs::path& path) : rest_(text), path_(path) {}

  void parse() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && descr.empty()) {
        descr = quoted();
      } else if (key == "fortran_order" && !order_seen_) {
        fortran = boolean(), order_seen_ = true;
      } else if (key == "shape" && !shape_seen_) {
        numbers(), shape_seen_ = true;
      } else {
        fail(cat("key '", key, "' is unknown or there twice"));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (!rest_.empty()) fail("text after the closing brace");
    if (descr.empty() || !order_seen_ || !shape_seen_) fail("descr, fortran_order or shape is missing");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Fault::input, cat(path_.string(), ": the .npy header is damaged: ", what));
  }

  std::string_view descr;
  bool fortran = false;
  std::vector<Offset> shape;

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }
  bool accept(char wanted) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(cat("'", wanted, "' is missing"));
  }
  std::string_view quoted() {
    skip_blanks();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    const std::size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail("a quoted word is missing (a structured dtype?)");
    const std::string_view word = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return word;
  }
  bool boolean() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (rest_.substr(0, word.size()) != word) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    fail("fortran_order is neither True nor False");
  }
  void numbers() {
    expect('(');
    while (!accept(')')) {
      shape.push_back(number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }
  Offset number() {
    skip_blanks();
    Offset value = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits)
      if (__builtin_mul_overflow(value, Offset{10}, &value) ||
          __builtin_add_overflow(value, Offset(rest_[digits] - '0'), &value))
        fail("a dimension does not fit in 64 bits");
    if (digits == 0) fail("a dimension is not a number");
    rest_.remove_prefix(digits);
    return value;
  }

  std::string_view rest_;
  const fs::path& path_;
  bool order_seen_ = false, shape_seen_ = false;
};

/// Where the header's text begins and the values start, held against the file's size.
std::pair<Offset, Offset> header_bounds(Span<const char> bytes, const fs::path& path) {
  const auto byte = [&](Offset at) { return Offset(static_cast<unsigned char>(bytes[at])); };
  if (bytes.size < 10 || std::string_view(bytes.data, kMagic.size()) != kMagic)
    throw Error(Fault::input, cat(path.string(), ": is not a .npy file (", bytes.size, " bytes, no NUMPY magic)"));
  const Offset version = byte(6), begin = version == 1 ? 10 : 12;
  if (version < 1 || version > 3)
    throw Error(Fault::input, cat(path.string(), ": .npy format version ", version, "; versions 1 to 3 are read"));
  Offset length = byte(8) | byte(9) << 8;
  if (version > 1 && bytes.size >= begin) length |= byte(10) << 16 | byte(11) << 24;
  if (begin + length > bytes.size)
    throw Error(Fault::input,
                cat(path.string(), ": the .npy header says ", length, " bytes, but the file ends after ", bytes.size));
  return {begin, begin + length};
}

}  // namespace

NpyArray::NpyArray(const fs::path& path) : path_(path), file_(path) {
  const Span<const char> bytes = file_.bytes();
  const auto [begin, start] = header_bounds(bytes, path);
  HeaderParser header(std::string_view(bytes.data + begin, std::size_t(start - begin)), path);
  header.parse();

  const auto refuse = [&](const auto&... what) { throw Error(Fault::input, cat(path.string(), ": ", what...)); };
  const auto* dtype = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeName& d) {
    return d.descr == header.descr || (d.bytes == 1 && header.descr.substr(1) == "u1");
  });
  if (dtype == kDtypes.end())
    refuse("dtype '", header.descr, "' is not read; save one of |u1 <u4 <u8 <i4 <i8 <f4 <f8 (little-endian)");
  if (header.fortran && header.shape.size() > 1) refuse("is in Fortran order; save numpy.ascontiguousarray(...) of it");
  if (header.shape.empty() || header.shape.size() > 2)
    refuse("has ", header.shape.size(), " dimensions; one or two are expected");
  dtype_ = dtype->dtype, shape_ = header.shape, start_ = start;

  Offset wanted = 0;
  if (columns() == 0 && rows() > 0) refuse("has rows, but no columns");
  if (__builtin_mul_overflow(rows(), columns(), &wanted) || __builtin_mul_overflow(wanted, dtype->bytes, &wanted) ||
      wanted > bytes.size - start)
    refuse("is cut short: shape ", rows(), " x ", columns(), " of ", dtype->descr, " does not fit in the ",
           bytes.size - start, " bytes after its header");
  if (wanted < bytes.size - start)
    refuse("holds ", bytes.size - start, " bytes after its header, but its shape and dtype say ", wanted);
  if (start % dtype->bytes != 0)
    refuse("its values begin at byte ", start, ", not aligned to ", dtype->bytes, " bytes; save it again with numpy");
}

void NpyArray::require(Dtype wanted) const {
  if (dtype_ != wanted)
    throw Error(Fault::input,
                cat(path_.string(), ": dtype is ", name_of(dtype_).descr, "; ", name_of(wanted).descr, " is expected"));
}

NpyWriter::NpyWriter(const fs::path& path, Dtype dtype, std::vector<Offset> shape)
    : file_(path), expected_bytes_(name_of(dtype).bytes) {
  std::string header = cat("{'descr': '", name_of(dtype).descr, "', 'fortran_order': False, 'shape': (");
  for (const Offset size : shape) {
    GS_EXPECT(size >= 0 && !__builtin_mul_overflow(expected_bytes_, size, &expected_bytes_), path.string(),
              ": a shape with ", size, " cannot be written");
    header += cat(size, shape.size() == 1 ? "," : ", ");
  }
  header += "), }";
  const Offset prefix = Offset(kMagic.size()) + 4, unpadded = prefix + Offset(header.size()) + 1;
  header.append(std::size_t((kDataAlignment - unpadded % kDataAlignment) % kDataAlignment), ' ') += '\n';
  const char version_and_length[] = {1, 0, char(header.size() & 0xFF), char(header.size() >> 8)};
  file_.write(kMagic);
  file_.write(version_and_length, sizeof version_and_length);
  file_.write(header);
}

void NpyWriter::write(const void* values, Offset bytes) {
  written_bytes_ += bytes;
  file_.write(values, bytes);
}

void NpyWriter::commit() {
  GS_EXPECT(written_bytes_ == expected_bytes_, file_.path().string(), ": ", written_bytes_, " bytes of values were ",
            "written, but the shape needs ", expected_bytes_);
  file_.commit();
}

}  // namespace gs
