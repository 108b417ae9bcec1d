// Vectors on disk: what `train` leaves behind, what `eval`, `query` and `export` read. And runs that can go on:
// checkpoints.
#pragma once

#include <thread>

#include "graphscale/store.hpp"

namespace gs {

/// What a run's folder holds, with checkpoints/.
inline constexpr const char *kConfigFile = "config.json", *kMetricsFile = "metrics.jsonl", *kEmbeddings = "embeddings",
                            *kRelations = "relations";

/// RUN/embeddings: embeddings.npy [n, dim] float32 C order, and names.txt, one name a line in the order of the rows,
/// its bytes as they came. Rows are numbered by descending degree, ties by name.
class Embeddings {
 public:
  /// `path`: a run's folder, its embeddings folder, or an .npy file; `names`: names.txt beside the array where empty.
  /// A checkpoint's folder too, and of a run without embeddings its newest sound checkpoint; these are copied to
  /// memory. Reads every value once. Throws input: missing or cut files, another dtype or shape, not as many names as
  /// rows, a name twice, a value not finite.
  static Embeddings open(const fs::path& path, const fs::path& names = {});
  static Embeddings open_relations(const fs::path& run);  ///< of a knowledge graph's model; a checkpoint's, too

  /// The rows of the names that `list` has, one a line, in its order, and no other row is read. Throws input: a name
  /// that is none of the table's (its line), or twice in the list.
  static Embeddings open_some(const fs::path& path, const fs::path& names, const fs::path& list);

  Rows<const float> rows() const { return rows_; }  ///< [n, dim], stride dim
  const NodeNames& names() const { return *names_; }

 private:
  static Embeddings open_all(const fs::path& path, const char* folder, const fs::path& names);

  NpyArray array_;
  std::vector<float> copied_;  // of a checkpoint, or of some rows: those; else empty
  Rows<const float> rows_;
  std::shared_ptr<NodeNames> names_;
};

/// Fills `rows`, host memory, with rows first, first + 1, ... of a table; called for all rows in order.
using RowSource = std::function<void(Offset first, Rows<float> rows)>;
RowSource source_of(Rows<const float> rows);   ///< of rows in host memory, any stride, which must outlive it
inline constexpr Offset kSaveBlock = 1 << 12;  ///< rows that a RowSource is asked for at once; fewer at the end

/// Writes `folder`, whole or not at all; it must not exist. As many rows as there are names, [n, dim] from `source`.
/// Throws output; internal for a value that is not finite or a name that has a line break, naming node, row and column.
void save_embeddings(const fs::path& folder, int dim, const RowSource& source, const NodeNames& names);

/// The same of rows [n, dim] in host memory, any stride; padding is dropped.
void save_embeddings(const fs::path& folder, Rows<const float> rows, const NodeNames& names);

/// names.txt: a name a line. Throws internal for a name that has a line break.
void save_names(const fs::path& file, const NodeNames& names);

enum class ExportFormat { npy, word2vec_text, word2vec_binary, safetensors };

/// Writes `path` whole or not at all.
///
/// npy          a folder as `save_embeddings` makes it
/// word2vec     "n dim", then a line a row; text: 9 significant digits, which read back bit-equal; binary: name, blank,
///              dim little-endian floats, line break
/// safetensors  tensors "embeddings" F32 [n, dim] and "names" U8, the names joined by line breaks
///
/// A word2vec name ends at the first blank. With `escape`, the bytes of blanks and control characters (ASCII's and
/// Unicode's) and of '%' are written as %XX and the empty name as a lone %, so two names never become one. Without,
/// names are written as they are, and one that is empty or has such a blank is refused.
/// Throws input: a name refused (by name); output.
void export_embeddings(const Embeddings& embeddings, ExportFormat format, const fs::path& path, bool escape);

// ------------------------------------------------------------------------------------------------------- checkpoints
// RUN/checkpoints/step-000001200/ holds every row that a run needs to go on, in shards as ranks held them:
//
//   shard-0003.rows.npy     uint32 [rows]            which rows of the tables they are, ascending
//   shard-0003.TABLE.npy    float32 [rows, columns]  vectors; of two tables contexts; of an optimizer that has state
//                                                    vector_state, context_state
//   finished.npy            float32 [nodes, dim]     of a run in parts: columns that are learnt
//   config.json, names.txt, relations.txt            as in the run's folder
//   manifest.json           where the run stands, and every file's bytes and XXH3; written last
//
// Rows are the tables': relations, then nodes. Files are written and synced under another name, then renamed into
// place: a folder of that name is whole.

/// What a run has done, all its parts together; of validations the best.
struct RunTotals {
  Offset steps = 0, walks = 0, pairs = 0;
  double seconds = 0;  ///< in the training loop, without validations
  double loss = 0;     ///< mean per pair over the last tenth of the run
  int validations = 0;
  double validation_seconds = 0, best_mrr = 0, best_epoch = 0;
};

/// Calls visit(name, value) for each total; the manifest reads and writes by it.
template <class Totals, class Visit>
void each_total(Totals& t, Visit&& visit) {
  visit("steps", t.steps), visit("walks", t.walks), visit("pairs", t.pairs);
  visit("seconds", t.seconds), visit("loss", t.loss);
  visit("validations", t.validations), visit("validation_seconds", t.validation_seconds);
  visit("best_mrr", t.best_mrr), visit("best_epoch", t.best_epoch);
}

/// Where a run stands between two steps.
struct RunState {
  Config config;  ///< as it took effect, with the step_walks that were chosen
  std::string graph_version, graph_hash;
  Offset nodes = 0, dense_rows = 0;
  int part = 0;                                              ///< of parts_of(config)
  Offset steps = 0, walks = 0;                               ///< done of this part
  int part_validations = 0, validations_without_better = 0;  ///< of this part; the last ones
  bool complete = false;                                     ///< to the end of all parts, and the embeddings are saved
  bool is_best = false;                                      ///< its vectors were the best of all validations
  RunTotals totals;

