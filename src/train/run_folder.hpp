// The run's folder: what may become one, and how its embeddings are replaced whole.
#pragma once

#include "graphscale/train.hpp"

namespace gs {

inline constexpr const char *kConfigFile = "config.json", *kMetricsFile = "metrics.jsonl", *kEmbeddings = "embeddings",
                            *kRelations = "relations";

void make_run_folder(const fs::path& run);                     ///< throws output
void check_space(const fs::path& run, Offset nodes, int dim);  ///< throws output where the disk is too full

/// The relation's name, or, from the rows of their reciprocals on, that with a mark.
std::string relation_row_name(const NodeNames& relations, Offset row);

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
