#include <algorithm>
#include <charconv>
#include <numeric>

#include "graphscale/store.hpp"

#include "src/store/partition.hpp"

namespace gs {
namespace {

int index_in(const std::vector<int>& ranks, int rank) {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  return at != ranks.end() && *at == rank ? int(at - ranks.begin()) : -1;
}

}  // namespace

std::vector<int> parse_ranks(const std::string& text, int ranks, const std::string& option) {
  std::vector<int> named;
  const auto refuse = [&](const std::string& why) {
    throw Error(Fault::usage, cat(option, ": \"", text, "\" ", why, "; there ",
                                  ranks == 1 ? "is rank 0 alone" : cat("are ranks 0 to ", ranks - 1)));
  };
  if (text.empty()) {
    named.resize(std::size_t(ranks));
    std::iota(named.begin(), named.end(), 0);
    return named;
  }

  const char *at = text.data(), *const end = at + text.size();
  const auto number = [&] {
    int value = -1;
    const auto [rest, status] = std::from_chars(at, end, value);
    if (status != std::errc() || value < 0) refuse("is no list of ranks such as 0-3,6");
    if (value >= ranks) refuse(cat("names rank ", value));
    at = rest;
    return value;
  };
  while (true) {
    const int first = number();
    int last = first;
    if (at != end && *at == '-') {
      ++at;
      last = number();
    }
    if (last < first) refuse(cat("counts down from ", first, " to ", last));
    for (int rank = first; rank <= last; ++rank) named.push_back(rank);
    if (at == end) break;
    if (*at != ',') refuse("is no list of ranks such as 0-3,6");
    ++at;
  }
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  return named;
}

Placement Placement::cyclic(Offset nodes, int ranks, Offset dense_rows) {
  Placement placement;
  placement.nodes_ = nodes, placement.dense_rows_ = dense_rows;
  placement.ranks_ = ranks;
  placement.storage_ = placement.compute_ = parse_ranks("", ranks, "ranks");
  return placement;
}

Placement Placement::make(const Config& config, const Csr& graph, Comm& comm) {
  Placement placement = roles(config, graph, comm.size());
  if (!placement.is_parted(config)) return placement;
  placement.positions_.resize(std::size_t(placement.nodes_));
  placement.bounds_.resize(placement.storage_.size() + 1);
  wait_for_work(comm, 0, [&] { placement.take_parts(partition(graph, int(placement.storage_.size()))); });
  comm.broadcast(placement.positions_.data(), placement.nodes_ * Offset(sizeof(RowId)), 0);
  comm.broadcast(placement.bounds_.data(), Offset(placement.bounds_.size() * sizeof(Offset)), 0);
  placement.number_back();
  return placement;
}

Placement Placement::make(const Config& config, const Csr& graph, int ranks) {
  Placement placement = roles(config, graph, ranks);
  if (!placement.is_parted(config)) return placement;
  placement.positions_.resize(std::size_t(placement.nodes_));
  placement.bounds_.resize(placement.storage_.size() + 1);
  placement.take_parts(partition(graph, int(placement.storage_.size())));
  placement.number_back();
  return placement;
}

/// Roles as configured, rows cyclic.
Placement Placement::roles(const Config& config, const Csr& graph, int ranks) {
  Placement placement = cyclic(graph.num_nodes(), ranks, dense_rows_of(config, graph.num_relations));
  placement.storage_ = parse_ranks(config.ranks.storage, ranks, "ranks.storage");
  placement.compute_ = parse_ranks(config.ranks.compute, ranks, "ranks.compute");
  return placement;
}

bool Placement::is_parted(const Config& config) const {
  return config.store.placement == "partition" && storage_.size() > 1 && nodes_ > 0;
}

/// positions_ and bounds_: the nodes of part 0 in their order, then those of part 1, ...
void Placement::take_parts(const std::vector<int>& parts) {
  std::fill(bounds_.begin(), bounds_.end(), 0);
  for (const int part : parts) ++bounds_[std::size_t(part + 1)];
  std::partial_sum(bounds_.begin(), bounds_.end(), bounds_.begin());
  std::vector<Offset> next(bounds_.begin(), bounds_.end() - 1);
  for (std::size_t node = 0; node < parts.size(); ++node) positions_[node] = RowId(next[std::size_t(parts[node])]++);
}

void Placement::number_back() {
  by_position_.resize(positions_.size());
  for (Offset node = 0; node < Offset(positions_.size()); ++node)
    by_position_[positions_[std::size_t(node)]] = RowId(dense_rows_ + node);
}

int Placement::owner_index(int rank) const { return index_in(storage_, rank); }
int Placement::compute_index(int rank) const { return index_in(compute_, rank); }

kernels::Owners Placement::owners() const { return {int(storage_.size()), RowId(dense_rows_), positions_, bounds_}; }

Offset Placement::rows_of(int owner) const {
  if (is_partition()) return bounds_[std::size_t(owner + 1)] - bounds_[std::size_t(owner)];
  const auto count = Offset(storage_.size());
  return (nodes_ - owner + count - 1) / count;
}

kernels::RowSequence Placement::sequence_of(int owner) const {
  if (is_partition())
    return {0, 1, Span<const RowId>(by_position_).subspan(bounds_[std::size_t(owner)], rows_of(owner))};
  return {RowId(dense_rows_ + owner), RowId(storage_.size()), {}};
}

RankPart Placement::part_of(int rank) const {
  const int owner = owner_index(rank);
  RankPart part;
  part.nodes = nodes_, part.dense_rows = dense_rows_;
  part.ranks = ranks_, part.storage_ranks = int(storage_.size()), part.compute_ranks = int(compute_.size());
  part.stores = owner >= 0, part.computes = compute_index(rank) >= 0;
  part.is_partition = is_partition();
  if (owner >= 0) part.local_rows = rows_of(owner);
  return part;
}

RankPart Placement::part_of(int rank, const Csr& graph) const {
  RankPart part = part_of(rank);
  if (!part.stores) return part;
  const kernels::RowSequence own = sequence_of(owner_index(rank));
  for (Offset i = 0; i < part.local_rows; ++i) part.local_arcs += graph.degree(own[i] - dense_rows_);
  return part;
}

Placement::Balance Placement::balance(const Csr& graph) const {
  const kernels::Owners owners = this->owners();
  std::vector<Offset> rows(storage_.size(), 0), arcs(storage_.size(), 0);
  Offset inside = 0;
  const auto owner_of = [&](Offset node) { return owners.owner(RowId(dense_rows_ + node)); };
  for (Offset node = 0; node < nodes_; ++node) {
    const int owner = owner_of(node);
    ++rows[std::size_t(owner)];
    arcs[std::size_t(owner)] += graph.degree(node);
    for (const RowId target : graph.neighbours(node)) inside += owner_of(target) == owner ? 1 : 0;
  }
  Balance balance;
  balance.least_rows = *std::min_element(rows.begin(), rows.end());
  balance.most_rows = *std::max_element(rows.begin(), rows.end());
  balance.least_arcs = *std::min_element(arcs.begin(), arcs.end());
  balance.most_arcs = *std::max_element(arcs.begin(), arcs.end());
  balance.inside_share = graph.num_arcs() > 0 ? double(inside) / double(graph.num_arcs()) : 1;
  return balance;
}

}  // namespace gs
