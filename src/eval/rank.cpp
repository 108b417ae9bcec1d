#include <algorithm>
#include <cmath>

#include "graphscale/eval.hpp"
#include "graphscale/sampler.hpp"

#include "src/eval/rank_scorer.hpp"

namespace gs {
namespace {

constexpr Offset kSampleGroup = 64;          ///< triples that share their samples
constexpr ScoreBlock kCpuBlock{64, 512};     ///< scores stay in the second-level cache until they are counted
constexpr ScoreBlock kGpuBlock{1024, 8192};  ///< 32 MiB of scores, each row sent for 1024 of them
constexpr Offset kSegmentBlocks = 32;        ///< blocks of entities in an item of work
constexpr int kGpuWorkers = 4;               ///< copies, scores and counts of several blocks overlap
constexpr std::uint32_t kSampleEpoch = (1u << 28) - 2;  ///< keys samples; no epoch of a training is so late

/// How the work is cut: into items, one side of some triples against a segment of the candidates each.
struct Cut {
  Offset triples, candidates;
  ScoreBlock block;
  Offset period;  ///< triples that see the same candidates
  Offset segment = 0, segments = 0, blocks_a_period = 0, periods = 0;

  Cut(Offset triple_count, Offset entities, const RankOptions& options, Device device)
      : triples(triple_count),
        candidates(options.negatives > 0 ? options.negatives : entities),
        block(device.is_cuda() ? kGpuBlock : kCpuBlock),
        period(options.negatives > 0 ? kSampleGroup : std::max<Offset>(1, triples)) {
    if (options.query_block > 0) block.queries = options.query_block;
    if (options.entity_block > 0) block.entities = options.entity_block;
    block.queries = std::min(block.queries, period);
    segment = kSegmentBlocks * block.entities;
    segments = (candidates + segment - 1) / segment;
    blocks_a_period = (period + block.queries - 1) / block.queries;
    periods = (triples + period - 1) / period;
  }

  Offset items() const { return 2 * periods * blocks_a_period * segments; }
  int workers(const Exec& exec) const {
    const Offset most = exec.device.is_cuda() ? std::min(exec.threads, kGpuWorkers) : exec.threads;
    return int(std::clamp<Offset>(most, 1, std::max<Offset>(1, items())));
  }
  /// Answers are scored like candidates, a block of queries at a time.
  ScoreBlock scorer_block() const { return {block.queries, std::max(block.queries, block.entities)}; }
};

struct Item {
  bool asks_head = false;
  Offset period = 0, first = 0, count = 0;  // triples
  Offset first_candidate = 0, last_candidate = 0;
};

Item item_at(const Cut& cut, Offset index) {
  Item item;
  item.first_candidate = index % cut.segments * cut.segment;
  item.last_candidate = std::min(cut.candidates, item.first_candidate + cut.segment);
  index /= cut.segments;
  const Offset in_period = index % cut.blocks_a_period * cut.block.queries;
  index /= cut.blocks_a_period;
  item.period = index % cut.periods;
  item.asks_head = index / cut.periods == 0;
  item.first = item.period * cut.period + in_period;
  item.count = std::min({cut.block.queries, cut.period - in_period, cut.triples - item.first});
  return item;
}

/// Some of an item's candidates: consecutive rows, or a part of a sorted sample.
struct Candidates {
  kernels::RowSequence rows;
  Offset count;

  /// Where `row` stands among them: [first, last).
  std::pair<Offset, Offset> places(RowId row) const {
    if (rows.list.empty()) {
      const Offset place = Offset(row) - Offset(rows.first);
      return place >= 0 && place < count ? std::pair(place, place + 1) : std::pair<Offset, Offset>(0, 0);
    }
    const auto [first, last] = std::equal_range(rows.list.begin(), rows.list.end(), row);
    return {first - rows.list.begin(), last - rows.list.begin()};
  }
  /// Those of `sorted` that may be among them.
  Span<const RowId> overlap(Span<const RowId> sorted) const {
    const auto first = std::lower_bound(sorted.begin(), sorted.end(), rows[0]);
    const auto last = std::upper_bound(first, sorted.end(), rows[count - 1]);
    return {first, last - first};
  }
};

struct Tally {
  std::uint32_t above = 0, ties = 0, nans = 0;
  Tally& operator+=(const Tally& o) { return above += o.above, ties += o.ties, nans += o.nans, *this; }
};

/// All stand above an answer without a score.
Tally tally(Span<const float> scores, float answer) {
  const int count = int(scores.size);
  int above = 0, ties = 0, numbers = 0;
#pragma omp simd reduction(+ : above, ties, numbers)
  for (int j = 0; j < count; ++j)
    above += scores[j] > answer, ties += scores[j] == answer, numbers += scores[j] == scores[j];
  if (std::isnan(answer)) above = count;
  return {std::uint32_t(above), std::uint32_t(ties), std::uint32_t(count - numbers)};
}

void add(AnswerPlace& place, const Tally& all, const Tally& less) {
  std::atomic_ref(place.above).fetch_add(all.above - less.above, std::memory_order_relaxed);
  std::atomic_ref(place.ties).fetch_add(all.ties - less.ties, std::memory_order_relaxed);
}

class Ranking {
 public:
  Ranking(const AnswerModel& model, const Triples& triples, const KnownLookup& known, const RankOptions& options,
          const Exec& exec)
      : model_(model),
        triples_(triples),
        known_(known),
        options_(options),
        exec_(exec),
        cut_(triples.size(), model.entities.count, options, exec.device) {
    if (options.negatives > 0 && !options.degrees.empty()) degree_slots_ = alias_table(options.degrees);
    ranked_.heads.resize(triples.heads.size()), ranked_.tails.resize(triples.heads.size());
  }

