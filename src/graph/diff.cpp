#include <algorithm>
#include <charconv>
#include <tuple>

#include "graphscale/graph.hpp"

namespace gs {
namespace {

/// The row of each name of `names` in `others`, or kNoRow; [names]
std::vector<RowId> rows_in(const NodeNames& names, const NodeNames& others) {
  std::vector<RowId> rows(std::size_t(names.size()));
  for (Offset row = 0; row < names.size(); ++row)
    rows[std::size_t(row)] = others.find(names.name(row)).value_or(kNoRow);
  return rows;
}

void note(std::vector<std::string>& list, Offset most, const auto& text) {
  if (Offset(list.size()) < most) list.push_back(text());
}

/// The shortest text that reads back as this weight.
std::string weight_text(float weight) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, weight).ptr};
}

/// Walks the rows of one graph and then those that only the other has; arcs of a row are merged by their ends.
class Comparison {
 public:
  Comparison(const Graph& before, const Graph& after, Offset list)
      : before_(before),
        after_(after),
        list_(list),
        undirected_(!before.csr().directed && !after.csr().directed),
        after_row_(rows_in(before.names(), after.names())),
        after_relation_(rows_in(before.relation_names(), after.relation_names())) {}

  GraphDiff run() {
    compare_names(before_.names(), after_.names(), after_row_, diff_.nodes);
    compare_names(before_.relation_names(), after_.relation_names(), after_relation_, diff_.relations);
    std::vector<bool> is_old(std::size_t(after_.csr().num_nodes()));
    for (Offset row = 0; row < before_.csr().num_nodes(); ++row) {
      const RowId there = after_row_[std::size_t(row)];
      if (there != kNoRow) is_old[there] = true;
      compare_row(row, there == kNoRow ? -1 : Offset(there));
    }
    for (Offset row = 0; row < after_.csr().num_nodes(); ++row)
      if (!is_old[std::size_t(row)]) compare_row(-1, row);
    return std::move(diff_);
  }

 private:
  /// Of one row: the other end and the relation as numbers of `after_`, those that it lacks behind all others.
  struct Arc {
    std::uint64_t target = 0, relation = 0;
    float weight = 1;
    Offset at = 0;  // place in its graph's arrays
    auto ends() const { return std::tie(target, relation); }
    bool operator<(const Arc& other) const {
      return std::tie(target, relation, weight) < std::tie(other.target, other.relation, other.weight);
    }
  };

  static constexpr std::uint64_t kOnlyBefore = std::uint64_t{1} << 32, kNoRelation = 2 * kOnlyBefore;

  void compare_names(const NodeNames& before, const NodeNames& after, const std::vector<RowId>& rows,
                     GraphChanges& changes) const {
    std::vector<bool> is_old(std::size_t(after.size()));
    for (Offset row = 0; row < before.size(); ++row) {
      if (const RowId there = rows[std::size_t(row)]; there != kNoRow) {
        is_old[there] = true;
      } else {
        ++changes.removed, note(changes.first_removed, list_, [&] { return before.name(row); });
      }
    }
    for (Offset row = 0; row < after.size(); ++row)
      if (!is_old[std::size_t(row)]) ++changes.added, note(changes.first_added, list_, [&] { return after.name(row); });
  }

  static void arcs_of(const Csr& graph, Offset row, std::vector<Arc>& arcs, const auto& target, const auto& relation) {
    arcs.clear();
    if (row < 0) return;
    for (Offset at = graph.offsets[row]; at < graph.offsets[row + 1]; ++at)
      arcs.push_back({target(graph.targets[at]), graph.relations.empty() ? kNoRelation : relation(graph.relations[at]),
                      graph.weights.empty() ? 1 : graph.weights[at], at});
    std::sort(arcs.begin(), arcs.end());
  }

  /// Of `before_` and `after_`, a row each of the same name; -1: the graph has no such node.
  void compare_row(Offset before, Offset after) {
    const auto mapped = [](const std::vector<RowId>& rows) {
      return [&](RowId id) { return rows[id] == kNoRow ? kOnlyBefore + id : rows[id]; };
    };
    const auto same = [](RowId id) { return std::uint64_t(id); };
    arcs_of(before_.csr(), before, old_, mapped(after_row_), mapped(after_relation_));
    arcs_of(after_.csr(), after, new_, same, same);

    for (std::size_t i = 0, j = 0; i < old_.size() || j < new_.size();) {
      const bool is_old = j == new_.size() || (i < old_.size() && old_[i].ends() < new_[j].ends());
      const auto ends = is_old ? old_[i].ends() : new_[j].ends();
      gone_.clear(), come_.clear();
      for (;;) {  // arcs of these ends; equal weights are the same arc
        const bool has_old = i < old_.size() && old_[i].ends() == ends,
                   has_new = j < new_.size() && new_[j].ends() == ends;
        if (!has_old && !has_new) break;
        if (has_old && has_new && old_[i].weight == new_[j].weight)
          ++i, ++j;
        else if (has_old && (!has_new || old_[i].weight < new_[j].weight))
          gone_.push_back(&old_[i++]);
        else
          come_.push_back(&new_[j++]);
      }
      note_changed(before, after);
    }
  }

  /// Of arcs with the same ends, those that came stand for as many that went, in order of weight.
  void note_changed(Offset before, Offset after) {
    const std::size_t both = std::min(gone_.size(), come_.size());
    for (std::size_t k = 0; k < both; ++k)
      ++diff_.reweighted_arcs, note_arc(diff_.first_reweighted, after_, after, *come_[k],
                                        cat("\t", weight_text(gone_[k]->weight), "\t", weight_text(come_[k]->weight)));
    for (std::size_t k = both; k < gone_.size(); ++k)
      ++diff_.arcs.removed, note_arc(diff_.arcs.first_removed, before_, before, *gone_[k], "");
    for (std::size_t k = both; k < come_.size(); ++k)
      ++diff_.arcs.added, note_arc(diff_.arcs.first_added, after_, after, *come_[k], "");
  }

  void note_arc(std::vector<std::string>& list, const Graph& graph, Offset row, const Arc& arc,
                const std::string& weights) const {
    const Csr csr = graph.csr();
    if (undirected_ && Offset(csr.targets[arc.at]) < row) return;  // the same edge from its other end
    note(list, list_, [&] {
      const std::string relation =
          csr.relations.empty() ? "" : graph.relation_names().name(csr.relations[arc.at]) + "\t";
      return cat(graph.names().name(row), "\t", relation, graph.names().name(csr.targets[arc.at]), weights);
    });
  }

  const Graph &before_, &after_;
  const Offset list_;
  const bool undirected_;
  const std::vector<RowId> after_row_, after_relation_;
  std::vector<Arc> old_, new_;           // of a row
  std::vector<const Arc*> gone_, come_;  // of its arcs with the same ends, those of one side only
  GraphDiff diff_;
};

}  // namespace

GraphDiff diff(const Graph& before, const Graph& after, Offset list) { return Comparison(before, after, list).run(); }

}  // namespace gs