  Offset rows() const { return dense_rows + nodes; }
};

/// A file of a checkpoint: a plain name, its bytes and their XXH3.
struct FileSum {
  std::string name, hash;
  Offset bytes = 0;
};

/// A checkpoint on disk.
class Checkpoint {
 public:
  /// Reads the manifest and maps every file. Throws input: names the file and what is wrong with it (missing, of
  /// another size, foreign, a newer format, rows that are missing or twice).
  explicit Checkpoint(const fs::path& folder);

  /// Reads every byte and compares. Throws input: the file whose checksum differs.
  void verify(int threads = hardware_threads()) const;

  const fs::path& folder() const { return folder_; }
  const RunState& state() const { return state_; }
  int columns(const std::string& table) const;  ///< 0: there is no such table
  /// [columns] <- a row of the table; from any thread.
  void read(const std::string& table, RowId row, float* values) const;

  /// The rows of all tables, as training takes them. Refers to this.
  StartRows rows() const;
  /// [dim] <- a node's vector; throws input where the run's parts are not all learnt.
  void read_vector(Offset node, float* values) const;
  int dim() const { return state_.config.model.dim; }
  Rows<const float> finished() const { return finished_; }  ///< [nodes, dim]; none of a run of one part

 private:
  struct Shard {
    Span<const RowId> rows;
    std::map<std::string, NpyArray> tables;
  };
  void open_shard(const std::string& name, const std::vector<std::string>& tables);
  void place_rows();
  void require_undamaged(const FileSum& file) const;

  fs::path folder_;
  RunState state_;
  std::vector<FileSum> files_;
  std::vector<NpyArray> row_arrays_;
  std::vector<Shard> shards_;
  std::vector<std::pair<std::uint32_t, RowId>> places_;  // [rows]: shard, and row of the shard
  NpyArray finished_array_;
  Rows<const float> finished_;
};

void mark_complete(const fs::path& checkpoint);  ///< writes its manifest anew; throws input, output

fs::path checkpoints_of(const fs::path& run);  ///< RUN/checkpoints

fs::path checkpoint_of(const fs::path& run, Offset steps);  ///< of all parts together

/// Folders of checkpoints, the newest first; only those whose name is one.
std::vector<fs::path> list_checkpoints(const fs::path& run);

/// The newest checkpoint that is whole and undamaged, every byte of it read; warns of each that is not. None where
/// there is no checkpoint at all. Throws input where there are some and none is sound.
std::unique_ptr<Checkpoint> newest_sound(const fs::path& run, int threads = hardware_threads());

/// Writes checkpoints, one at a time: its rows are copied, and a thread writes the copy while training goes on. One
/// object a rank; ranks share a file system.
///
/// Ranks    each writes its shard; rank 0 waits for the others' and then makes the whole visible
class CheckpointWriter {
 public:
  /// ranks_here: those of this machine. names, relations: of the tables' rows, written by rank 0; must outlive this.
  CheckpointWriter(const fs::path& run, int rank, int ranks, int ranks_here, int keep, const NodeNames& names,
                   const NodeNames& relations);
  ~CheckpointWriter();  ///< waits for the thread; what is not whole is removed

  /// Rank 0, with no other under way: makes the folder that the ranks are to fill. Throws output.
  fs::path begin(const RunState& state);

  struct Result {
    Offset step = 0, bytes = 0;        ///< bytes: of all ranks' files
    double waited_s = 0, write_s = 0;  ///< while training waited; until all was on disk
    bool beside = false, is_best = false;
    std::string error;  ///< why it could not be written, or empty
  };
  /// Every rank: a thread writes its `parts` into `folder`; that of rank 0 waits for the others' and makes the whole
  /// visible. beside: writes a copy of them where memory holds one. True: of a copy; else parts and finished must stay
  /// as they are until `wait`. state, finished: of rank 0. What goes wrong is in the result.
  bool write(const fs::path& folder, const RunState& state, const std::vector<TablesPart>& parts,
             Rows<const float> finished, const Exec& exec, bool beside);
  bool is_writing() const { return writing_; }
  /// Rank 0, before it waits: the others are done with theirs; error: of one that could not write, or empty.
  void others_are_done(const std::string& error);
  void wait();                          ///< until this rank's thread is done
  std::optional<Result> take_result();  ///< of the last one, once it is done and was not yet taken

 private:
  struct Copy;
  void write_files(const fs::path& folder, const RunState& state, const std::vector<TablesPart>& parts,
                   Rows<const float> finished, const Exec& exec);
  Offset seal(const fs::path& folder, const RunState& state);
  void await_list(const fs::path& file, int rank);
  void prune(Offset newest) const;
  std::shared_ptr<Copy> make_copy(const std::vector<TablesPart>& parts, Rows<const float> finished, const Exec& exec);

  fs::path run_;
  int rank_, ranks_, ranks_here_, keep_;
  const NodeNames &names_, &relations_;
  MemoryLedger ledger_;                 // of copies
  std::optional<OutputFolder> output_;  // of rank 0, while it is written
  std::thread thread_;
  std::atomic<bool> writing_ = false;
  std::mutex mutex_;
  bool others_done_ = false;
  std::string others_error_;
  std::optional<Result> result_;
};

}  // namespace gs
