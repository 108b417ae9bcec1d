// The run's folder: what may become one, and how its embeddings are replaced whole.
#pragma once

#include "graphscale/train.hpp"

namespace gs {

inline constexpr const char *kConfigFile = "config.json", *kMetricsFile = "metrics.jsonl", *kEmbeddings = "embeddings";

void make_run_folder(const fs::path& run);                     ///< throws output
void check_space(const fs::path& run, Offset nodes, int dim);  ///< throws output where the disk is too full

/// Writes run/embeddings. Those of an earlier run stay until the new ones are whole, and are whole under another name
/// should the program be killed between the two renames.
void replace_embeddings(const fs::path& run, int dim, const RowSource& source, const NodeNames& names);

}  // namespace gs
