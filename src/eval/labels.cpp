#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "graphscale/eval.hpp"
#include "kernels/philox.hpp"

#include "src/eval/unknown_names.hpp"

namespace gs {
namespace {

/// Calls visit(label) for each non-empty part of `field` between commas.
template <class Visit>
void each_label(std::string_view field, Visit&& visit) {
  while (!field.empty()) {
    const std::size_t end = std::min(field.find(','), field.size());
    if (end > 0) visit(field.substr(0, end));
    field.remove_prefix(std::min(end + 1, field.size()));
  }
}

/// Row and class, the class numbered by its first appearance.
using Assignment = std::pair<RowId, int>;

/// Classes renumbered by name, assignments sorted and each kept once.
Labels compressed(std::vector<Assignment> assignments, std::vector<std::string> appeared) {
  std::vector<int> order(appeared.size()), renumbered(appeared.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return appeared[a] < appeared[b]; });
  Labels labels;
  for (std::size_t c = 0; c < order.size(); ++c) {
    renumbered[order[c]] = int(c);
    labels.class_names.push_back(std::move(appeared[order[c]]));
  }

  for (Assignment& assignment : assignments) assignment.second = renumbered[assignment.second];
  std::sort(assignments.begin(), assignments.end());
  assignments.erase(std::unique(assignments.begin(), assignments.end()), assignments.end());
  for (const auto& [row, label] : assignments) {
    if (labels.rows.empty() || labels.rows.back() != row) {
      labels.rows.push_back(row);
      labels.offsets.push_back(Offset(labels.classes.size()));
    }
    labels.classes.push_back(label);
  }
  labels.offsets.push_back(Offset(labels.classes.size()));
  return labels;
}

void require_parts(const LabelSplit& split, const std::string& what) {
  for (const auto& [part, name] : {std::pair{&split.train, "train"}, {&split.test, "test"}})
    if (part->empty())
      throw Error(Fault::input, cat(what, ": no labelled node is left to ", name, " on; at least one is expected"));
}

}  // namespace

Labels read_labels(const fs::path& path, const NodeNames& names) {
  TextTable table(path);
  std::vector<Assignment> assignments;
  std::vector<std::string> appeared;
  std::unordered_map<std::string, int> numbers;
  UnknownNames unknown;
  Offset lines = 0, without_label = 0;
  while (const auto* fields = table.next()) {
    ++lines;
    const std::string_view node = fields->front();
    const std::optional<RowId> row = names.find(node);
    bool labelled = false;
    for (std::size_t f = 1; f < fields->size(); ++f)
      each_label((*fields)[f], [&](std::string_view label) {
        labelled = true;
        if (!row) return;
        const auto [number, first] = numbers.try_emplace(std::string(label), int(appeared.size()));
        if (first) appeared.emplace_back(label);
        assignments.emplace_back(*row, number->second);
      });
    if (!row) unknown.add(node);
    if (!labelled) ++without_label;
  }

  unknown.warn(path, "a row in the embeddings");
  if (without_label > 0)
    log_warn(cat(path.string(), ": ", with_commas(without_label), " of ", with_commas(lines),
                 " lines have a node and no label and are left out"));
  Labels labels = compressed(std::move(assignments), std::move(appeared));
  labels.unknown_nodes = unknown.count();
  if (labels.num_classes() < 2)
    throw Error(Fault::input, cat(path.string(), ": ", labels.num_classes(), " classes on ",
                                  with_commas(labels.count()), " nodes with a row (", with_commas(unknown.count()),
                                  " nodes without); at least two classes are expected, as `node label[,label...]`"));
  return labels;
}

LabelSplit random_split(Offset count, double ratio, std::uint64_t seed) {
  if (!(ratio > 0 && ratio < 1))
    throw Error(Fault::usage, cat("ratio ", ratio, ": a number between 0 and 1 is expected"));
  std::vector<Offset> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Offset{0});
  for (Offset last = count - 1; last > 0; --last) {  // Fisher and Yates
    const std::uint64_t bits = draw(seed, 0, std::uint64_t(last), 0, Draw::split).low();
    std::swap(order[last], order[below(bits, std::uint64_t(last) + 1)]);
  }
  const Offset train = Offset(double(count) * ratio);
  const LabelSplit split{{order.begin(), order.begin() + train}, {order.begin() + train, order.end()}};
  require_parts(split, cat("ratio ", ratio, " of ", with_commas(count), " labelled nodes"));
  return split;
}

LabelSplit read_split(const fs::path& path, const NodeNames& names, const Labels& labels) {
  TextTable table(path);
  LabelSplit split;
  UnknownNames unknown, unlabelled;
  std::vector<bool> seen(labels.rows.size());
  while (const auto* fields = table.next()) {
    const std::string_view node = fields->front(), part = fields->back();
    if (fields->size() != 2 || (part != "train" && part != "valid" && part != "test"))
      table.fail(cat(fields->size(), " fields, the last is \"", part, "\"; `node train|valid|test` is expected"));
    const std::optional<RowId> row = names.find(node);
    if (!row) {
      unknown.add(node);
      continue;
    }
    const auto found = std::lower_bound(labels.rows.begin(), labels.rows.end(), *row);
    if (found == labels.rows.end() || *found != *row) {
      unlabelled.add(node);
      continue;
    }
    const Offset position = found - labels.rows.begin();
    if (seen[position])
      table.fail(cat("node \"", node, "\" is on an earlier line already; one line a node is expected"));
    seen[position] = true;
    if (part == "train") split.train.push_back(position);
    if (part == "test") split.test.push_back(position);
  }
  unknown.warn(path, "a row in the embeddings");
  unlabelled.warn(path, "a label");
  require_parts(split, path.string());
  return split;
}

}  // namespace gs
