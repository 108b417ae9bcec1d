// Rows that start from an earlier run's, and rows that stay as they start.
#pragma once

#include "graphscale/checkpoint.hpp"
#include "graphscale/graph.hpp"
#include "graphscale/model.hpp"

namespace gs {

/// What start.* asks for. Reads what it is asked for and keeps no row: any rank, any placement.
class WarmStart {
 public:
  /// `graph` and `config`, of the whole run, must outlive this.
  /// Throws input: no such run, other columns, another kind of model, a list that names no node of the graph.
  /// resumed: what rows of its part start from instead, or null.
  WarmStart(const Graph& graph, const Config& config, std::shared_ptr<const Checkpoint> resumed = nullptr);
  void drop_resumed() { resumed_.reset(); }  ///< once its part has begun: it holds files that may be removed meanwhile

  /// Of one of the trainings that parts_of cuts the columns into; to be asked from any thread.
  StartRows rows(std::size_t part, int columns) const;
  void log() const;  ///< how many nodes start from where, and what was not found; looks at every name

 private:
  enum class Origin { run, mean, drawn };
  Origin origin(RowId node) const;
  /// Where the run has the node's vector.
  const float* vector_of(RowId node) const;
  std::optional<RowId> row_in_run(RowId row) const;  ///< of this run's tables in the earlier one's
  void find_checkpoint(const fs::path& run);
  /// visit(vector) once a neighbour that the run has, sources of arcs to the node among them.
  template <class Visit>
  void each_known_neighbour(RowId node, const Visit& visit) const;
  bool start_of(RowId row, int first_column, Span<float> values) const;
  void find_sources();
  void read_frozen();

  const Graph& graph_;
  const Config& config_;
  std::shared_ptr<const Checkpoint> resumed_;
  Offset dense_rows_;
  std::optional<Embeddings> nodes_, relations_;
  std::unique_ptr<Checkpoint> checkpoint_;        // of the earlier run with the same vectors, for all else of a row
  std::vector<std::pair<RowId, RowId>> sources_;  // of a directed graph: (new node, known node with an arc to it)
  std::vector<bool> frozen_;                      // [nodes], or empty
  std::string unknown_frozen_;                    // names of start.frozen that no node has, in words
};

}  // namespace gs
