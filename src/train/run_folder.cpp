#include "src/train/run_folder.hpp"

namespace gs {
namespace {

fs::path next_of(fs::path folder) { return folder += ".next"; }

/// Whatever its end was: the last line of its metrics says so.
bool has_ended(const fs::path& run) {
  if (!fs::exists(run / kMetricsFile)) return false;
  const MappedFile file(run / kMetricsFile);
  std::string_view text(file.bytes().data, std::size_t(file.bytes().size));
  if (text.empty() || text.back() != '\n') return false;
  text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1).substr(0, 6) == "{\"end\"";
}

}  // namespace

std::string relation_row_name(const NodeNames& relations, Offset row) {
  return relations.name(row % relations.size()) + (row < relations.size() ? "" : " (inverse)");
}

std::shared_ptr<NodeNames> relation_row_names(const NodeNames& relations, Offset rows) {
  NameList names;
  for (Offset row = 0; row < rows; ++row) names.add(relation_row_name(relations, row));
  return names_of(std::move(names));
}

void make_run_folder(const fs::path& run) {
  std::error_code failure;
  fs::create_directory(run, failure);
  if (failure) throw Error(Fault::output, cat(run.string(), ": cannot be made: ", failure.message()));
}

void check_space(const fs::path& run, const Csr& graph, const Config& config, Existing existing) {
  const Offset embeddings = graph.num_nodes() * (4 * Offset(config.model.dim) + 16);
  const ModelShape shape = model_shape(parts_of(config).back(), graph.num_nodes(), graph.num_relations);
  const int state = kernels::state_columns(optimizer_of(config.training), shape.dim);
  const Offset a_row = 4 * ((shape.one_table ? 1 : 2) * Offset(shape.dim + state) + 1);
  const Offset a_checkpoint = shape.rows() * a_row + (parts_of(config).size() > 1 ? embeddings : 0);
  const int best = config.eval.valid.empty() ? 0 : 1;
  Offset kept = config.checkpoint.keep > 0 ? config.checkpoint.keep + best + 1 : 0;  // and the one being written
  if (existing == Existing::resume) kept -= std::min<Offset>(kept, Offset(list_checkpoints(run).size()));
  const Offset wanted = embeddings + kept * a_checkpoint, free = free_bytes(run);
  if (free >= wanted) return;
  throw Error(Fault::output,
              cat(run.string(), ": about ", human_bytes(double(embeddings)), " of embeddings",
                  kept == 0 ? "" : cat(" and ", kept, " checkpoints of ", human_bytes(double(a_checkpoint))),
                  " will be written and ", human_bytes(double(free)), " are free on its file system",
                  kept > 0 && free >= embeddings ? "; lower checkpoint.keep (0: none)" : ""));
}

void save_vectors(const fs::path& run, const Vectors& vectors) {
  const Graph& graph = vectors.graph;
  const auto from = [&](Offset row) {
    return [&, row](Offset first, Rows<float> rows) { vectors.source(row + first, rows); };
  };
  const fs::path embeddings = run / kEmbeddings, relations = run / kRelations;
  for (const fs::path& folder : {embeddings, relations}) remove_folder(next_of(folder));  // of a killed run
  save_embeddings(next_of(embeddings), vectors.dim, from(vectors.dense_rows), graph.names());
  if (vectors.dense_rows > 0) {
    const std::shared_ptr<NodeNames> names = relation_row_names(graph.relation_names(), vectors.dense_rows);
    save_embeddings(next_of(relations), vectors.dim, from(0), *names);
  }
  replace_folder(next_of(embeddings), embeddings);
  if (vectors.dense_rows > 0)
    replace_folder(next_of(relations), relations);
  else
    remove_folder(relations);  // of an earlier run
}

std::string graph_version_of(const fs::path& run) {
  for (const fs::path& folder : list_checkpoints(run)) try {
      return Checkpoint(folder).state().graph_version;
    } catch (const Error&) {  // training names it
    }
  return "";
}

void check_run_folder(const fs::path& run, Existing existing) {
  const auto refuse = [&](const char* what) { throw Error(Fault::output, cat("\"", run.string(), "\" ", what)); };
  if (run.empty()) refuse("names no folder for the run");
  std::error_code failure;
  const fs::file_status status = fs::status(run, failure);
  if (fs::is_regular_file(status)) refuse("is a file; the run's folder is expected");
  check_writable(run);
  if (!fs::exists(status)) return;
  const bool empty = fs::is_empty(run, failure);
  if (failure) refuse("cannot be read");
  const bool has_embeddings = fs::exists(run / kEmbeddings), has_checkpoints = !list_checkpoints(run).empty();
  if (!empty && !fs::exists(run / kMetricsFile) && !has_checkpoints)
    refuse("is a folder of something else (it has no metrics.jsonl); choose another");
  if (existing == Existing::resume && has_embeddings && !has_checkpoints && has_ended(run))
    refuse(
        "holds embeddings and no checkpoint: there is nothing to resume; choose another folder, or pass --overwrite");
  if (existing != Existing::refuse) return;
  if (has_embeddings)
    refuse(
        "holds the embeddings of an earlier run; choose another folder, or pass --overwrite (or --resume, to go on "
        "with it)");
  if (has_checkpoints)
    refuse(
        "holds checkpoints of a run that was not finished: pass --resume to go on with it, or --overwrite to begin "
        "anew");
}

}  // namespace gs
