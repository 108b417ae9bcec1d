// Checkpoints as they are written: a copy of the rows, then files beside training, then one rename.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "kernels/half.hpp"

#include "src/checkpoint/manifest.hpp"

namespace gs {
namespace {

constexpr Offset kBlockBytes = 16 << 20;
constexpr double kLookEvery_s = 0.02;  // for the other ranks' lists
constexpr double kMostLag_s = 90;      // that a shared file system may show a file of another machine late

std::string shard_list_file(int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "shard-%04d.json", rank);
  return name;
}

std::string shard_name(int rank, std::size_t part, std::size_t parts) {
  char name[32];
  std::snprintf(name, sizeof name, "shard-%04d%s", rank, part + 1 == parts ? "" : "-head");
  return name;
}

Offset bytes_of(const kernels::StoredRows& rows) { return rows.count * rows.stride * kernels::bytes_of(rows.type); }

/// float32 [count, dim], unpadded, a block at a time.
void write_table(const fs::path& file, const kernels::StoredRows& table, const Exec& exec) {
  NpyWriter out(file, Dtype::f32, {table.count, table.dim});
  const Offset row_bytes = table.stride * kernels::bytes_of(table.type);
  const Offset block_rows = std::max<Offset>(1, kBlockBytes / std::max<Offset>(1, row_bytes));
  std::vector<char> block;
  std::vector<float> packed;
  for (Offset first = 0, last = 0; first < table.count; first = last) {
    last = std::min(first + block_rows, first < table.hot_rows ? table.hot_rows : table.count);  // within one home
    block.resize(std::size_t((last - first) * row_bytes));
    packed.resize(std::size_t((last - first) * table.dim));
    copy_bytes(block.data(), table.row(first), Offset(block.size()), exec);
    wait(exec);
    kernels::with_type(table.type, [&](auto type) {
      using T = decltype(type);
      const T* const rows = reinterpret_cast<const T*>(block.data());
      for (Offset i = 0; i < last - first; ++i)
        for (int c = 0; c < table.dim; ++c) packed[std::size_t(i * table.dim + c)] = float(rows[i * table.stride + c]);
    });
    const Rows<const float> rows(packed.data(), last - first, table.dim, table.dim);
    if (const auto [row, column] = first_not_finite(rows); row >= 0)
      throw Error(Fault::internal, cat(file.string(), ": value ", rows(row, column), " in row ", first + row,
                                       ", column ", column, ": what is not finite is not saved"));
    out.write(packed.data(), Offset(packed.size() * sizeof(float)));
  }
  out.commit();
}

void write_row_ids(const fs::path& file, const TablesPart& part) {
  const Offset count = part.tables.front().rows.count;
  std::vector<RowId> rows(static_cast<std::size_t>(count));
  for (Offset i = 0; i < count; ++i) rows[std::size_t(i)] = part.rows[i];
  write_npy<RowId>(file, rows);
}

}  // namespace

/// Of the rows and finished columns, in host memory.
struct CheckpointWriter::Copy {
  std::vector<TablesPart> parts;
  std::vector<Buffer<char>> memory;
  Rows<const float> finished;

  static Offset bytes(const std::vector<TablesPart>& parts, Rows<const float> finished) {
    Offset sum = finished.count * finished.dim * Offset(sizeof(float));
    for (const TablesPart& part : parts)
      for (const NamedTable& table : part.tables) sum += bytes_of(table.rows);
    return sum;
  }

  Copy(const std::vector<TablesPart>& of, Rows<const float> columns, MemoryLedger& ledger, const Exec& exec)
      : parts(of), finished(columns) {
    for (TablesPart& part : parts)
      for (NamedTable& table : part.tables) {
        kernels::StoredRows& rows = table.rows;
        const Offset hot_bytes = rows.hot_rows * rows.stride * kernels::bytes_of(rows.type);
        Buffer<char>& copy = memory.emplace_back(ledger, bytes_of(rows), "checkpoint: copy of rows");
        copy_home(copy.data(), rows.hot, hot_bytes, exec);
        copy_home(copy.data() + hot_bytes, rows.cold, bytes_of(rows) - hot_bytes, exec);
        rows.hot = copy.data(), rows.cold = nullptr, rows.hot_rows = rows.count;
      }
    if (finished.count > 0) {
      const Offset row_bytes = finished.dim * Offset(sizeof(float));
      Buffer<char>& copy = memory.emplace_back(ledger, finished.count * row_bytes, "checkpoint: copy of rows");
      for (Offset i = 0; i < finished.count; ++i)
        std::memcpy(copy.data() + i * row_bytes, finished.row(i), std::size_t(row_bytes));
      finished = {reinterpret_cast<const float*>(copy.data()), finished.count, finished.dim, finished.dim};
    }
    gs::wait(exec);
  }

