#include "src/train/warm_start.hpp"

#include <algorithm>

#include "src/train/checkpoints.hpp"

namespace gs {

WarmStart::WarmStart(const Graph& graph, const Config& config, std::shared_ptr<const Checkpoint> resumed)
    : graph_(graph),
      config_(config),
      resumed_(std::move(resumed)),
      dense_rows_(dense_rows_of(config, graph.csr().num_relations)) {
  const fs::path run = config.start.warm_start;
  const bool begins_a_part = !resumed_ || resumed_->state().part + 1 < int(parts_of(config).size());
  if (!run.empty() && begins_a_part) {
    const bool of_triples = is_knowledge_graph_model(config.model.kind);
    const auto refuse = [&](const std::string& what) { throw Error(Fault::input, cat(run.string(), ": ", what)); };
    if (fs::exists(run / kConfigFile)) {
      const std::string kind = read_config((run / kConfigFile).string(), {}).model.kind;
      if (kind != config.model.kind && (of_triples || is_knowledge_graph_model(kind)))
        refuse(cat("its model.kind is ", kind, ", this run's ", config.model.kind, ": vectors of the one mean nothing ",
                   "to the other; start.warm_start expects the same kind"));
    }
    nodes_ = Embeddings::open(run);
    if (of_triples) relations_ = Embeddings::open_relations(run);
    for (const auto* table : {&nodes_, &relations_})
      if (*table && (*table)->rows().dim != config.model.dim)
        refuse(cat("its vectors have ", (*table)->rows().dim, " columns, model.dim is ", config.model.dim,
                   "; give the same"));
    if (config.start.new_nodes == "mean") find_sources();
    if (parts_of(config).size() == 1) find_checkpoint(run);
  }
  if (!config.start.frozen.empty()) read_frozen();
}

/// The vectors that were saved may be those of an earlier step, the best.
void WarmStart::find_checkpoint(const fs::path& run) {
  const Rows<const float> vectors = nodes_->rows();
  for (const fs::path& folder : list_checkpoints(run)) try {
      auto checkpoint = std::make_unique<Checkpoint>(folder);
      const RunState& state = checkpoint->state();
      if (state.nodes != vectors.count || checkpoint->columns(kVectors) != vectors.dim) continue;
      std::vector<float> row(std::size_t(vectors.dim));
      bool is_same = true;
      for (Offset i = 0; i < 3 && is_same; ++i) {
        const Offset node = i * (state.nodes - 1) / 2;
        checkpoint->read_vector(node, row.data());
        is_same = std::equal(row.begin(), row.end(), vectors.row(node));
      }
      if (!is_same) continue;
      checkpoint->verify();
      checkpoint_ = std::move(checkpoint);
      return;
    } catch (const Error& error) {
      log_warn(error.what());
    }
}

std::optional<RowId> WarmStart::row_in_run(RowId row) const {
  if (row < dense_rows_) return relations_->names().find(relation_row_name(graph_.relation_names(), row));
  const std::optional<RowId> node = nodes_->names().find(graph_.names().name(RowId(row - dense_rows_)));
  return node ? std::optional(RowId(checkpoint_->state().dense_rows + *node)) : std::nullopt;
}

/// The other end of arcs into nodes that the run has no vector of; an undirected graph's arcs go both ways.
void WarmStart::find_sources() {
  const Csr graph = graph_.csr();
  if (!graph.directed) return;
  std::vector<bool> known(static_cast<std::size_t>(graph.num_nodes()));
  for (Offset node = 0; node < graph.num_nodes(); ++node) known[std::size_t(node)] = vector_of(RowId(node)) != nullptr;
  for (Offset node = 0; node < graph.num_nodes(); ++node)
    for (const RowId target : graph.neighbours(node))
      if (known[std::size_t(node)] && !known[target]) sources_.emplace_back(target, RowId(node));
  std::sort(sources_.begin(), sources_.end());
}

void WarmStart::read_frozen() {
  const fs::path path = config_.start.frozen;
  frozen_.resize(std::size_t(graph_.csr().num_nodes()));
  Offset listed = 0, unknown = 0;
  std::string example;
  TextTable list(path, Delimiter::tab);
  while (const auto* fields = list.next()) {
    ++listed;
    if (const std::optional<RowId> node = graph_.names().find((*fields)[0]))
      frozen_[*node] = true;
    else if (unknown++ == 0)
      example = (*fields)[0];
  }
  if (unknown == listed)
    throw Error(Fault::input,
                cat(path.string(), ": none of its ", with_commas(listed), " lines names a node of the ", "graph",
                    example.empty() ? "" : cat(" (first: \"", example, "\")"), "; one name a line is expected"));
  if (unknown > 0)
    unknown_frozen_ = cat(path.string(), ": ", with_commas(unknown), " of ", with_commas(listed),
                          " names are no nodes of the graph and are left out: ", example, ", ...");
}

const float* WarmStart::vector_of(RowId node) const {
  const std::optional<RowId> row = nodes_->names().find(graph_.names().name(node));
  return row ? nodes_->rows().row(*row) : nullptr;
}

template <class Visit>
void WarmStart::each_known_neighbour(RowId node, const Visit& visit) const {
  for (const RowId neighbour : graph_.csr().neighbours(node))
    if (const float* const vector = vector_of(neighbour)) visit(vector);
  const auto first = std::lower_bound(sources_.begin(), sources_.end(), std::pair(node, RowId(0)));
  for (auto source = first; source != sources_.end() && source->first == node; ++source)
    visit(vector_of(source->second));
}

WarmStart::Origin WarmStart::origin(RowId node) const {
  if (vector_of(node)) return Origin::run;
  Offset known = 0;
  if (config_.start.new_nodes == "mean") each_known_neighbour(node, [&](const float*) { ++known; });
  return known > 0 ? Origin::mean : Origin::drawn;
}

/// Of the table's rows: relations, then nodes.
bool WarmStart::start_of(RowId row, int first_column, Span<float> values) const {
  const auto take = [&](const float* vector) {
    if (vector) std::copy_n(vector + first_column, values.size, values.data);
    return vector != nullptr;
  };
  if (row < dense_rows_) {
    const std::optional<RowId> known = relations_->names().find(relation_row_name(graph_.relation_names(), row));
    return take(known ? relations_->rows().row(*known) : nullptr);
  }
  const RowId node = RowId(row - dense_rows_);
  if (take(vector_of(node))) return true;
  if (config_.start.new_nodes != "mean") return false;
  std::vector<double> sum(std::size_t(values.size), 0);
  Offset count = 0;
  each_known_neighbour(node, [&](const float* vector) {
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += double(vector[std::size_t(first_column) + c]);
    ++count;
  });
  for (std::size_t c = 0; c < sum.size() && count > 0; ++c) values[Offset(c)] = float(sum[c] / double(count));
  return count > 0;
}

StartRows WarmStart::rows(std::size_t part, int columns) const {
  const int first_column = int(part) * columns;
  StartRows start;
  const bool is_resumed = resumed_ && int(part) == resumed_->state().part;
  if (is_resumed)
    start = resumed_->rows();
  else if (nodes_)
    start.vectors = [=, this](RowId row, float* values) { return start_of(row, first_column, {values, columns}); };
  const auto of_checkpoint = [&](const char* table) -> StartRows::Values {
    if (!checkpoint_ || checkpoint_->columns(table) == 0) return {};
    return [this, table](RowId row, float* values) {
      const std::optional<RowId> there = row_in_run(row);
      if (there) checkpoint_->read(table, *there, values);
      return there.has_value();
    };
  };
  if (checkpoint_) {
    start.contexts = of_checkpoint(kContexts);
    if (checkpoint_->state().config.training.optimizer == config_.training.optimizer)
      start.vector_state = of_checkpoint(kVectorState), start.context_state = of_checkpoint(kContextState);
  }
  if (!frozen_.empty()) start.frozen = [this](RowId row) { return row >= dense_rows_ && frozen_[row - dense_rows_]; };
  return start;
}

void WarmStart::log() const {
  if (resumed_) log_resumed(*resumed_, config_);
  if (nodes_) {
    Offset counts[3] = {};
    for (Offset node = 0; node < graph_.csr().num_nodes(); ++node) ++counts[int(origin(RowId(node)))];
    const auto [of_run, of_mean, drawn] = counts;
    log_info(cat(
        "start: vectors of ", config_.start.warm_start, " for ", with_commas(of_run), " nodes by name; of ",
        with_commas(of_mean + drawn), " new ones ", with_commas(of_mean), " start at the mean of their neighbours, ",
        with_commas(drawn), " as drawn",
        checkpoint_ ? cat("; contexts and optimizer state from its ", checkpoint_->folder().filename().string()) : ""));
    if (of_run == 0)
      log_warn(
          cat(config_.start.warm_start, ": not one of its names is a node of the graph: nothing is taken from it"));
  }
  if (!unknown_frozen_.empty()) log_warn(unknown_frozen_);
  if (!frozen_.empty())
    log_info(cat("start: ", with_commas(std::count(frozen_.begin(), frozen_.end(), true)), " of ",
                 with_commas(Offset(frozen_.size())), " nodes are frozen"));
}

}  // namespace gs
