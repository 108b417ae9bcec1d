#include <algorithm>
#include <limits>

#include "graphscale/checkpoint.hpp"

namespace gs {
namespace {

constexpr const char* kArrayFile = "embeddings.npy";
constexpr const char* kNamesFile = "names.txt";

/// The array that `path` stands for: itself, or the one in a run's or an embeddings folder.
fs::path array_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  for (const fs::path& folder : {path / "embeddings", path})
    if (fs::exists(folder / kArrayFile, error)) return folder / kArrayFile;
  throw Error(Fault::input, cat(path.string(), ": holds neither embeddings/", kArrayFile, " nor ", kArrayFile,
                                "; a finished run's folder is expected"));
}

std::shared_ptr<NodeNames> read_names(const fs::path& path, Offset rows) {
  const MappedFile file(path);
  const std::string_view text(file.bytes().data, std::size_t(file.bytes().size));
  NameList list;
  list.bytes.reserve(text.size());
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    list.add(text.substr(start, end - start));
    start = end + 1;
  }
  const Offset count = list.size();
  if (count != rows)
    throw Error(Fault::input,
                cat(path.string(), ": ", count, " names for ", rows, " rows; one line a row is expected"));

  auto names = names_of(std::move(list));
  for (Offset row = 0; row < rows; ++row)
    if (const Offset other = *names->find(names->name(row)); other != row)
      throw Error(Fault::input, cat(path.string(), ":", std::max(row, other) + 1, ": the name \"", names->name(row),
                                    "\" is on line ", std::min(row, other) + 1, " already"));
  return names;
}

/// The first column whose value is not finite, or dim.
int first_not_finite(const float* row, int dim) {
  float poison = 0;  // 0 * x is 0 for finite x, else NaN: a sum that vectorises, where a test a value would not
#pragma omp simd reduction(+ : poison)
  for (int c = 0; c < dim; ++c) poison += 0 * row[c];
  if (poison == 0) return dim;
  int column = 0;
  while (column < dim && row[column] - row[column] == 0) ++column;
  return column;
}

/// rows are those of a table from `first` on.
void require_finite(Rows<const float> rows, Offset first, const NodeNames& names, Fault fault,
                    const std::string& place) {
  for (Offset i = 0; i < rows.count; ++i)
    if (const int column = first_not_finite(rows.row(i), rows.dim); column < rows.dim)
      throw Error(fault, cat(place, ": row ", first + i, " (node \"", names.name(first + i), "\"), column ", column,
                             " is ", rows(i, column), "; a finite number is expected"));
}

}  // namespace

Embeddings Embeddings::open(const fs::path& path, const fs::path& names) {
  const fs::path file = array_file(path);
  Embeddings embeddings;
  embeddings.array_ = NpyArray(file);
  const NpyArray& array = embeddings.array_;
  if (array.shape().size() != 2 || array.columns() < 1 || array.columns() > std::numeric_limits<int>::max() ||
      array.rows() > kMaxRows)
    throw Error(Fault::input,
                cat(file.string(), ": a table [rows, columns] of node vectors is expected; this array is not one"));
  const Span<const float> values = array.values<float>();
  embeddings.rows_ = {values.data, array.rows(), int(array.columns()), array.columns()};
  embeddings.names_ = read_names(names.empty() ? file.parent_path() / kNamesFile : names, array.rows());
  require_finite(embeddings.rows_, 0, *embeddings.names_, Fault::input, file.string());
  return embeddings;
}

RowSource source_of(Rows<const float> rows) {
  return [rows](Offset first, Rows<float> out) {
    for (Offset i = 0; i < out.count; ++i) std::copy_n(rows.row(first + i), rows.dim, out.row(i));
  };
}

void save_embeddings(const fs::path& folder, Rows<const float> rows, const NodeNames& names) {
  GS_EXPECT(names.size() == rows.count, folder.string(), ": ", names.size(), " names for ", rows.count, " rows");
  save_embeddings(folder, rows.dim, source_of(rows), names);
}

void save_embeddings(const fs::path& folder, int dim, const RowSource& source, const NodeNames& names) {
  const Offset count = names.size();
  OutputFolder output(folder);
  NpyWriter array(output.path() / kArrayFile, Dtype::f32, {count, dim});
  Progress progress("save", "rows", count);
  std::vector<float> values(std::size_t(std::min(count, kSaveBlock) * dim));
  for (Offset first = 0; first < count; first += kSaveBlock) {
    const Rows<float> block(values.data(), std::min(kSaveBlock, count - first), dim, dim);
    source(first, block);
    require_finite(block, first, names, Fault::internal, folder.string());
    array.write(block.data, block.count * dim * Offset(sizeof(float)));
    progress.advance(block.count);
  }
  array.commit();

  OutputFile lines(output.path() / kNamesFile);
  for (Offset row = 0; row < count; ++row) {
    const std::string name = names.name(row);
    GS_EXPECT(name.find('\n') == std::string::npos, folder.string(), ": row ", row, ": the node's name \"", name,
              "\" has a line break");
    lines.write(name);
    lines.write("\n");
  }
  lines.commit();
  output.commit();
  progress.finish();
}

}  // namespace gs