 private:
  /// On the CPU by all threads: training waits for it.
  static void copy_home(char* to, const void* from, Offset bytes, const Exec& exec) {
    if (exec.device.is_cuda()) return copy_bytes(to, from, bytes, exec);
    parallel_for(exec.threads, bytes, kBlockBytes, [&](Offset first, Offset last, int) {
      std::memcpy(to + first, static_cast<const char*>(from) + first, std::size_t(last - first));
    });
  }
};

CheckpointWriter::CheckpointWriter(const fs::path& run, int rank, int ranks, int ranks_here, int keep,
                                   const NodeNames& names, const NodeNames& relations)
    : run_(run),
      rank_(rank),
      ranks_(ranks),
      ranks_here_(ranks_here),
      keep_(keep),
      names_(names),
      relations_(relations),
      ledger_(Device{}) {}

CheckpointWriter::~CheckpointWriter() {
  others_are_done("the run ended before");
  wait();
}

fs::path CheckpointWriter::begin(const RunState& state) {
  const fs::path folder = checkpoints_of(run_);
  std::error_code failure;
  fs::create_directory(folder, failure);
  if (failure) throw Error(Fault::output, cat(folder.string(), ": cannot be made: ", failure.message()));
  const fs::path final_folder = checkpoint_of(run_, state.totals.steps);
  remove_folder(final_folder);  // of the same step: it was damaged, or another layout's
  output_.emplace(final_folder);
  const std::lock_guard lock(mutex_);
  others_done_ = false, others_error_.clear();
  return output_->path();
}

bool CheckpointWriter::write(const fs::path& folder, const RunState& state, const std::vector<TablesPart>& parts,
                             Rows<const float> finished, const Exec& exec, bool beside) {
  wait();
  const double start_s = now_s();
  std::shared_ptr<Copy> copy = beside ? make_copy(parts, finished, exec) : nullptr;
  Result result{state.totals.steps, 0, now_s() - start_s, 0, copy != nullptr, state.is_best, ""};
  const auto tell = [this, start_s, copied = copy != nullptr](Result result) {
    if (!result.error.empty()) output_.reset();
    result.write_s = now_s() - start_s;
    if (!copied) result.waited_s = result.write_s;
    {
      const std::lock_guard lock(mutex_);
      result_ = result;
    }
    writing_ = false;
  };
  writing_ = true;
  try {
    thread_ = std::thread([=, this]() mutable {
      try {
        const Exec here{Device{}, 1, nullptr, &ledger_};
        if (copy)
          write_files(folder, state, copy->parts, copy->finished, here);
        else
          write_files(folder, state, parts, finished, exec);
        copy.reset();
        if (rank_ == 0) result.bytes = seal(folder, state);
      } catch (const std::exception& error) {
        result.error = error.what();
      }
      tell(result);
    });
  } catch (const std::system_error& error) {
    result.error = cat("its thread cannot be started: ", error.what());
    tell(result);
  }
  return copy != nullptr;
}

/// Null where memory is too short: all ranks of this machine copy at once, and something is to be left.
std::shared_ptr<CheckpointWriter::Copy> CheckpointWriter::make_copy(const std::vector<TablesPart>& parts,
                                                                    Rows<const float> finished, const Exec& exec) {
  if (double(Copy::bytes(parts, finished)) * ranks_here_ > 0.9 * double(available_bytes({}))) return nullptr;
  try {
    return std::make_shared<Copy>(parts, finished, ledger_, exec);
  } catch (const Error& error) {
    if (error.fault != Fault::memory) throw;
  } catch (const std::bad_alloc&) {
  }
  return nullptr;
}

