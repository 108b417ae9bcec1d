// Edges in blocks, as ingest holds them, to the final graph.
#pragma once

#include "graphscale/graph.hpp"

namespace gs {

/// As build_graph, for edges in blocks in input order; they are freed once their arcs are placed.
BuiltGraph build_rows(std::vector<EdgeList> blocks, BuiltGraph names, const IngestOptions& options,
                      IngestCounts& counts);

/// Bytes that build_rows takes at its peak beyond the edges (8 bytes each, 12 with values) and names it was given. A
/// value is a weight or a relation: do the edges have one each, and the arcs?
Offset build_bytes(Offset edges, Offset arcs, Offset nodes, bool valued_edges, bool valued_arcs);

/// Throws memory where `bytes` more are not available: "PURPOSE: needs 3.1 GiB more, 2.0 GiB are available: ADVICE".
void require_memory(Offset bytes, const std::string& purpose);

}  // namespace gs
