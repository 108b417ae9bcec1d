// What training reads: a graph to walk on, tables to draw from, walks and negatives. All of it on exec's device.
#pragma once

#include "graphscale/config.hpp"
#include "graphscale/graph.hpp"
#include "kernels/ops.hpp"

namespace gs {

/// Alias table of a distribution in proportion to `weights` [n] (finite, >= 0, not all 0), host memory. A weight of 0
/// is never drawn; a positive one has a probability right within 2^-32 of the mean slot (Vose 1991, O(n)).
std::vector<kernels::AliasSlot> alias_table(Span<const double> weights);

/// The same into `slots`, as long as `weights`; `scratch` keeps its storage between calls.
void fill_alias_table(Span<const float> weights, kernels::AliasSlot* slots, std::vector<std::uint32_t>& scratch);

/// Which way walks go, see kernels::WalkGraph.
struct WalkRule {
  bool weighted = true;                 ///< follow arcs by weight where the graph has weights
  float return_bias = 1, out_bias = 1;  ///< 1 / p, 1 / q
  bool second_order() const { return return_bias != 1 || out_bias != 1; }
};

/// What `config` asks for: sampler.p and sampler.q are node2vec's, other kinds walk by the first order.
WalkRule walk_rule(const Config& config);

/// A graph on exec's device, ready for `make_walks`: a packed word a node, targets, and, where weighted, alias slots;
/// of second order then weights, too. Held bytes: 16 n + 4 arcs, 12 arcs where weighted, 24 n + 16 arcs where walks are
/// of second order as well.
class WalkTopology {
 public:
  /// A node all of whose arcs weigh 0 is a sink where weighted.
  WalkTopology(const Csr& graph, const WalkRule& rule, const Exec& exec);
  kernels::WalkGraph view() const;
  Offset num_nodes() const { return arcs_.size(); }
  static Offset bytes(Offset nodes, Offset arcs, const WalkRule& rule);  ///< rule.weighted: and the graph has weights

 private:
  Buffer<kernels::PackedArcs> arcs_;
  Buffer<Offset> offsets_;
  Buffer<RowId> targets_;
  Buffer<kernels::AliasSlot> arc_alias_;
  Buffer<float> weights_;
  Buffer<double> weight_sums_;
  bool directed_ = true;
  WalkRule rule_;
};

/// What a unit of a kind's training is: a walk of sampler.walk_length nodes, a tile of half as many edges, or one of
/// sampler.triples_per_tile triples.
kernels::TileKind tile_kind(const Config& config);
int unit_length(const Config& config);   ///< nodes in it
int triple_width(const Config& config);  ///< see kernels::TripleShape
/// Units of an epoch: walks_per_node from each node; as many edges as the graph has arcs; every triple once.
Offset units_per_epoch(const Config& config, Offset nodes, Offset arcs);

/// The units of an epoch, from a graph that lies on exec's device (or in host memory that it reads). Rows are the
/// graph's, after `dense_rows` others.
class Sampler {
 public:
  /// Throws input where the kind needs relations and the graph has none.
  Sampler(const Csr& graph, const Config& config, Offset dense_rows, const Exec& exec);

  void make(const kernels::WalkBatch& batch, Span<RowId> nodes, const Exec& exec) const;  ///< nodes [batch.count, l]

  /// Held bytes by purpose.
  static std::vector<std::pair<const char*, Offset>> bytes(const Config& config, Offset nodes, Offset arcs,
                                                           bool weighted);

 private:
  kernels::TileKind kind_;
  int reciprocal_;
  std::unique_ptr<WalkTopology> topology_;
  Buffer<kernels::AliasSlot> sources_;       // edges
  Buffer<RowId> heads_, relations_, tails_;  // triples
};

bool keeps_known_triples(const Config& config);  ///< sampler.filter_negatives, of a knowledge graph's model

/// A graph's triples where the kernels look them up, see kernels::KnownTriples. Held bytes: 16 (n + 1) + 16 a triple,
/// under "graph: known triples".
class KnownTable {
 public:
  KnownTable(const Csr& graph, const Exec& exec);
  kernels::KnownTriples view() const;
  static Offset bytes(Offset nodes, Offset triples);

 private:
  Buffer<Offset> tail_offsets_, head_offsets_;
  Buffer<RowId> tails_, heads_, tail_relations_, head_relations_;
};

/// Rows to draw as negatives: the share sampler.uniform_share uniformly, the others in proportion to (number of arcs
/// that reach the row, of an undirected graph its own, of a knowledge graph both) ^ sampler.negative_power. A row
/// without arcs is never drawn unless uniformly or no row has any. Held bytes: 8 a row, 4 more where the rows are a
/// list.
class NegativeTable {
 public:
  /// Of all nodes, which are the rows from dense_rows on.
  NegativeTable(const Csr& graph, const Config& config, Offset dense_rows, const Exec& exec);
  /// Of `count` rows; their list, if any, in host memory. Throws internal where count is 0.
  NegativeTable(const Csr& graph, const Config& config, Offset dense_rows, const kernels::RowSequence& rows,
                Offset count, const Exec& exec);
  /// step: the nodes that a step trains, what sampler.in_batch_share is drawn from.
  kernels::RowDraw view(Span<const RowId> step = {}) const;
  static Offset bytes(Offset rows, bool is_list = false) {
    return rows * Offset(sizeof(kernels::AliasSlot) + (is_list ? sizeof(RowId) : 0));
  }

 private:
  Buffer<kernels::AliasSlot> slots_;
  kernels::RowSequence rows_;
  Buffer<RowId> list_;
  float in_batch_share_ = 0;
  int triple_width_ = 0;
};

/// Expected number of (centre, context) pairs of one full walk over the draws of its windows; tests hold a run's count
/// of pairs against it.
double expected_pairs(const kernels::TileShape& shape);

}  // namespace gs
