// Checkpoints as they are read: any shards make the same rows.
#include <algorithm>
#include <cstdio>

#include "src/checkpoint/manifest.hpp"

namespace gs {
namespace {

constexpr const char* kPrefix = "step-";

template <class... Parts>
[[noreturn]] void fail(const fs::path& path, const Parts&... parts) {
  throw Error(Fault::input, cat(path.string(), ": ", parts..., "; the checkpoint cannot be used"));
}

}  // namespace

void mark_complete(const fs::path& checkpoint) {
  Manifest manifest = read_manifest(checkpoint / kManifest);
  manifest.state.complete = true;
  write_text(checkpoint / kManifest, to_text(manifest));
}

fs::path checkpoints_of(const fs::path& run) { return run / "checkpoints"; }

fs::path checkpoint_of(const fs::path& run, Offset steps) {
  char name[48];
  std::snprintf(name, sizeof name, "%s%012lld", kPrefix, static_cast<long long>(steps));
  return checkpoints_of(run) / name;
}

std::vector<fs::path> list_checkpoints(const fs::path& run) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(checkpoints_of(run), error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().rfind(kPrefix, 0) == 0) folders.push_back(entry->path());
  std::sort(folders.rbegin(), folders.rend());  // names have their digits in full
  return folders;
}

std::unique_ptr<Checkpoint> newest_sound(const fs::path& run, int threads) {
  const std::vector<fs::path> folders = list_checkpoints(run);
  std::string first_fault;
  for (const fs::path& folder : folders) try {
      auto checkpoint = std::make_unique<Checkpoint>(folder);
      checkpoint->verify(threads);
      return checkpoint;
    } catch (const Error& error) {
      if (error.fault != Fault::input) throw;
      log_warn(error.what());
      if (first_fault.empty()) first_fault = error.what();
    }
  if (folders.empty()) return nullptr;
  throw Error(Fault::input,
              cat(checkpoints_of(run).string(), ": none of ", folders.size(),
                  folders.size() == 1 ? " checkpoint is sound: " : " checkpoints is sound; the newest: ", first_fault));
}

Checkpoint::Checkpoint(const fs::path& folder) : folder_(folder) {
  const Manifest manifest = read_manifest(folder / kManifest);
  state_ = manifest.state, files_ = manifest.files;
  for (const FileSum& file : manifest.files) {
    std::error_code error;
    const fs::path path = folder / file.name;
    const fs::file_status status = fs::symlink_status(path, error);
    if (!fs::is_regular_file(status)) fail(path, fs::exists(status) ? "is no regular file" : "is missing");
    const auto bytes = fs::file_size(path, error);
    if (error) fail(path, "its size cannot be read: ", error.message());
    if (Offset(bytes) != file.bytes) fail(path, "has ", bytes, " bytes, ", kManifest, " says ", file.bytes);
  }
  const auto listed = [&](const std::string& name) {
    const auto is_it = [&](const FileSum& file) { return file.name == name; };
    return std::find_if(files_.begin(), files_.end(), is_it);
  };
  const auto require_listed = [&](const std::string& name) {
    if (listed(name) == files_.end()) fail(folder / kManifest, "lists no ", name);
    return folder / name;
  };
  const fs::path config = require_listed(kConfigFile);
  require_undamaged(*listed(kConfigFile));  // else a misreading of it would be told
  try {
    state_.config = read_config(config.string(), {});
  } catch (const Error& error) {
    fail(config, error.what());
  }
  require_listed(kNamesFile);
  for (const ShardEntry& entry : manifest.shards) {
    require_listed(rows_file(entry.name));
    require_undamaged(*listed(rows_file(entry.name)));
    for (const std::string& table : manifest.tables) require_listed(table_file(entry.name, table));
    open_shard(entry.name, manifest.tables);
    if (shards_.back().rows.size != entry.rows)
      fail(folder / rows_file(entry.name), "has ", shards_.back().rows.size, " rows, ", kManifest, " says ",
           entry.rows);
  }
  place_rows();
  const std::vector<Config> parts = parts_of(state_.config);
  if (std::size_t(state_.part) >= parts.size())
    fail(folder / kManifest, "says part ", state_.part, "; the run has ", parts.size());
  if (const int wanted = parts[std::size_t(state_.part)].model.dim; columns(kVectors) != wanted)
    fail(folder, "has ", columns(kVectors), " columns of vectors, ", kConfigFile, " says ", wanted);
  if (listed(kFinished) == files_.end()) return;
  finished_array_ = NpyArray(folder / kFinished);
  if (finished_array_.rows() != state_.nodes || finished_array_.columns() != dim())
    fail(folder / kFinished, "is of another shape than ", state_.nodes, " x ", dim());
  finished_ = {finished_array_.values<float>().data, state_.nodes, dim(), dim()};
}

