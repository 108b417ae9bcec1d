// Is a table of vectors any good: node classification, link prediction, ranking.
#pragma once

#include "graphscale/checkpoint.hpp"
#include "graphscale/config.hpp"

namespace gs {

// ---------------------------------------------------------------------------------------------------- classification

/// The classes of the rows that have any: rows[i] has classes[offsets[i] .. offsets[i + 1]).
struct Labels {
  std::vector<RowId> rows;               ///< [labelled] ascending
  std::vector<Offset> offsets;           ///< [labelled + 1]
  std::vector<int> classes;              ///< ascending within a row, none twice
  std::vector<std::string> class_names;  ///< [classes] in the order of their bytes
  Offset unknown_nodes = 0;              ///< names in the file that have no row: left out, and their classes with them

  Offset count() const { return Offset(rows.size()); }
  int num_classes() const { return int(class_names.size()); }
  bool multi_label() const { return Offset(classes.size()) > count(); }
  Span<const int> of(Offset i) const {
    return Span<const int>(classes).subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
};

/// Positions in Labels::rows, none in both.
struct LabelSplit {
  std::vector<Offset> train, test;
};

/// Lines of a node and its classes, `node label[,label...]` or further columns; a node may have several lines. Names
/// without a row and lines without a label are left out, counted and warned of.
/// Throws input: fewer than two classes on rows that exist.
Labels read_labels(const fs::path& path, const NodeNames& names);

/// The first floor(ratio count) of a shuffled order of [0, count) train, the others test. The order depends on `seed`
/// and `count` alone. Throws usage: ratio outside (0, 1); input: one of the parts is empty.
LabelSplit random_split(Offset count, double ratio, std::uint64_t seed);

/// Lines `node train|valid|test`; valid nodes are in neither part. Names without a row or label are left out, counted
/// and warned of. Throws input with file and line: another part, a node twice; input: one of the parts is empty.
LabelSplit read_split(const fs::path& path, const NodeNames& names, const Labels& labels);

/// How one class fared in the test nodes.
struct ClassCounts {
  Offset right = 0, predicted = 0, actual = 0;
};

double micro_f1(Span<const ClassCounts> classes);  ///< of all assignments together
double macro_f1(Span<const ClassCounts> classes);  ///< mean over classes; one neither predicted nor there counts 0

struct SplitScore {
  double micro_f1 = 0, macro_f1 = 0;
  double accuracy = 0;  ///< NaN where a node may have several labels
};

struct ClassifierOptions {
  bool normalize = false;        ///< rows scaled to length 1; a zero row stays zero
  int threads = 1;               ///< at most one a class is busy in training
  Progress* progress = nullptr;  ///< advanced by one a class trained
};

/// One-vs-rest logistic regression (LIBLINEAR; L2 with C = 1, the bias regularised too) trained on split.train. A test
/// node with m labels is given its m best-scored classes (the protocol of Perozzi, Al-Rfou, Skiena: "DeepWalk", KDD
/// 2014). A class that no training node has is scored below all others, one that all have above. The same for any
/// number of threads.
///
/// vectors  [n, dim] finite values, any stride; labels.rows are rows of it
/// Memory   16 (dim + 2) bytes a training node
/// Throws   memory; internal: a row out of range, an empty part
SplitScore classify(Rows<const float> vectors, const Labels& labels, const LabelSplit& split,
                    const ClassifierOptions& options);

struct ClassifyOptions {
  std::vector<double> ratios = {0.5};  ///< shares of the labelled nodes to train on, each in (0, 1)
  int seeds = 5;                       ///< random splits a ratio, seeded 0, 1, ...
  std::string split_file;              ///< one fixed split instead
  ClassifierOptions classifier;
};

struct Statistic {
  double mean = 0, sd = 0;  ///< sd: of the population, 0 for one split
};

struct ClassifyScore {
  double ratio = 0;  ///< as asked for; of a fixed split: train_nodes over all labelled nodes
  int seeds = 0;
  Offset train_nodes = 0, test_nodes = 0;  ///< in each split
  Statistic micro_f1, macro_f1, accuracy;
};

struct ClassifyReport {
  Offset labelled = 0, unknown_nodes = 0, unlabelled_rows = 0;
  int classes = 0;
  bool multi_label = false;
  std::vector<ClassifyScore> scores;  ///< one a ratio
};

/// Throws usage: no ratio or one outside (0, 1), no seed.
void check_classify(const ClassifyOptions& options);

/// `classify` over files and splits. Throws what check_classify, read_labels, random_split, read_split and classify do.
ClassifyReport eval_classify(const Embeddings& embeddings, const fs::path& labels, const ClassifyOptions& options);

// --------------------------------------------------------------------------------------------------- link prediction

enum class Metric { cosine, dot, l2 };

struct LinkReport {
  Offset positives = 0, negatives = 0;  ///< pairs judged
  Offset unknown_pairs = 0;             ///< pairs with a name that has no row: left out
  double auc = 0, average_precision = 0;
};

/// Area under the ROC curve, equal scores counted half, and average precision, equal scores as one threshold.
/// Scores may be infinite. Throws internal: an empty side, NaN.
LinkReport link_scores(Span<const double> positive, Span<const double> negative);

/// Scores pairs, lines `node node` (further columns are not read), by dot, cosine (0 with a zero vector) or negative
/// l2. Throws input: a line of one field, a pair in both files, a file without a pair of known names.
LinkReport eval_link(const Embeddings& embeddings, const fs::path& positives, const fs::path& negatives, Metric metric);

// ----------------------------------------------------------------------------------------------------------- ranking

/// How well each entity answers a query: a knowledge graph's model, or node vectors compared with the query's node.
struct AnswerModel {
  kernels::TripleShape shape{};   ///< score, dim, reciprocal
  Rows<const float> entities;     ///< [n, dim] host memory, any stride
  Rows<const float> relations{};  ///< [relations, dim] host memory, twice as many where reciprocal; none: node vectors
  bool cosine = false;            ///< of node vectors and their product: scaled to length 1 first, zero stays zero
};

/// Throws input: tables whose shapes do not fit the model's kind.
AnswerModel triple_model(const ModelConfig& model, Rows<const float> entities, Rows<const float> relations);
AnswerModel node_model(Rows<const float> nodes, Metric metric);

/// Every entity's score as the query's answer [n], larger is better: what ranks compare on the CPU, bit by bit.
/// NaN where a sum overflowed. Throws internal: entity or relation out of range.
std::vector<float> answer_scores(const AnswerModel& model, const kernels::TripleQuery& query, int threads);

/// Entities known to answer a query, ascending, none twice; called from any thread.
using KnownLookup = std::function<Span<const RowId>(const kernels::TripleQuery&)>;
KnownLookup known_in(const kernels::KnownTriples& triples);  ///< triples sorted by either side, as TripleIndex has them

/// The known answers to both queries of each of some triples, and to no others, however many triples are known: 24
/// bytes an asked triple, 4 an answer (12 while they are gathered, 8 more for each time that one is repeated).
class KnownAnswers {
 public:
  explicit KnownAnswers(const Triples& asked);  ///< they are known themselves
  void add(RowId head, RowId relation, RowId tail);
  void finish();                                                       ///< ends adding; answers are asked for after it
  Span<const RowId> answers(const kernels::TripleQuery& query) const;  ///< none for a query of no asked triple
  KnownLookup lookup() const {
    return [this](const kernels::TripleQuery& query) { return answers(query); };
  }

