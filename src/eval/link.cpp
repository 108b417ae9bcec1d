#include <algorithm>
#include <cmath>
#include <functional>

#include "graphscale/eval.hpp"

#include "src/eval/unknown_names.hpp"

namespace gs {
namespace {

double score(Rows<const float> vectors, RowId u, RowId v, Metric metric) {
  const float *a = vectors.row(u), *b = vectors.row(v);
  double dot = 0, aa = 0, bb = 0, squares = 0;
#pragma omp simd reduction(+ : dot, aa, bb, squares)
  for (int c = 0; c < vectors.dim; ++c) {
    const double x = a[c], y = b[c];
    dot += x * y, aa += x * x, bb += y * y, squares += (x - y) * (x - y);
  }
  if (metric == Metric::dot) return dot;
  if (metric == Metric::l2) return -std::sqrt(squares);
  return aa > 0 && bb > 0 ? dot / (std::sqrt(aa) * std::sqrt(bb)) : 0;
}

std::uint64_t pair_key(RowId u, RowId v) { return std::uint64_t(u) << 32 | v; }

struct Pairs {
  std::vector<std::uint64_t> keys;
  Offset unknown = 0;
};

/// visit(table, u, v) once a pair of known names, in the order of the file
template <class Visit>
Pairs read_pairs(const fs::path& path, const NodeNames& names, Visit&& visit) {
  TextTable table(path);
  UnknownNames unknown;
  Pairs pairs;
  while (const auto* fields = table.next()) {
    if (fields->size() < 2) table.fail("one field; `node node` is expected");
    const std::optional<RowId> u = names.find((*fields)[0]), v = names.find((*fields)[1]);
    if (!u) unknown.add((*fields)[0]);
    if (!v) unknown.add((*fields)[1]);
    if (!u || !v) {
      ++pairs.unknown;
      continue;
    }
    visit(table, *u, *v);
    pairs.keys.push_back(pair_key(*u, *v));
  }
  unknown.warn(path, "a row in the embeddings");
  if (pairs.keys.empty())
    throw Error(Fault::input, cat(path.string(), ": no pair of known names (", with_commas(pairs.unknown),
                                  " pairs with an unknown one); at least one is expected, as `node node`"));
  return pairs;
}

std::vector<double> scores_of(const Pairs& pairs, Rows<const float> vectors, Metric metric) {
  std::vector<double> scores;
  scores.reserve(pairs.keys.size());
  for (const std::uint64_t key : pairs.keys) scores.push_back(score(vectors, RowId(key >> 32), RowId(key), metric));
  return scores;
}

std::vector<double> best_first(Span<const double> scores) {
  std::vector<double> sorted(scores.begin(), scores.end());
  for (const double s : sorted) GS_EXPECT(!std::isnan(s), "link_scores: a score is NaN");
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  return sorted;
}

}  // namespace

LinkReport link_scores(Span<const double> positive, Span<const double> negative) {
  GS_EXPECT(positive.size > 0 && negative.size > 0, "link_scores: ", positive.size, " positives and ", negative.size,
            " negatives; both must have one");
  const std::vector<double> hits = best_first(positive), misses = best_first(negative);
  LinkReport report;
  report.positives = positive.size, report.negatives = negative.size;

  // One threshold after another, from the highest score: how many of either side stand at or above it.
  unsigned __int128 lost_halves = 0;  // twice the pairs (positive, negative) in the wrong order; a tie is one half
  Offset hit = 0, miss = 0;
  while (hit < positive.size) {
    const double threshold = miss < negative.size ? std::max(hits[hit], misses[miss]) : hits[hit];
    const Offset hits_above = hit, misses_above = miss;
    while (hit < positive.size && hits[hit] == threshold) ++hit;
    while (miss < negative.size && misses[miss] == threshold) ++miss;
    const Offset found = hit - hits_above;
    lost_halves += static_cast<unsigned __int128>(found) * std::uint64_t(misses_above + miss);
    report.average_precision += double(found) * (double(hit) / double(hit + miss));
  }
  report.auc = 1 - double(lost_halves) / 2 / double(positive.size) / double(negative.size);
  report.average_precision /= double(positive.size);
  return report;
}

LinkReport eval_link(const Embeddings& embeddings, const fs::path& positives, const fs::path& negatives,
                     Metric metric) {
  const NodeNames& names = embeddings.names();
  const Pairs edges = read_pairs(positives, names, [](TextTable&, RowId, RowId) {});
  std::vector<std::uint64_t> sorted = edges.keys;
  std::sort(sorted.begin(), sorted.end());
  const auto is_edge = [&](RowId u, RowId v) {
    return std::binary_search(sorted.begin(), sorted.end(), pair_key(u, v));
  };
  Offset reversed = 0;
  const Pairs non_edges = read_pairs(negatives, names, [&](TextTable& table, RowId u, RowId v) {
    if (is_edge(u, v))
      table.fail(cat("the pair \"", names.name(u), "\" \"", names.name(v), "\" is in ", positives.string(),
                     " too; a negative that is no edge is expected"));
    reversed += is_edge(v, u);
  });
  if (reversed > 0)
    log_warn(cat(negatives.string(), ": ", with_commas(reversed),
                 " negatives are positives in the other direction: they score "
                 "the same and belong here in a directed graph only"));

  LinkReport report =
      link_scores(scores_of(edges, embeddings.rows(), metric), scores_of(non_edges, embeddings.rows(), metric));
  report.unknown_pairs = edges.unknown + non_edges.unknown;
  return report;
}

}  // namespace gs
