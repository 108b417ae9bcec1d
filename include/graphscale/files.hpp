// Bytes on disk: mapped files, .npy arrays, decompressed input, text fields, and outputs that appear whole or not at
// all.
#pragma once

#include <cstring>
#include <filesystem>
#include <optional>

#include "graphscale/core.hpp"

namespace gs {

namespace fs = std::filesystem;

// ----------------------------------------------------------------------------------------------------------- reading

/// A whole file, mapped read-only. Throws input: missing, unreadable, not a regular file. An empty file maps as empty.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const fs::path& path);
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& o) noexcept { return std::swap(data_, o.data_), std::swap(size_, o.size_), *this; }
  ~MappedFile();
  Span<const char> bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  Offset size_ = 0;
};

enum class Dtype { u8, u32, u64, i32, i64, f32, f64 };
template <class T>
constexpr Dtype dtype_of();  // defined below for the seven types

/// One .npy array, C order, mapped. Every claim of the header (dtype, shape) is held against the file's size.
class NpyArray {
 public:
  NpyArray() = default;
  explicit NpyArray(const fs::path& path);  ///< throws input: not .npy, Fortran order, another dtype, cut short
  Dtype dtype() const { return dtype_; }
  const std::vector<Offset>& shape() const { return shape_; }  ///< [rows] or [rows, columns]
  Offset rows() const { return shape_.empty() ? 0 : shape_[0]; }
  Offset columns() const { return shape_.size() < 2 ? 1 : shape_[1]; }

  /// All values in C order. Throws input: the array's dtype is not T's.
  template <class T>
  Span<const T> values() const {
    require(dtype_of<T>());
    return {reinterpret_cast<const T*>(file_.bytes().data + start_), rows() * columns()};
  }

 private:
  void require(Dtype wanted) const;
  fs::path path_;
  MappedFile file_;
  Dtype dtype_ = Dtype::u8;
  std::vector<Offset> shape_;
  Offset start_ = 0;
};

/// Input bytes in order, decompressed where the first bytes say gzip or zstd (several members are read one after
/// another). Throws input: missing, unreadable, truncated or damaged member (names the file and what was cut).
class ByteSource {
 public:
  explicit ByteSource(const fs::path& path);
  ByteSource(ByteSource&&) noexcept;
  ~ByteSource();
  Offset read(char* into, Offset capacity);  ///< bytes read; 0 at the end only
  Offset file_bytes() const;                 ///< size on disk
  Offset consumed_bytes() const;             ///< of the file on disk so far: for progress
  bool compressed() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

enum class Delimiter { detect, tab, comma, blank };  ///< blank: runs of spaces and tabs

/// The one delimiter rule of every text input (edges, labels, node lists, splits, triples), decided by the first data
/// line: a tab in it means tab; else a comma means comma (RFC 4180 quotes; blanks around unquoted fields dropped); else
/// blanks.
Delimiter detect_delimiter(std::string_view line);

/// Cuts one line (without its end) into `fields`: views of the line, or of the splitter's own storage where quotes had
/// to be resolved; valid until the next call.
class FieldSplitter {
 public:
  explicit FieldSplitter(Delimiter delimiter) : delimiter_(delimiter) {}  ///< detect: by the first line that is split
  /// Empty on success, else what is wrong with the line ("a quote is opened and never closed: ...").
  /// Blank: runs of blanks. Tab: exact bytes, empty fields too. Comma: RFC 4180, and blanks around a field dropped.
  std::string split(std::string_view line, std::vector<std::string_view>& fields);

