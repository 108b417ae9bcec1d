// Graphs for fuzz targets: what must hold of one that was read, and small ones to damage.
#pragma once

#include "graphscale/graph.hpp"

#include "fuzz/target.hpp"

namespace gs::fuzz {

inline NameList name_list(const std::vector<std::string>& names) {
  NameList list;
  for (const std::string& name : names) list.add(name);
  return list;
}

inline void require_whole(const Csr& graph, Offset names) {
  const Offset nodes = graph.num_nodes(), arcs = graph.num_arcs();
  require(names == nodes, "a name a node");
  require(graph.weights.empty() || graph.weights.size == arcs, "a weight an arc");
  require(graph.relations.empty() || graph.relations.size == arcs, "a relation an arc");
  require(graph.offsets.size == 0 || graph.offsets[nodes] == arcs, "offsets end with the arcs");
  for (Offset row = 0; row < nodes; ++row) {
    require(graph.degree(row) >= 0, "offsets ascend");
    for (const RowId target : graph.neighbours(row)) require(Offset(target) < nodes, "targets are rows");
  }
  for (const float weight : graph.weights) require(weight >= 0 && weight - weight == 0, "weights are finite");
  for (const RowId relation : graph.relations) require(Offset(relation) < graph.num_relations, "relations exist");
}

inline void ingest_bytes(std::string_view bytes, const IngestOptions& options) {
  IngestCounts counts;
  const BuiltGraph graph = ingest({file_of("input", bytes)}, options, counts);
  const Offset names =
      graph.name_bounds.empty() ? Offset(graph.name_numbers.size()) : Offset(graph.name_bounds.size()) - 1;
  require_whole(graph.csr(), names);
}

/// Options of ingest that the input's first bytes choose.
inline IngestOptions choose_options(Input& input) {
  IngestOptions options;
  if (const int directed = input.below(3)) options.directed = directed == 1;
  options.weighted = input.flag();
  if (const int duplicates = input.below(5)) options.duplicates = Duplicates(duplicates - 1);
  options.delimiter = Delimiter(input.below(4));
  options.header = Header(input.below(3));
  options.keep_self_loops = !input.flag();
  options.drop_bad_weights = input.flag();
  return options;
}

/// A store in the process's folder, of a graph of three nodes: 0 weighted, with names of bytes; 1 of numbers; 2 of
/// triples.
inline fs::path small_store(int kind) {
  const fs::path store = folder() / cat("store", kind);
  if (fs::exists(store)) return store;
  static constexpr const char* kEdges[] = {"a b 1\nb c 2\n", "1 2\n2 3\n", "a likes b\nb knows c\n"};
  IngestOptions options;
  options.weighted = kind == 0, options.triples = kind == 2;
  IngestCounts counts;
  publish(store, ingest({file_of("edges", kEdges[kind])}, options, counts), "fuzz", 1);
  return store;
}

/// Opens the store's current version and reads all of it.
inline void open_store(const fs::path& store) {
  const Graph graph = Graph::open(store);
  require_whole(graph.csr(), graph.names().size());
  for (Offset row = 0; row < graph.names().size(); ++row) graph.names().find(graph.names().name(row));
  for (Offset row = 0; row < graph.relation_names().size(); ++row)
    graph.relation_names().find(graph.relation_names().name(row));
  graph.names().similar("a", 3);
  graph.copy_names();
}

}  // namespace gs::fuzz