 private:
  Offset place_of(const kernels::TripleQuery& query) const;  // -1: not asked
  std::vector<std::uint64_t> tail_keys_, head_keys_;         // entity, relation; ascending; heads' places come second
  std::vector<std::pair<std::uint32_t, RowId>> gathered_;    // place, answer
  std::vector<Offset> offsets_;                              // [places + 1]
  std::vector<RowId> answers_;
};

struct RankOptions {
  /// Entities sampled for each query, with replacement, instead of all; 0: all. 64 triples in a row share a sample for
  /// their heads and one for their tails. A sampled entity that is the answer, or (filtered) known, does not count.
  Offset negatives = 0;
  Span<const double> degrees{};  ///< [n] sampled in proportion to these; empty: uniformly
  std::uint64_t seed = 1;
  /// Queries and entities scored at a time, 0: chosen by device. Ranks do not depend on them.
  Offset query_block = 0, entity_block = 0;
};

/// Where an answer stands among the other candidates of its query.
struct AnswerPlace {
  std::uint32_t above = 0, ties = 0;
  double rank() const { return 1 + above + ties / 2.0; }  ///< the mean over the orders of equal scores
};
struct AnswerPlaces {
  AnswerPlace raw, filtered;  ///< filtered: known answers are no candidates
};
struct RankedTriples {
  std::vector<AnswerPlaces> heads, tails;  ///< [triples], of (?, relation, tail) and (head, relation, ?)
  Offset nan_answers = 0;                  ///< answers without a score: behind all their candidates
  Offset nan_scores = 0;                   ///< of all scores: behind every number
};

/// Ranks every triple's head and tail among all entities, or a sample. The same for any threads and blocks on one kind
/// of device.
///
/// Moves    on a GPU 4 bytes a score back, and the entities once for each block of queries: 4 dim / 1024 bytes a score
/// Memory   at most rank_bytes of exec.ledger (on a GPU without what is in pinned host memory), 32 bytes a triple, and
///          12 bytes an entity where sampled by degree
/// Throws   memory; internal: a row out of range
RankedTriples rank_triples(const AnswerModel& model, const Triples& triples, const KnownLookup& known,
                           const RankOptions& options, const Exec& exec, Progress* progress = nullptr);
Offset rank_bytes(const AnswerModel& model, Offset triples, const RankOptions& options, const Exec& exec);
Offset rank_score_count(Offset triples, Offset entities, const RankOptions& options);  ///< what progress counts

/// Means over queries.
struct RankScores {
  Offset queries = 0;
  double mrr = 0, mean_rank = 0, hits_at_1 = 0, hits_at_3 = 0, hits_at_10 = 0;
};
/// The means by name, as JSON has them.
inline constexpr std::pair<const char*, double RankScores::*> kRankMeans[] = {{"mrr", &RankScores::mrr},
                                                                              {"mean_rank", &RankScores::mean_rank},
                                                                              {"hits_at_1", &RankScores::hits_at_1},
                                                                              {"hits_at_3", &RankScores::hits_at_3},
                                                                              {"hits_at_10", &RankScores::hits_at_10}};
struct SideScores {
  RankScores both, head, tail;
};
struct RankingReport {
  Offset triples = 0;                  ///< ranked, and those that count as worst
  Offset entities = 0;                 ///< in the table
  Offset negatives = 0;                ///< sampled for each query; 0: all entities
  Offset unseen_triples = 0;           ///< with a name that has no row
  Offset unseen_entity_triples = 0;    ///< of those
  Offset unseen_relation_triples = 0;  ///< of those, too; one may be in both
  bool unseen_worst = false;           ///< they have the last rank; else they are left out
  Offset nan_answers = 0, nan_scores = 0;
  SideScores filtered, raw;
  std::vector<std::pair<std::string, RankScores>> relations;  ///< filtered, both sides; by descending queries
};

/// The means over `ranked` and `worst` more triples, both of whose ranks are the last, behind every candidate.
/// Summed in the order of the triples. Leaves names and counts of unseen triples to others.
RankingReport mean_ranks(const RankedTriples& ranked, Offset worst = 0, Offset last_rank = 1);
/// Filtered means of both sides, a relation each.
std::vector<RankScores> relation_ranks(const RankedTriples& ranked, const Triples& triples, Offset relations);

/// Triples (of node vectors: pairs) held out and ranked as training goes; known are the graph's, their own and those of
/// eval.known.
class Validation {
 public:
  /// Reads eval.valid, of whose lines those with unknown names are left out and warned of. `graph` must outlive this.
  /// Throws input: what read_triples does, no line of known names.
  Validation(const Graph& graph, const Config& config);

