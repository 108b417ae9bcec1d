// The run's folder: what may become one, and how its embeddings are replaced whole.
#pragma once

#include "graphscale/train.hpp"

namespace gs {

void make_run_folder(const fs::path& run);  ///< throws output
/// Throws output where the disk seems too full for the embeddings and the checkpoints that are kept.
void check_space(const fs::path& run, const Csr& graph, const Config& config, Existing existing);

/// The relation's name, or, from the rows of their reciprocals on, that with a mark.
std::string relation_row_name(const NodeNames& relations, Offset row);
std::shared_ptr<NodeNames> relation_row_names(const NodeNames& relations, Offset rows);  ///< of the first so many rows

/// What a run has learnt: a table of relations (where reciprocal twice as many), then nodes.
struct Vectors {
  int dim = 0;
  const Graph& graph;
  Offset dense_rows = 0;
  RowSource source;  ///< of the table's rows; asked for the nodes first
};

/// Writes run/embeddings, and run/relations where there are any. Those of an earlier run stay until the new ones are
/// whole, and are whole under another name should the program be killed between the renames.
void save_vectors(const fs::path& run, const Vectors& vectors);

}  // namespace gs