 private:
  std::string split_commas(std::string_view line, std::vector<std::string_view>& fields);
  Delimiter delimiter_;
  std::string unquoted_;
};

/// Lines of a text input (any compression), without CR LF or LF; a UTF-8 BOM is dropped; blank lines and lines whose
/// first non-blank character is # or % are skipped and counted. For small files; edges have their own reader.
class TextTable {
 public:
  explicit TextTable(const fs::path& path, Delimiter delimiter = Delimiter::detect);
  TextTable(TextTable&&) noexcept;
  ~TextTable();
  /// The next data line's fields, valid until the next call; null at the end. Throws input with file and line.
  const std::vector<std::string_view>* next();
  Offset line() const;                                    ///< number of the line that `next` returned, from 1
  Offset skipped_lines() const;                           ///< blanks and comments so far
  [[noreturn]] void fail(const std::string& what) const;  ///< throws input "FILE:LINE: what"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A whole small file as text. Throws input: missing, unreadable, more than 64 MiB once decompressed.
std::string read_text(const fs::path& path);

// ----------------------------------------------------------------------------------------------------------- writing

/// A file written beside its final name and renamed into place by `commit` (fsync, rename, fsync of the folder);
/// removed again when destroyed without. Every short write throws output with the path and the system's reason.
class OutputFile {
 public:
  explicit OutputFile(const fs::path& path);  ///< throws output: parent missing or unwritable, `path` no regular file
  OutputFile(OutputFile&&) noexcept;
  ~OutputFile();
  const fs::path& path() const;                 ///< the final one
  void write(const void* bytes, Offset count);  ///< buffered
  void write(std::string_view text) { write(text.data(), Offset(text.size())); }
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A .npy array written row by row; the shape is known beforehand. commit() throws internal where rows are missing.
class NpyWriter {
 public:
  NpyWriter(const fs::path& path, Dtype dtype, std::vector<Offset> shape);
  void write(const void* values, Offset bytes);
  void commit();

 private:
  OutputFile file_;
  Offset expected_bytes_, written_bytes_ = 0;
};

template <class T>
void write_npy(const fs::path& path, Span<const T> values) {
  NpyWriter out(path, dtype_of<T>(), {values.size});
  out.write(values.data, values.size * Offset(sizeof(T)));
  out.commit();
}

void write_text(const fs::path& path, std::string_view text);  ///< whole, atomically

/// A folder filled under a temporary name beside its final one and renamed into place by `commit`; removed with all it
/// holds when destroyed without.
class OutputFolder {
 public:
  /// Throws output: the parent is missing or unwritable, or `path` exists.
  explicit OutputFolder(const fs::path& path);
  OutputFolder(OutputFolder&&) noexcept;
  ~OutputFolder();
  const fs::path& path() const { return temporary_; }  ///< write here
  void commit();
  /// As commit, under another name in the same parent; false, with nothing lost, where that name is taken by now.
  bool commit_as(const fs::path& path);

 private:
  fs::path temporary_, final_;  // temporary_: empty once committed
};

/// Removes what processes of this host that are gone had under way in `folder`. OutputFile, OutputFolder and
/// check_writable begin with this.
/// of_any_host: other hosts', too, whose processes nobody can see; for who holds the folder's lock.
void sweep_leftovers(const fs::path& folder, bool of_any_host = false);

/// A folder of which this process is the only one to write, as long as this lives; between processes that ask.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder);  ///< throws output where another process has it
  FolderLock(const FolderLock&) = delete;
  ~FolderLock();
  bool is_held() const { return is_held_; }  ///< false on a file system without locks

 private:
  int descriptor_;
  bool is_held_;
};

/// Removes `path` with all it holds: renamed first, so that nobody meets a part of it. Nothing where there is nothing.
/// Throws output.
void remove_folder(const fs::path& path);

/// Puts the folder `next` in the place of `path`, in one step where the file system can exchange two names, and removes
/// what was there. Both lie in one parent. Throws output.
void replace_folder(const fs::path& next, const fs::path& path);

/// Throws output where a folder or file at `path` could not be made now: parent missing, not a folder, unwritable.
void check_writable(const fs::path& path);
Offset free_bytes(const fs::path& path);  ///< of the file system that would hold `path`

template <>
constexpr Dtype dtype_of<std::uint8_t>() {
  return Dtype::u8;
}
template <>
constexpr Dtype dtype_of<std::uint32_t>() {
  return Dtype::u32;
}
template <>
constexpr Dtype dtype_of<std::uint64_t>() {
  return Dtype::u64;
}
template <>
constexpr Dtype dtype_of<std::int32_t>() {
  return Dtype::i32;
}
template <>
constexpr Dtype dtype_of<std::int64_t>() {
  return Dtype::i64;
}
template <>
constexpr Dtype dtype_of<float>() {
  return Dtype::f32;
}
template <>
constexpr Dtype dtype_of<double>() {
  return Dtype::f64;
}

}  // namespace gs