  /// Both sides, filtered, as `eval rank` means them. table: [relations + n, dim] host memory, any stride.
  /// Throws what rank_triples does.
  RankScores rank(Rows<const float> table, const Exec& exec) const;

 private:
  AnswerModel model_of(Rows<const float> table) const;

  const Graph& graph_;
  ModelConfig model_;
  RankOptions options_;
  Triples asked_;
  std::optional<KnownAnswers> known_;
};

/// A finished run of a knowledge graph's model: RUN/config.json, RUN/embeddings, RUN/relations.
class TripleRun {
 public:
  static bool is_at(const fs::path& run);  ///< config.json is there and tells of such a model
  /// Throws input: no such run; what Embeddings::open and triple_model throw.
  static TripleRun open(const fs::path& run);

  const AnswerModel& model() const { return model_; }
  const Embeddings& entities() const { return entities_; }
  const NodeNames& relations() const { return *relations_; }  ///< without the reciprocal ones

 private:
  AnswerModel model_;
  Embeddings entities_, relation_table_;
  std::shared_ptr<NodeNames> relations_;
};

/// What is ranked, and what is known. Triples: lines `head relation tail`; of node vectors pairs: lines `node node`,
/// further columns not read.
struct RankFiles {
  fs::path test;                ///< known, too
  std::vector<fs::path> known;  ///< train, valid
  fs::path graph;               ///< a store whose triples or arcs are known, too; may be empty
  bool directed = false;        ///< of pairs: (u, v) known says nothing of (v, u); a directed store decides it itself
  bool unseen_worst = false;    ///< triples with unseen names get the last rank instead of being left out
  bool by_degree = false;       ///< sample in proportion to an entity's known triples, those of `test` not counted
  bool by_relation = false;
};

/// Throws input: what TripleRun::open, read_triples and Graph::open do, a file without a triple of known names;
/// usage: by_degree without known files or graph, by_relation of pairs.
/// options.degrees is not read.
RankingReport eval_rank(const TripleRun& run, const RankFiles& files, const RankOptions& options, const Exec& exec);
RankingReport eval_rank(const Embeddings& nodes, Metric metric, const RankFiles& files, const RankOptions& options,
                        const Exec& exec);

}  // namespace gs
