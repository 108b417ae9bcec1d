// Ranking from files and runs: who is asked, what is known, who is unseen.
#include <algorithm>
#include <numeric>
#include <random>
#include <sstream>

#include "graphscale/eval.hpp"
#include "graphscale/model.hpp"

namespace gs {
namespace {

/// Whose names the files use. Pairs are triples of relation 0.
struct Names {
  const NodeNames& entities;
  const NodeNames* relations;  ///< null: pairs
  bool are_pairs() const { return relations == nullptr; }
};

/// Lines `node node`, further columns not read.
Triples read_pairs(const fs::path& path, const NodeNames& nodes) {
  constexpr std::size_t kNoted = 5;
  Triples pairs;
  const auto find = [&](std::string_view name) {
    const std::optional<RowId> row = nodes.find(name);
    std::vector<std::string>& noted = pairs.unknown_entities;
    if (!row && noted.size() < kNoted && std::find(noted.begin(), noted.end(), name) == noted.end())
      noted.emplace_back(name);
    return row;
  };
  TextTable table(path);
  while (const auto* fields = table.next()) {
    if (fields->size() < 2) table.fail("one field; `node node` is expected");
    const std::optional<RowId> from = find((*fields)[0]), to = find((*fields)[1]);
    if (!from || !to) {
      ++pairs.left_out, ++pairs.unknown_entity_lines;
      continue;
    }
    pairs.heads.push_back(*from), pairs.relations.push_back(0), pairs.tails.push_back(*to);
  }
  return pairs;
}

Triples read(const fs::path& path, const Names& names) {
  return names.are_pairs() ? read_pairs(path, names.entities) : read_triples(path, names.entities, *names.relations);
}

void warn_of_unseen(const fs::path& path, const Triples& triples, const Names& names, const char* fate) {
  if (triples.left_out == 0) return;
  std::string shown;
  const auto show = [&](const char* what, const std::vector<std::string>& unknown) {
    for (std::size_t i = 0; i < unknown.size(); ++i)
      shown += cat(i > 0 ? ", " : shown.empty() ? what : cat("; ", what), unknown[i]);
  };
  show(names.are_pairs() ? "nodes " : "entities ", triples.unknown_entities);
  show("relations ", triples.unknown_relations);
  log_warn(cat(path.string(), ": ", with_commas(triples.left_out), " of ",
               with_commas(triples.left_out + triples.size()), names.are_pairs() ? " pairs" : " triples",
               " have a name without a row and ", fate, ": ", shown, ", ..."));
}

/// Lines that name what has no row are warned of. Throws input where no other is left.
Triples read_asked(const fs::path& path, const Names& names, const char* fate) {
  Triples asked = read(path, names);
  warn_of_unseen(path, asked, names, fate);
  if (asked.size() == 0)
    throw Error(Fault::input, cat(path.string(), ": no ", names.are_pairs() ? "pair" : "triple", " of known names (",
                                  with_commas(asked.left_out), " with an unknown one); at least one is expected, as `",
                                  names.are_pairs() ? "node node" : "head relation tail", "`"));
  return asked;
}

/// The rows that a store's names have here; kNoRow: none.
std::vector<RowId> rows_of(const NodeNames& theirs, const NodeNames& ours) {
  std::vector<RowId> rows;
  for (Offset row = 0; row < theirs.size(); ++row) rows.push_back(ours.find(theirs.name(row)).value_or(kNoRow));
  return rows;
}

/// visit(head, relation, tail) once an arc, where all three have a row here; pairs are of relation 0. The rows of the
/// graph's nodes and relations: any function of its row.
template <class Rows, class Relations, class Visit>
void each_arc(const Csr& graph, const Rows& row_of, const Relations& relation_of, const Visit& visit) {
  for (Offset row = 0; row < graph.num_nodes(); ++row)
    for (Offset arc = graph.offsets[row]; arc < graph.offsets[row + 1]; ++arc) {
      const RowId head = row_of(RowId(row)), tail = row_of(graph.targets[arc]);
      const RowId relation = graph.relations.empty() ? 0 : relation_of(graph.relations[arc]);
      if (head != kNoRow && tail != kNoRow && relation != kNoRow) visit(head, relation, tail);
    }
}

/// The triples of the files: visit(head, relation, tail).
template <class Visit>
void each_known(const std::vector<fs::path>& files, const Names& names, const Visit& visit) {
  for (const fs::path& path : files) {
    const Triples known = read(path, names);
    if (known.size() == 0)
      log_warn(cat(path.string(), ": none of its ", with_commas(known.left_out),
                   names.are_pairs() ? " pairs" : " triples", " has known names: it filters nothing"));
    for (std::size_t i = 0; i < known.heads.size(); ++i) visit(known.heads[i], known.relations[i], known.tails[i]);
  }
}

/// Everything known besides the tested triples.
template <class Visit>
void each_known(const RankFiles& files, const Names& names, const Graph* graph, const Visit& visit) {
  each_known(files.known, names, visit);
  if (!graph) return;
  const std::vector<RowId> nodes = rows_of(graph->names(), names.entities);
  const std::vector<RowId> relations =
      names.are_pairs() ? std::vector<RowId>() : rows_of(graph->relation_names(), *names.relations);
  each_arc(
      graph->csr(), [&](RowId node) { return nodes[node]; },
      [&](RowId relation) { return names.are_pairs() ? 0 : relations[relation]; }, visit);
}

RankingReport eval(const AnswerModel& model, const Names& names, const RankFiles& files, RankOptions options,
                   const Exec& exec) {
  const char* const what = names.are_pairs() ? "pair" : "triple";
  if (files.by_degree && files.known.empty() && files.graph.empty())
    throw Error(Fault::usage, "sampling by degree needs known triples to count: name --known files or --graph");
  std::optional<Graph> graph;
  if (!files.graph.empty()) graph = Graph::open(files.graph);
  if (graph && !names.are_pairs() && graph->csr().num_relations == 0)
    throw Error(Fault::input, cat(files.graph.string(),
                                  ": a graph without relations; expected one that was ingested "
                                  "with --triples"));

  const Triples test = read_asked(files.test, names, files.unseen_worst ? "rank last" : "are left out");
  const bool both_ways = names.are_pairs() && !files.directed && !(graph && graph->csr().directed);
  std::vector<double> degrees(files.by_degree ? std::size_t(model.entities.count) : 0);
  KnownAnswers known(test);
  if (both_ways)
    for (std::size_t i = 0; i < test.heads.size(); ++i) known.add(test.tails[i], test.relations[i], test.heads[i]);
  each_known(files, names, graph ? &*graph : nullptr, [&](RowId head, RowId relation, RowId tail) {
    known.add(head, relation, tail);
    if (both_ways) known.add(tail, relation, head);
    if (files.by_degree) ++degrees[head], ++degrees[tail];
  });
  known.finish();
  if (files.by_degree && std::all_of(degrees.begin(), degrees.end(), [](double d) { return d == 0; }))
    throw Error(Fault::input,
                cat("sampling by degree: no known ", what, " has names of the run; see --known and --graph"));
  options.degrees = degrees;

  const Offset scores = rank_score_count(test.size(), model.entities.count, options);
  log_info(cat("ranking heads and tails of ", with_commas(test.size()), " ", what, "s among ",
               with_commas(options.negatives > 0 ? options.negatives : model.entities.count),
               options.negatives > 0 ? " sampled entities" : " entities", " on ", to_string(exec.device), ", ",
               exec.threads, " threads, ", human_bytes(double(rank_bytes(model, test.size(), options, exec))),
               " of scores and rows"));
  Progress progress("rank", "scores", scores);
  const RankedTriples ranked = rank_triples(model, test, known.lookup(), options, exec, &progress);
  progress.finish();

  const Offset last_rank = 1 + (options.negatives > 0 ? options.negatives : model.entities.count);
  RankingReport report = mean_ranks(ranked, files.unseen_worst ? test.left_out : 0, last_rank);
  report.entities = model.entities.count, report.negatives = options.negatives;
  report.unseen_triples = test.left_out, report.unseen_worst = files.unseen_worst;
  report.unseen_entity_triples = test.unknown_entity_lines;
  report.unseen_relation_triples = test.unknown_relation_lines;
  if (!files.by_relation || names.are_pairs()) return report;
  const std::vector<RankScores> relations = relation_ranks(ranked, test, names.relations->size());
  for (std::size_t r = 0; r < relations.size(); ++r)
    if (relations[r].queries > 0) report.relations.emplace_back(names.relations->name(Offset(r)), relations[r]);
  std::stable_sort(report.relations.begin(), report.relations.end(),
                   [](const auto& a, const auto& b) { return a.second.queries > b.second.queries; });
  return report;
}

/// The first `count` of some names.
std::shared_ptr<NodeNames> first_names(const NodeNames& names, Offset count) {
  NameList copy;
  for (Offset row = 0; row < count; ++row) copy.add(names.name(row));
  return names_of(std::move(copy));
}

}  // namespace

AnswerModel triple_model(const ModelConfig& model, Rows<const float> entities, Rows<const float> relations) {
  if (!is_knowledge_graph_model(model.kind))
    throw Error(Fault::input, cat("model.kind ", model.kind, " has no relations; expected a knowledge graph's model"));
  if (entities.dim != relations.dim)
    throw Error(Fault::input, cat("relations have ", relations.dim, " columns and entities ", entities.dim));
  if (model.kind != "transe" && model.kind != "distmult" && entities.dim % 2 != 0)
    throw Error(Fault::input,
                cat("a model of complex numbers has ", entities.dim, " columns; expected an even number"));
  if (model.reciprocal && relations.count % 2 != 0)
    throw Error(Fault::input,
                cat(relations.count, " rows of relations; expected two for each, one of them reciprocal"));
  AnswerModel answers;
  answers.shape.score = score_of(model);
  answers.shape.dim = entities.dim;
  answers.shape.reciprocal = model.reciprocal ? int(relations.count / 2) : 0;
  answers.entities = entities, answers.relations = relations;
  return answers;
}

AnswerModel node_model(Rows<const float> nodes, Metric metric) {
  AnswerModel answers;
  answers.shape.score = metric == Metric::l2 ? kernels::Score::transe_l2 : kernels::Score::distmult;
  answers.shape.dim = nodes.dim;
  answers.entities = nodes;
  answers.cosine = metric == Metric::cosine;
  return answers;
}

Validation::Validation(const Graph& graph, const Config& config) : graph_(graph), model_(config.model) {
  const bool are_triples = is_knowledge_graph_model(config.model.kind);
  const Names names{graph.names(), are_triples ? &graph.relation_names() : nullptr};
  const Triples valid = read_asked(config.eval.valid, names, "are left out");
  std::vector<std::size_t> places(valid.heads.size());
  std::iota(places.begin(), places.end(), std::size_t(0));
  if (config.eval.sample > 0 && config.eval.sample < valid.size()) {
    std::vector<std::size_t> some;
    std::mt19937_64 generator(config.training.seed);
    std::sample(places.begin(), places.end(), std::back_inserter(some), config.eval.sample, generator);
    places = std::move(some);
  }
  for (const std::size_t i : places) {
    asked_.heads.push_back(valid.heads[i]), asked_.relations.push_back(valid.relations[i]);
    asked_.tails.push_back(valid.tails[i]);
  }
  known_.emplace(asked_);
  const bool both_ways = !are_triples && !graph.csr().directed;
  const auto add = [&](RowId head, RowId relation, RowId tail) {
    known_->add(head, relation, tail);
    if (both_ways) known_->add(tail, relation, head);
  };
  for (std::size_t i = 0; i < valid.heads.size(); ++i) add(valid.heads[i], valid.relations[i], valid.tails[i]);
  std::vector<fs::path> known;
  std::istringstream list(config.eval.known);
  for (std::string path; std::getline(list, path, ',');) known.emplace_back(path);
  each_known(known, names, add);
  each_arc(
      graph.csr(), [](RowId node) { return node; }, [&](RowId relation) { return are_triples ? relation : 0; }, add);
  known_->finish();
  options_.negatives = config.eval.candidates, options_.seed = config.training.seed;
}

AnswerModel Validation::model_of(Rows<const float> table) const {
  const Offset dense = table.count - graph_.csr().num_nodes();
  const Rows<const float> nodes(table.row(dense), table.count - dense, table.dim, table.stride);
  if (!is_knowledge_graph_model(model_.kind)) return node_model(nodes, Metric::dot);
  return triple_model(model_, nodes, {table.data, dense, table.dim, table.stride});
}

RankScores Validation::rank(Rows<const float> table, const Exec& exec) const {
  const RankedTriples ranked = rank_triples(model_of(table), asked_, known_->lookup(), options_, exec);
  if (ranked.nan_answers > 0)
    log_warn(cat(with_commas(ranked.nan_answers), " of the answers to eval.valid are not a number, and rank last"));
  return mean_ranks(ranked).filtered.both;
}

bool TripleRun::is_at(const fs::path& run) {
  return fs::exists(run / kConfigFile) &&
         is_knowledge_graph_model(read_config((run / kConfigFile).string(), {}).model.kind);
}

TripleRun TripleRun::open(const fs::path& run) {
  if (!is_at(run))
    throw Error(Fault::input, cat(run.string(),
                                  ": not a run of a knowledge graph's model: expected a config.json whose "
                                  "model.kind is transe, distmult, complex or rotate"));
  const ModelConfig model = read_config((run / kConfigFile).string(), {}).model;
  TripleRun opened;
  opened.entities_ = Embeddings::open(run);
  opened.relation_table_ = Embeddings::open_relations(run);
  try {
    opened.model_ = triple_model(model, opened.entities_.rows(), opened.relation_table_.rows());
  } catch (const Error& error) {
    throw Error(error.fault, cat(run.string(), ": ", error.what()));
  }
  opened.relations_ =
      first_names(opened.relation_table_.names(), opened.relation_table_.rows().count - opened.model_.shape.reciprocal);
  return opened;
}

RankingReport eval_rank(const TripleRun& run, const RankFiles& files, const RankOptions& options, const Exec& exec) {
  return eval(run.model(), {run.entities().names(), &run.relations()}, files, options, exec);
}

RankingReport eval_rank(const Embeddings& nodes, Metric metric, const RankFiles& files, const RankOptions& options,
                        const Exec& exec) {
  if (files.by_relation) throw Error(Fault::usage, "pairs have no relations to rank by");
  return eval(node_model(nodes.rows(), metric), {nodes.names(), nullptr}, files, options, exec);
}

}  // namespace gs