void CheckpointWriter::others_are_done(const std::string& error) {
  const std::lock_guard lock(mutex_);
  others_done_ = true, others_error_ = error;
}

void CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
}

std::optional<CheckpointWriter::Result> CheckpointWriter::take_result() {
  const std::lock_guard lock(mutex_);
  return std::exchange(result_, std::nullopt);
}

void CheckpointWriter::write_files(const fs::path& folder, const RunState& state, const std::vector<TablesPart>& parts,
                                   Rows<const float> finished, const Exec& exec) {
  ShardList list;
  const auto add = [&](const std::string& name) { list.files.push_back(sum_of(folder / name)); };
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const TablesPart& part = parts[p];
    const std::string shard = shard_name(rank_, p, parts.size());
    write_row_ids(folder / rows_file(shard), part);
    add(rows_file(shard));
    list.shards.push_back({shard, part.tables.front().rows.count});
    list.tables.clear();
    for (const NamedTable& table : part.tables) {
      write_table(folder / table_file(shard, table.name), table.rows, exec);
      add(table_file(shard, table.name));
      list.tables.push_back(table.name);
    }
  }
  write_text(folder / shard_list_file(rank_), to_text(list));
  if (rank_ > 0) return;
  write_text(folder / kConfigFile, to_json(state.config));
  save_names(folder / kNamesFile, names_);
  if (relations_.size() > 0) save_names(folder / kRelationsFile, relations_);
  if (finished.count > 0)
    write_table(folder / kFinished,
                Rows<float>(const_cast<float*>(finished.data), finished.count, finished.dim, finished.stride), Exec{});
}

/// Of rank 0, once the others' lists are there: all files' sums, and the name by which the whole is seen.
Offset CheckpointWriter::seal(const fs::path& folder, const RunState& state) {
  Manifest manifest{state, {}, {}, {}};
  for (int rank = 0; rank < ranks_; ++rank) {
    const fs::path file = folder / shard_list_file(rank);
    await_list(file, rank);
    const ShardList list = read_shard_list(file);
    manifest.files.insert(manifest.files.end(), list.files.begin(), list.files.end());
    manifest.shards.insert(manifest.shards.end(), list.shards.begin(), list.shards.end());
    if (!list.tables.empty()) manifest.tables = list.tables;
    fs::remove(file);
  }
  for (const char* name : {kConfigFile, kNamesFile, kRelationsFile, kFinished})
    if (fs::exists(folder / name)) manifest.files.push_back(sum_of(folder / name));
  write_text(folder / kManifest, to_text(manifest));
  output_->commit();
  output_.reset();
  prune(state.totals.steps);
  Offset bytes = 0;
  for (const FileSum& file : manifest.files) bytes += file.bytes;
  return bytes;
}

void CheckpointWriter::await_list(const fs::path& file, int rank) {
  double done_s = 0;  // since when it must be there
  while (!fs::exists(file)) {
    {
      const std::lock_guard lock(mutex_);
      if (!others_error_.empty()) throw Error(Fault::output, others_error_);
      if (others_done_ && done_s == 0) done_s = now_s();
    }
    if (done_s > 0 && now_s() - done_s > kMostLag_s)
      throw Error(Fault::output, cat(file.parent_path().string(), ": what rank ", rank,
                                     " wrote is not there; is it on ", "a file system that all ranks share?"));
    std::this_thread::sleep_for(std::chrono::duration<double>(kLookEvery_s));
  }
}

/// Removes what is older than the newest `keep` up to `newest` and was not the best. What is newer, and was damaged
/// when the run went on, counts for nothing and stays; so does what has no manifest that can be read.
void CheckpointWriter::prune(Offset newest) const {
  int kept = 0;
  bool has_best = false;
  for (const fs::path& folder : list_checkpoints(run_)) {
    if (folder > checkpoint_of(run_, newest)) continue;
    bool is_best = false;
    try {
      is_best = !has_best && read_manifest(folder / kManifest).state.is_best;
    } catch (const Error&) {
      continue;
    }
    has_best = has_best || is_best;
    if (kept++ < keep_ || is_best) continue;
    try {
      remove_folder(folder);
    } catch (const Error& error) {
      log_warn(error.what());
    }
  }
}

}  // namespace gs
