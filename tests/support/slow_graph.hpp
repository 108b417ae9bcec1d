// The obvious twin of ingest: edges between names, merged in a std::map, rows ranked by a sort of everything.
#pragma once

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "graphscale/graph.hpp"

namespace gs {

struct NamedEdge {
  std::string from, to;
  float weight = 1;
};

/// A graph written out: names by row, and every arc by the names of its ends, in the order of the rows.
struct NamedGraph {
  std::vector<std::string> names;
  std::vector<std::tuple<std::string, std::string, float>> arcs;
  bool operator==(const NamedGraph&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const NamedGraph& graph) {
  for (const std::string& name : graph.names) out << name << " ";
  out << "|";
  for (const auto& [from, to, weight] : graph.arcs) out << " " << from << "-" << to << ":" << weight;
  return out;
}

inline std::vector<std::string> names_of(const BuiltGraph& graph) {
  std::vector<std::string> names;
  for (const std::uint64_t number : graph.name_numbers) names.push_back(std::to_string(number));
  for (std::size_t row = 1; row < graph.name_bounds.size(); ++row)
    names.emplace_back(graph.name_bytes.data() + graph.name_bounds[row - 1],
                       graph.name_bytes.data() + graph.name_bounds[row]);
  return names;
}

/// Every arc of the graph by name; unweighted ones weigh 1.
inline NamedGraph named(const BuiltGraph& graph) {
  NamedGraph result{names_of(graph), {}};
  const Csr csr = graph.csr();
  for (Offset row = 0; row < csr.num_nodes(); ++row)
    for (Offset arc = csr.offsets[row]; arc < csr.offsets[row + 1]; ++arc)
      result.arcs.emplace_back(result.names[std::size_t(row)], result.names[csr.targets[arc]],
                               csr.weights.empty() ? 1.0f : csr.weights[arc]);
  return result;
}

/// Integers first, by value; then the others, by bytes.
inline bool name_before(const std::string& a, const std::string& b) {
  const auto is_integer = [](const std::string& s) {
    return !s.empty() && s.find_first_not_of("0123456789") == std::string::npos && (s[0] != '0' || s.size() == 1) &&
           (s.size() < 20 || (s.size() == 20 && s <= "18446744073709551615"));
  };
  if (is_integer(a) != is_integer(b)) return is_integer(a);
  if (is_integer(a) && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

inline NamedGraph slow_graph(const std::vector<NamedEdge>& edges, const std::vector<std::string>& listed, bool directed,
                             Duplicates policy, bool keep_self_loops) {
  std::map<std::pair<std::string, std::string>, std::vector<float>> weights;  // of parallel arcs, in input order
  std::map<std::string, Offset> degrees;
  for (const std::string& name : listed) degrees[name];
  for (const auto& [from, to, weight] : edges) {
    degrees[from], degrees[to];
    if (from == to && !keep_self_loops) continue;
    weights[{from, to}].push_back(weight);
    if (!directed && from != to) weights[{to, from}].push_back(weight);
  }

  for (auto& [ends, parallel] : weights) {
    const float first = parallel.front();
    std::sort(parallel.begin(), parallel.end());
    double sum = 0;
    for (const float weight : parallel) sum += double(weight);
    if (policy == Duplicates::sum) parallel = {float(sum)};
    if (policy == Duplicates::max) parallel = {parallel.back()};
    if (policy == Duplicates::first) parallel = {first};
    degrees[ends.first] += Offset(parallel.size());
    if (directed) degrees[ends.second] += Offset(parallel.size());
  }

  NamedGraph graph;
  for (const auto& [name, degree] : degrees) graph.names.push_back(name);
  std::sort(graph.names.begin(), graph.names.end(), [&](const std::string& a, const std::string& b) {
    return degrees[a] != degrees[b] ? degrees[a] > degrees[b] : name_before(a, b);
  });
  std::map<std::string, std::size_t> row_of;
  for (std::size_t row = 0; row < graph.names.size(); ++row) row_of[graph.names[row]] = row;
  for (const auto& [ends, parallel] : weights)
    for (const float weight : parallel) graph.arcs.emplace_back(ends.first, ends.second, weight);
  std::sort(graph.arcs.begin(), graph.arcs.end(), [&](const auto& a, const auto& b) {
    const auto key = [&](const auto& arc) {
      return std::tuple(row_of[std::get<0>(arc)], row_of[std::get<1>(arc)], std::get<2>(arc));
    };
    return key(a) < key(b);
  });
  return graph;
}

}  // namespace gs