void Checkpoint::open_shard(const std::string& name, const std::vector<std::string>& tables) {
  row_arrays_.emplace_back(folder_ / rows_file(name));
  Shard shard{row_arrays_.back().values<RowId>(), {}};
  for (const std::string& table : tables) {
    NpyArray array(folder_ / table_file(name, table));
    array.values<float>();
    if (array.rows() != shard.rows.size || (!shards_.empty() && array.columns() != columns(table)))
      fail(folder_ / table_file(name, table), "has ", array.rows(), " rows of ", array.columns(), " columns; ",
           shard.rows.size, " rows are expected, and as many columns in every shard");
    shard.tables.emplace(table, std::move(array));
  }
  shards_.push_back(std::move(shard));
}

void Checkpoint::place_rows() {
  Offset held = 0;
  for (const Shard& shard : shards_) held += shard.rows.size;
  if (held != state_.rows()) fail(folder_, "its shards have ", held, " rows, ", kManifest, " says ", state_.rows());
  constexpr std::uint32_t kNowhere = 0xFFFFFFFF;
  places_.assign(std::size_t(held), {kNowhere, 0});
  for (std::size_t s = 0; s < shards_.size(); ++s)
    for (Offset i = 0; i < shards_[s].rows.size; ++i) {
      const RowId row = shards_[s].rows[i];
      if (Offset(row) >= held || places_[row].first != kNowhere)
        fail(folder_, "row ", row, Offset(row) >= held ? " is none of the tables'" : " lies in two places");
      places_[row] = {std::uint32_t(s), RowId(i)};
    }
}

void Checkpoint::require_undamaged(const FileSum& file) const {
  if (sum_of(folder_ / file.name).hash != file.hash)
    fail(folder_ / file.name, "its contents do not match its checksum: it is damaged");
}

void Checkpoint::verify(int threads) const {
  parallel_for(threads, Offset(files_.size()), 1, [&](Offset first, Offset last, int) {
    for (Offset i = first; i < last; ++i) require_undamaged(files_[std::size_t(i)]);
  });
}

int Checkpoint::columns(const std::string& table) const {
  if (shards_.empty()) return 0;
  const auto found = shards_[0].tables.find(table);
  return found == shards_[0].tables.end() ? 0 : int(found->second.columns());
}

void Checkpoint::read(const std::string& table, RowId row, float* values) const {
  const auto [shard, place] = places_[row];
  const NpyArray& array = shards_[shard].tables.at(table);
  const Offset width = array.columns();
  std::copy_n(array.values<float>().data + Offset(place) * width, width, values);
}

StartRows Checkpoint::rows() const {
  const auto of = [&](const char* table) -> StartRows::Values {
    if (columns(table) == 0) return {};
    return [this, name = std::string(table)](RowId row, float* values) { return read(name, row, values), true; };
  };
  return {of(kVectors), of(kContexts), of(kVectorState), of(kContextState), {}};
}

void Checkpoint::read_vector(Offset node, float* values) const {
  if (finished_.count > 0 && state_.complete)
    std::copy_n(finished_.row(node), dim(), values);
  else if (columns(kVectors) == dim())
    read(kVectors, RowId(state_.dense_rows + node), values);
  else
    fail(folder_, "the run learns its columns in parts, and they are not all learnt: train on");
}

}  // namespace gs
