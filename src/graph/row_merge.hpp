// Arcs of one row: sorted, and parallel ones merged by a stated policy.
#pragma once

#include "graphscale/graph.hpp"

namespace gs {

/// Sorts rows by target and merges their parallel arcs in place. One a thread: it has scratch, and counts what it did.
class RowMerger {
 public:
  /// names: of the provisional ids that rows and targets are, for messages
  RowMerger(Duplicates policy, const BuiltGraph& names) : policy_(policy), names_(names) {}

  /// targets [arcs] in input order, weights [arcs] or null. Returns how many arcs are kept, at the front. The result
  /// depends on the arcs' order only where the policy is `first`: sums are added in ascending order, in double.
  /// Throws input: a sum that a float cannot hold.
  Offset merge(RowId row, Span<RowId> targets, float* weights);

  /// As merge, of triples: sorted by (target, relation), of equal ones the first is kept.
  Offset merge_triples(RowId row, Span<RowId> targets, RowId* relations);

  Offset duplicate_arcs() const { return duplicate_arcs_; }  ///< found so far, self-loops not among them
  Offset duplicate_loops() const { return duplicate_loops_; }

 private:
  Offset merge_unweighted(RowId row, Span<RowId> targets);
  Offset merge_weighted(RowId row, Span<RowId> targets, float* weights);
  float sum(RowId row, Span<const std::uint64_t> run) const;
  void count_duplicates(RowId row, RowId target, Offset count) {
    (row == target ? duplicate_loops_ : duplicate_arcs_) += count;
  }

  Duplicates policy_;
  const BuiltGraph& names_;
  std::vector<std::uint64_t> arcs_;
  Offset duplicate_arcs_ = 0, duplicate_loops_ = 0;
};

/// An arc as one number that sorts by target, then by relation.
inline std::uint64_t packed_triple(RowId target, RowId relation) { return std::uint64_t{target} << 32 | relation; }
inline RowId relation_of(std::uint64_t arc) { return RowId(arc); }

/// An arc as one number that sorts by target, then by weight: the bits of floats >= 0 ascend with their values.
inline std::uint64_t packed_arc(RowId target, float weight) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &weight, sizeof bits);
  return std::uint64_t{target} << 32 | bits;
}
inline RowId target_of(std::uint64_t arc) { return RowId(arc >> 32); }
inline float weight_of(std::uint64_t arc) {
  const auto bits = std::uint32_t(arc);
  float weight = 0;
  std::memcpy(&weight, &bits, sizeof weight);
  return weight;
}

}  // namespace gs
