// Small graphs made from pairs of names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graphscale/graph.hpp"

namespace gs {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// The graph of these edges, with byte names; `others` are nodes without an edge. Parallel edges are kept.
inline BuiltGraph graph_of(const Pairs& pairs, bool directed = false, std::vector<float> weights = {},
                           const std::vector<std::string>& others = {}) {
  std::map<std::string, RowId> ids;
  BuiltGraph names;
  names.name_bounds = {0};
  const auto id = [&](const std::string& name) {
    const auto [entry, is_new] = ids.emplace(name, RowId(ids.size()));
    if (is_new) {
      names.name_bytes.insert(names.name_bytes.end(), name.begin(), name.end());
      names.name_bounds.push_back(Offset(names.name_bytes.size()));
    }
    return entry->second;
  };
  EdgeList edges;
  for (const auto& [from, to] : pairs) edges.from.push_back(id(from)), edges.to.push_back(id(to));
  for (const std::string& name : others) id(name);
  edges.weight = std::move(weights);
  IngestOptions options;
  options.directed = directed, options.duplicates = Duplicates::keep;
  IngestCounts counts;
  return build_graph(std::move(edges), std::move(names), options, counts);
}

}  // namespace gs