  RankedTriples run(Progress* progress) {
    std::atomic<Offset> next{0};
    MemoryLedger mapped(exec_.device, true);
    MemoryLedger& host = exec_.device.is_cuda() ? mapped : *exec_.ledger;
    on_threads(cut_.workers(exec_), [&](int) {
      const Stream stream(exec_.device);
      Worker worker{AnswerScorer(model_, cut_.scorer_block(), {exec_.device, 1, stream.get(), exec_.ledger}, host), {}};
      try {
        for (Offset i = next++; i < cut_.items(); i = next++) {
          const Item item = item_at(cut_, i);
          if (item.count > 0) rank(item, worker);
          if (progress && item.count > 0) progress->advance(item.count * (item.last_candidate - item.first_candidate));
        }
      } catch (...) {
        next = cut_.items();  // the others stop at their next item
        throw;
      }
    });
    return std::move(ranked_);
  }

 private:
  struct Query {
    RowId answer = 0;
    float score = 0;  // the answer's
    Span<const RowId> known{};
    Tally all{}, own{}, others{};  // of its candidates; the answer itself; other known answers
  };
  struct Worker {
    AnswerScorer scorer;
    std::vector<Query> queries;
  };

  void rank(const Item& item, Worker& worker) {
    ask(item, worker);
    const std::vector<RowId> sample = options_.negatives > 0 ? sample_of(item) : std::vector<RowId>();
    for (Offset first = item.first_candidate; first < item.last_candidate; first += cut_.block.entities) {
      Candidates candidates{{RowId(first)}, std::min(cut_.block.entities, item.last_candidate - first)};
      if (!sample.empty())
        candidates.rows.list = Span<const RowId>(sample).subspan(first - item.first_candidate, candidates.count);
      const Rows<const float> scores = worker.scorer.wait_scores(candidates.rows, candidates.count);
      for (Offset i = 0; i < item.count; ++i)
        count({scores.row(i), candidates.count}, candidates, worker.queries[std::size_t(i)]);
    }
    std::vector<AnswerPlaces>& places = item.asks_head ? ranked_.heads : ranked_.tails;
    Offset nan_answers = 0, nan_scores = 0;
    for (Offset i = 0; i < item.count; ++i) {
      Query& query = worker.queries[std::size_t(i)];
      AnswerPlaces& place = places[std::size_t(item.first + i)];
      add(place.raw, query.all, query.own);
      add(place.filtered, query.all, query.own += query.others);
      nan_answers += item.first_candidate == 0 && std::isnan(query.score);
      nan_scores += query.all.nans;
    }
    std::atomic_ref(ranked_.nan_answers) += nan_answers;
    std::atomic_ref(ranked_.nan_scores) += nan_scores;
  }

  /// The item's queries, their known answers, and the answers' own scores.
  void ask(const Item& item, Worker& worker) const {
    std::vector<kernels::TripleQuery> queries;
    std::vector<RowId> answers;
    worker.queries.clear();
    for (std::size_t i = std::size_t(item.first); i < std::size_t(item.first + item.count); ++i) {
      const RowId head = triples_.heads[i], tail = triples_.tails[i];
      queries.push_back({item.asks_head ? tail : head, triples_.relations[i], item.asks_head});
      answers.push_back(item.asks_head ? head : tail);
      worker.queries.push_back({answers.back(), 0, known_(queries.back())});
    }
    worker.scorer.ask(queries);
    kernels::RowSequence rows;
    rows.list = answers;
    const Rows<const float> scores = worker.scorer.wait_scores(rows, item.count);
    for (Offset i = 0; i < item.count; ++i) worker.queries[std::size_t(i)].score = scores.row(i)[i];
  }

