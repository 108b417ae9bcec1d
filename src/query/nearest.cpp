// Exact nearest rows: one pass over the table, a block of rows against all queries, the k best kept per thread.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graphscale/query.hpp"

namespace gs {
namespace {

/// Bytes of a block of rows: it stays in the second-level cache while every query passes over it.
constexpr Offset kBlockBytes = 128 << 10;

/// Total order of answers: score, then row; so the result is the same for any number of threads.
struct Better {
  bool larger;
  bool operator()(const Neighbour& a, const Neighbour& b) const {
    if (a.score != b.score) return larger ? a.score > b.score : a.score < b.score;
    return a.row < b.row;
  }
};

/// The k best of what was offered: a heap whose front is the worst of them.
class BestList {
 public:
  BestList(Offset k, Better better) : k_(std::size_t(k)), better_(better) {}

  void offer(const Neighbour& candidate) {
    if (heap_.size() == k_) {
      if (!better_(candidate, heap_.front())) return;
      std::pop_heap(heap_.begin(), heap_.end(), better_);
      heap_.pop_back();
    }
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end(), better_);
  }

  void offer_all(const BestList& other) {
    for (const Neighbour& candidate : other.heap_) offer(candidate);
  }

  std::vector<Neighbour> take_sorted() {
    std::sort_heap(heap_.begin(), heap_.end(), better_);
    return std::move(heap_);
  }

 private:
  std::size_t k_;
  Better better_;
  std::vector<Neighbour> heap_;
};

// Sums run in double: a float's square can overflow or vanish in float, never in double, so no score is NaN, a tiny
// vector is not taken for zero, and the order is that of the exact scores but for their last bits.

double dot(const double* a, const double* b, int dim) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int c = 0; c < dim; ++c) sum += a[c] * b[c];
  return sum;
}

double squared_distance(const double* a, const double* b, int dim) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int c = 0; c < dim; ++c) sum += (a[c] - b[c]) * (a[c] - b[c]);
  return sum;
}

/// Some rows in double, with their norms.
struct Block {
  int dim = 0;
  std::vector<double> values, norms;  // [rows, dim], [rows]

  const double* row(Offset i) const { return values.data() + i * dim; }

  void resize(Offset rows, int columns) {
    dim = columns;
    values.resize(std::size_t(rows * columns));
    norms.resize(std::size_t(rows));
  }

  void set(Offset i, const float* from) {
    double* const to = values.data() + i * dim;
    for (int c = 0; c < dim; ++c) to[c] = from[c];
    norms[std::size_t(i)] = std::sqrt(dot(to, to, dim));
  }
};

float score(Metric metric, const Block& a, Offset i, const Block& b, Offset j) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (metric == Metric::l2) return float(std::min(kLargest, std::sqrt(squared_distance(a.row(i), b.row(j), a.dim))));
  const double product = dot(a.row(i), b.row(j), a.dim);
  if (metric == Metric::dot) return float(std::clamp(product, -kLargest, kLargest));
  const double norms = a.norms[std::size_t(i)] * b.norms[std::size_t(j)];
  return norms == 0 ? 0 : float(std::clamp(product / norms, -1.0, 1.0));
}

/// One thread's share of the pass.
struct Worker {
  Block block;
  std::vector<BestList> best;  // [queries]
  Offset zero_rows = 0;
};

class Search {
 public:
  Search(Rows<const float> table, const std::vector<RowId>& queries, const QueryOptions& options)
      : table_(table), queries_(queries), options_(options) {
    wanted_.resize(Offset(queries.size()), table.dim);
    for (std::size_t q = 0; q < queries.size(); ++q) wanted_.set(Offset(q), table.row(queries[q]));
  }

  std::vector<std::vector<Neighbour>> run() {
    const Better better{larger_is_better(options_.metric)};
    const BestList nothing(std::min<Offset>(options_.k, table_.count), better);
    std::vector<Worker> workers(std::size_t(std::max(1, options_.threads)),
                                Worker{{}, std::vector<BestList>(queries_.size(), nothing)});
    const Offset block_rows = std::max<Offset>(1, kBlockBytes / (std::max(1, table_.dim) * Offset(sizeof(double))));
    parallel_for(options_.threads, table_.count, block_rows, [&](Offset first, Offset last, int thread) {
      for (; first < last; first += block_rows)
        scan(first, std::min(last, first + block_rows), workers[std::size_t(thread)]);
    });
    warn_of_zero_rows(workers);

    std::vector<std::vector<Neighbour>> answers;
    for (std::size_t q = 0; q < queries_.size(); ++q) {
      BestList& best = workers[0].best[q];
      for (std::size_t other = 1; other < workers.size(); ++other) best.offer_all(workers[other].best[q]);
      answers.push_back(best.take_sorted());
    }
    return answers;
  }

 private:
  void scan(Offset first, Offset last, Worker& worker) const {
    worker.block.resize(last - first, table_.dim);
    for (Offset row = first; row < last; ++row) {
      worker.block.set(row - first, table_.row(row));
      worker.zero_rows += worker.block.norms[std::size_t(row - first)] == 0;
    }
    for (std::size_t q = 0; q < queries_.size(); ++q)
      for (Offset row = first; row < last; ++row)
        if (options_.include_self || row != Offset(queries_[q]))
          worker.best[q].offer({RowId(row), score(options_.metric, wanted_, Offset(q), worker.block, row - first)});
  }

  void warn_of_zero_rows(const std::vector<Worker>& workers) const {
    Offset zero_rows = 0;
    for (const Worker& worker : workers) zero_rows += worker.zero_rows;
    if (options_.metric == Metric::cosine && zero_rows > 0)
      log_warn(cat(with_commas(zero_rows), " of ", with_commas(table_.count),
                   " rows are all zeros: their cosine with any row is taken as 0"));
  }

  Rows<const float> table_;
  const std::vector<RowId>& queries_;
  const QueryOptions& options_;
  Block wanted_;  // the queries' own rows
};

}  // namespace

bool larger_is_better(Metric metric) { return metric != Metric::l2; }

std::vector<std::vector<Neighbour>> nearest(Rows<const float> table, const std::vector<RowId>& queries,
                                            const QueryOptions& options) {
  GS_EXPECT(options.k >= 0, "nearest: k is ", options.k, "; expected 0 or more");
  for (const RowId query : queries)
    GS_EXPECT(Offset(query) < table.count, "nearest: row ", query, " of a table of ", table.count, " rows");
  if (options.k == 0) return std::vector<std::vector<Neighbour>>(queries.size());
  return Search(table, queries, options).run();
}

}  // namespace gs
