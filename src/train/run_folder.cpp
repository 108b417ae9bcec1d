#include "src/train/run_folder.hpp"

namespace gs {
namespace {

constexpr const char *kNext = ".next", *kPrevious = ".previous";

fs::path beside(fs::path folder, const char* suffix) { return folder += suffix; }

/// The relations' names, then, where there are twice as many rows, those of their reciprocals.
std::shared_ptr<NodeNames> names_of_rows(const NodeNames& relations, Offset rows) {
  NameList names;
  for (Offset row = 0; row < rows; ++row) names.add(relation_row_name(relations, row));
  return names_of(std::move(names));
}

}  // namespace

std::string relation_row_name(const NodeNames& relations, Offset row) {
  return relations.name(row % relations.size()) + (row < relations.size() ? "" : " (inverse)");
}

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

void save_vectors(const fs::path& run, const Vectors& vectors) {
  const Graph& graph = vectors.graph;
  const auto from = [&](Offset row) {
    return [&, row](Offset first, Rows<float> rows) { vectors.source(row + first, rows); };
  };
  try {
    for (const char* folder : {kEmbeddings, kRelations})
      for (const char* of_a_killed_run : {kNext, kPrevious}) fs::remove_all(beside(run / folder, of_a_killed_run));
    save_embeddings(beside(run / kEmbeddings, kNext), vectors.dim, from(vectors.dense_rows), graph.names());
    if (vectors.dense_rows > 0) {
      const std::shared_ptr<NodeNames> names = names_of_rows(graph.relation_names(), vectors.dense_rows);
      save_embeddings(beside(run / kRelations, kNext), vectors.dim, from(0), *names);
    }
    for (const char* folder : {kEmbeddings, kRelations}) {
      const fs::path final = run / folder, next = beside(final, kNext), previous = beside(final, kPrevious);
      if (fs::exists(final)) fs::rename(final, previous);
      if (fs::exists(next)) fs::rename(next, final);
    }
    for (const char* folder : {kEmbeddings, kRelations}) fs::remove_all(beside(run / folder, kPrevious));
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
