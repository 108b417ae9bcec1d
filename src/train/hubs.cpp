#include "src/train/hubs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gs {
namespace {

constexpr double kDominant = 0.1;  // of all arcs
constexpr Offset kTop = 100;       // one node in so many is of the top

/// Names are any bytes.
std::string shown(std::string name) {
  constexpr std::size_t kLongest = 40;
  if (name.size() > kLongest) name = name.substr(0, kLongest) + "...";
  for (char& c : name)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return name;
}

std::string percent(double share) {
  if (share >= 0.1) return cat(std::lround(100 * share), " %");
  std::ostringstream text;
  text.precision(2);
  text << 100 * share << " %";
  return text.str();
}

}  // namespace

Hubs hubs_of(const Csr& graph) {
  std::vector<Offset> degrees;
  for (Offset row = 0; row < graph.num_nodes(); ++row) degrees.push_back(graph.degree(row));
  if (graph.directed)
    for (Offset row = 0; row < graph.num_nodes(); ++row)
      for (const RowId target : graph.neighbours(row))
        if (target != row) ++degrees[target];
  Hubs hubs;
  hubs.largest = RowId(std::max_element(degrees.begin(), degrees.end()) - degrees.begin());
  hubs.degree = degrees[hubs.largest];
  const double arcs = double(graph.num_arcs());
  hubs.largest_share = double(hubs.degree) / arcs;
  const auto top = degrees.begin() + std::max<Offset>(1, graph.num_nodes() / kTop);
  std::nth_element(degrees.begin(), top - 1, degrees.end(), std::greater<>());
  hubs.top_share = std::min(1.0, double(std::accumulate(degrees.begin(), top, Offset(0))) / arcs);
  return hubs;
}

void log_hubs(const Graph& graph) {
  if (graph.csr().num_arcs() == 0) return;
  const Hubs hubs = hubs_of(graph.csr());
  const std::string name = shown(graph.names().name(hubs.largest));
  log_info(cat("hubs: largest degree ", with_commas(hubs.degree), " (node ", name, "), ", percent(hubs.largest_share),
               " of arcs; the hundredth of the nodes of highest degree: ", percent(hubs.top_share)));
  if (hubs.largest_share > kDominant)
    log_warn(cat("node ", name, " holds ", percent(hubs.largest_share),
                 " of the arcs: much of what is trained meets it, and its neighbours become alike; ",
                 "without it they may be told apart better"));
}

}  // namespace gs
