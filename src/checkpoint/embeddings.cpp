#include <algorithm>
#include <limits>

#include "src/checkpoint/manifest.hpp"

namespace gs {
namespace {

constexpr const char* kArrayFile = "embeddings.npy";

/// Where vectors of nodes or relations are read from: an array, mapped, or a checkpoint.
struct Source {
  fs::path place, names;
  NpyArray array;
  std::unique_ptr<Checkpoint> checkpoint;
  bool of_relations = false;

  Offset rows() const {
    if (!checkpoint) return array.rows();
    return of_relations ? checkpoint->state().dense_rows : checkpoint->state().nodes;
  }
  int dim() const { return checkpoint ? checkpoint->dim() : int(array.columns()); }
  Rows<const float> mapped() const { return {array.values<float>().data, array.rows(), dim(), dim()}; }
  void read(Offset row, float* values) const {
    if (!checkpoint)
      std::copy_n(mapped().row(row), dim(), values);
    else if (of_relations)
      checkpoint->read(kVectors, RowId(row), values);
    else
      checkpoint->read_vector(row, values);
  }
};

/// The array that `path` stands for: itself, or the one in a run's or an embeddings folder. Or a checkpoint: itself, or
/// the newest sound one of a run without embeddings.
Source source_at(const fs::path& path, const char* folder_name = kEmbeddings) {
  Source source;
  source.of_relations = folder_name == kRelations;
  std::error_code error;
  if (fs::exists(path / kManifest, error)) {
    source.checkpoint = std::make_unique<Checkpoint>(path);
    source.checkpoint->verify();
  } else if (!fs::is_directory(path, error)) {
    source.place = path;
  } else {
    for (const fs::path& folder : {path, path / folder_name})
      if (fs::exists(folder / kArrayFile, error)) source.place = folder / kArrayFile;
    if (source.place.empty() && (source.checkpoint = newest_sound(path)))
      log_info(cat(path.string(), ": has no embeddings yet; reading its checkpoint ",
                   source.checkpoint->folder().filename().string()));
  }
  if (source.checkpoint) {
    source.place = source.checkpoint->folder();
    source.names = source.place / (source.of_relations ? kRelationsFile : kNamesFile);
    return source;
  }
  if (source.place.empty())
    throw Error(Fault::input, cat(path.string(), ": holds neither ", folder_name, "/", kArrayFile, " nor ", kArrayFile,
                                  " nor a checkpoint; a run's folder is expected"));
  source.names = source.place.parent_path() / kNamesFile;
  source.array = NpyArray(source.place);
  const NpyArray& array = source.array;
  if (array.shape().size() != 2 || array.columns() < 1 || array.columns() > std::numeric_limits<int>::max() ||
      array.rows() > kMaxRows)
    throw Error(Fault::input, cat(source.place.string(),
                                  ": a table [rows, columns] of node vectors is expected; this array is not one"));
  array.values<float>();
  return source;
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

/// rows are those of a table from `first` on.
void require_finite(Rows<const float> rows, Offset first, const NodeNames& names, Fault fault,
                    const std::string& place) {
  if (const auto [row, column] = first_not_finite(rows); row >= 0)
    throw Error(fault, cat(place, ": row ", first + row, " (node \"", names.name(first + row), "\"), column ", column,
                           " is ", rows(row, column), "; a finite number is expected"));
}

}  // namespace

Embeddings Embeddings::open(const fs::path& path, const fs::path& names) { return open_all(path, kEmbeddings, names); }

Embeddings Embeddings::open_relations(const fs::path& run) { return open_all(run, kRelations, {}); }

Embeddings Embeddings::open_all(const fs::path& path, const char* folder, const fs::path& names) {
  Source source = source_at(path, folder);
  Embeddings embeddings;
  embeddings.names_ = read_names(names.empty() ? source.names : names, source.rows());
  if (source.checkpoint) {
    embeddings.copied_.resize(std::size_t(source.rows() * source.dim()));
    const Rows<float> rows(embeddings.copied_.data(), source.rows(), source.dim(), source.dim());
    for (Offset row = 0; row < rows.count; ++row) source.read(row, rows.row(row));
    embeddings.rows_ = rows;
  } else {
    embeddings.rows_ = source.mapped();
    embeddings.array_ = std::move(source.array);  // the map stays where it is
  }
  require_finite(embeddings.rows_, 0, *embeddings.names_, Fault::input, source.place.string());
  return embeddings;
}

Embeddings Embeddings::open_some(const fs::path& path, const fs::path& names, const fs::path& list) {
  const Source source = source_at(path);
  const std::shared_ptr<NodeNames> all = read_names(names.empty() ? source.names : names, source.rows());
  Embeddings embeddings;
  NameList chosen;
  TextTable lines(list, Delimiter::tab);
  while (const auto* fields = lines.next()) {
    const std::string_view name = (*fields)[0];
    const std::optional<RowId> row = all->find(name);
    if (!row) lines.fail(cat("\"", name, "\" is no node of ", source.place.string()));
    embeddings.copied_.resize(embeddings.copied_.size() + std::size_t(source.dim()));
    source.read(*row, embeddings.copied_.data() + embeddings.copied_.size() - source.dim());
    chosen.add(name);
  }
  const Offset count = chosen.size();
  if (count == 0) lines.fail("names no node; one name a line is expected");
  embeddings.names_ = names_of(std::move(chosen));
  embeddings.rows_ = {embeddings.copied_.data(), count, source.dim(), source.dim()};
  for (Offset row = 0; row < count; ++row)
    if (*embeddings.names_->find(embeddings.names_->name(row)) != row)
      throw Error(Fault::input, cat(list.string(), ": names \"", embeddings.names_->name(row), "\" twice"));
  require_finite(embeddings.rows_, 0, *embeddings.names_, Fault::input, source.place.string());
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

  save_names(output.path() / kNamesFile, names);
  output.commit();
  progress.finish();
}

void save_names(const fs::path& file, const NodeNames& names) {
  OutputFile lines(file);
  for (Offset row = 0; row < names.size(); ++row) {
    const std::string name = names.name(row);
    GS_EXPECT(name.find('\n') == std::string::npos, file.parent_path().string(), ": row ", row, ": the node's name \"",
              name, "\" has a line break");
    lines.write(name);
    lines.write("\n");
  }
  lines.commit();
}

}  // namespace gs