  /// What the item sees of its group's sample, ascending.
  std::vector<RowId> sample_of(const Item& item) const {
    const auto entities = std::uint64_t(model_.entities.count);
    std::vector<RowId> sample;
    for (Offset place = item.first_candidate; place < item.last_candidate; ++place) {
      const Philox4 random = draw(options_.seed, kSampleEpoch + item.asks_head, std::uint64_t(item.period),
                                  std::uint32_t(place), Draw::negative);
      const std::uint64_t slot = below(random.low(), entities);
      const bool aliased = !degree_slots_.empty() && random.word[2] >= degree_slots_[slot].threshold;
      sample.push_back(aliased ? degree_slots_[slot].alias : RowId(slot));
    }
    std::sort(sample.begin(), sample.end());
    return sample;
  }

  static void count(Span<const float> scores, const Candidates& candidates, Query& query) {
    const auto tally_of = [&](RowId row) {
      const auto [first, last] = candidates.places(row);
      return tally(scores.subspan(first, last - first), query.score);
    };
    query.all += tally(scores, query.score);
    query.own += tally_of(query.answer);
    for (const RowId row : candidates.overlap(query.known))
      if (row != query.answer) query.others += tally_of(row);
  }

  const AnswerModel& model_;
  const Triples& triples_;
  const KnownLookup& known_;
  const RankOptions& options_;
  const Exec exec_;
  const Cut cut_;
  std::vector<kernels::AliasSlot> degree_slots_;
  RankedTriples ranked_;
};

void require_rows(const std::vector<RowId>& rows, Offset count, const char* what) {
  for (const RowId row : rows) GS_EXPECT(Offset(row) < count, "rank: ", what, " ", row, " of ", count);
}

/// Sums that become means.
struct Sums {
  Offset queries = 0, hits_at_1 = 0, hits_at_3 = 0, hits_at_10 = 0;
  double reciprocals = 0, ranks = 0;

  void add(double rank, Offset times = 1) {
    queries += times, ranks += rank * double(times), reciprocals += double(times) / rank;
    hits_at_1 += rank <= 1 ? times : 0, hits_at_3 += rank <= 3 ? times : 0, hits_at_10 += rank <= 10 ? times : 0;
  }
  RankScores means() const {
    const double n = double(std::max<Offset>(1, queries));
    return {queries, reciprocals / n, ranks / n, double(hits_at_1) / n, double(hits_at_3) / n, double(hits_at_10) / n};
  }
};

SideScores side_scores(const RankedTriples& ranked, AnswerPlace AnswerPlaces::*kind, Offset worst, double last_rank) {
  Sums both, head, tail;
  for (std::size_t i = 0; i < ranked.heads.size(); ++i) {
    const double of_head = (ranked.heads[i].*kind).rank(), of_tail = (ranked.tails[i].*kind).rank();
    head.add(of_head), tail.add(of_tail), both.add(of_head), both.add(of_tail);
  }
  head.add(last_rank, worst), tail.add(last_rank, worst), both.add(last_rank, 2 * worst);
  return {both.means(), head.means(), tail.means()};
}

}  // namespace

RankedTriples rank_triples(const AnswerModel& model, const Triples& triples, const KnownLookup& known,
                           const RankOptions& options, const Exec& exec, Progress* progress) {
  require_rows(triples.heads, model.entities.count, "head");
  require_rows(triples.tails, model.entities.count, "tail");
  if (model.relations.count > 0)
    require_rows(triples.relations, model.relations.count - model.shape.reciprocal, "relation");
  return Ranking(model, triples, known, options, exec).run(progress);
}

Offset rank_bytes(const AnswerModel& model, Offset triples, const RankOptions& options, const Exec& exec) {
  const Cut cut(triples, model.entities.count, options, exec.device);
  return cut.workers(exec) * AnswerScorer::bytes(model, cut.scorer_block(), exec.device);
}

Offset rank_score_count(Offset triples, Offset entities, const RankOptions& options) {
  return 2 * triples * (options.negatives > 0 ? options.negatives : entities);
}

RankingReport mean_ranks(const RankedTriples& ranked, Offset worst, Offset last_rank) {
  RankingReport report;
  report.triples = Offset(ranked.heads.size()) + worst;
  report.nan_answers = ranked.nan_answers, report.nan_scores = ranked.nan_scores;
  report.filtered = side_scores(ranked, &AnswerPlaces::filtered, worst, double(last_rank));
  report.raw = side_scores(ranked, &AnswerPlaces::raw, worst, double(last_rank));
  return report;
}

std::vector<RankScores> relation_ranks(const RankedTriples& ranked, const Triples& triples, Offset relations) {
  std::vector<Sums> sums(static_cast<std::size_t>(relations));
  for (std::size_t i = 0; i < ranked.heads.size(); ++i)
    for (const AnswerPlaces& places : {ranked.heads[i], ranked.tails[i]})
      sums[triples.relations[i]].add(places.filtered.rank());
  std::vector<RankScores> scores;
  for (const Sums& sum : sums) scores.push_back(sum.means());
  return scores;
}

}  // namespace gs
