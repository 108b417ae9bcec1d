#include "src/train/run_folder.hpp"

namespace gs {

void make_run_folder(const fs::path& run) {
  std::error_code failure;
  fs::create_directory(run, failure);
  if (failure) throw Error(Fault::output, cat(run.string(), ": cannot be made: ", failure.message()));
}

void check_space(const fs::path& run, Offset nodes, int dim) {
  const Offset wanted = nodes * (4 * Offset(dim) + 16);
  const Offset free = free_bytes(run);
  if (free < wanted)
    throw Error(Fault::output,
                cat(run.string(), ": about ", human_bytes(double(wanted)), " of embeddings will be written and ",
                    human_bytes(double(free)), " are free on its file system"));
}

void replace_embeddings(const fs::path& run, int dim, const RowSource& source, const NodeNames& names) {
  const fs::path final = run / kEmbeddings, next = run / "embeddings.next", previous = run / "embeddings.previous";
  try {
    const bool is_first = !fs::exists(final);
    fs::remove_all(next);  // of a run that was killed
    save_embeddings(is_first ? final : next, dim, source, names);
    fs::remove_all(previous);
    if (is_first) return;
    fs::rename(final, previous);
    fs::rename(next, final);
    fs::remove_all(previous);
  } catch (const fs::filesystem_error& error) {
    throw Error(Fault::output, cat(error.path1().string(), ": cannot be moved or removed: ", error.code().message()));
  }
}

void check_run_folder(const fs::path& run, bool overwrite) {
  const auto refuse = [&](const char* what) { throw Error(Fault::output, cat("\"", run.string(), "\" ", what)); };
  if (run.empty()) refuse("names no folder for the run");
  std::error_code failure;
  const fs::file_status status = fs::status(run, failure);
  if (fs::is_regular_file(status)) refuse("is a file; the run's folder is expected");
  check_writable(run);
  if (!fs::exists(status)) return;
  const bool empty = fs::is_empty(run, failure);
  if (failure) refuse("cannot be read");
  if (!empty && !fs::exists(run / kMetricsFile))
    refuse("is a folder of something else (it has no metrics.jsonl); choose another");
  if (!overwrite && fs::exists(run / kEmbeddings))
    refuse("holds the embeddings of an earlier run; choose another folder, or pass --overwrite");
}

}  // namespace gs
