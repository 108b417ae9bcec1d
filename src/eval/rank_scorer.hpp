// Scores of some queries with many entities, a block at a time, on one stream of exec's device.
#pragma once

#include "graphscale/eval.hpp"
#include "kernels/ops.hpp"

namespace gs {

/// The most that is scored at a time.
struct ScoreBlock {
  Offset queries = 0, entities = 0;
};

/// Entities stream through the device: a row is sent for every block of queries, which costs less than bringing that
/// many scores back, and no table is too large.
class AnswerScorer {
 public:
  /// host: what the device reads and writes in host memory; exec.ledger itself on the CPU.
  AnswerScorer(const AnswerModel& model, const ScoreBlock& block, const Exec& exec, MemoryLedger& host);
  void ask(Span<const kernels::TripleQuery> queries);
  /// [queries asked, count] scores with entities rows[0] .. rows[count - 1], in host memory until the next call.
  Rows<const float> wait_scores(const kernels::RowSequence& rows, Offset count);

  static Offset bytes(const AnswerModel& model, const ScoreBlock& block, Device device);  ///< of exec.ledger

 private:
  void gather(Rows<const float> table, Offset row, float* out) const;

  const AnswerModel& model_;
  Exec exec_;
  Offset stride_, score_stride_, asked_ = 0;
  Buffer<float> vectors_, entities_;                      // on the device; entities_: of a GPU only
  Buffer<float> known_rows_, relations_, rows_, scores_;  // host: the queries' rows, gathered entities
  Buffer<kernels::TripleQuery> queries_;                  // host
};

}  // namespace gs
