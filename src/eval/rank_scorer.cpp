#include "src/eval/rank_scorer.hpp"

#include <algorithm>
#include <cmath>

namespace gs {
namespace {

constexpr const char* kPurpose = "rank: scores and rows";
constexpr Offset kAnswerBlock = 256, kAnswerPiece = 4096;  ///< entities that answer_scores scores, a thread takes

Offset padded(Offset count) { return (count + 15) / 16 * 16; }

}  // namespace

AnswerScorer::AnswerScorer(const AnswerModel& model, const ScoreBlock& block, const Exec& exec, MemoryLedger& host)
    : model_(model),
      exec_(exec),
      stride_(padded_stride(model.entities.dim)),
      score_stride_(padded(block.entities)),
      vectors_(*exec.ledger, block.queries * stride_, kPurpose),
      entities_(*exec.ledger, exec.device.is_cuda() ? block.entities * stride_ : 0, kPurpose),
      known_rows_(host, block.queries * stride_, kPurpose),
      relations_(host, model.relations.count ? block.queries * stride_ : 0, kPurpose),
      rows_(host, block.entities * stride_, kPurpose),
      scores_(host, block.queries * score_stride_, kPurpose),
      queries_(host, block.queries, kPurpose) {}

Offset AnswerScorer::bytes(const AnswerModel& model, const ScoreBlock& block, Device device) {
  const Offset row_bytes = 4 * padded_stride(model.entities.dim);
  const Offset device_bytes = block.queries * row_bytes;
  if (device.is_cuda()) return device_bytes + block.entities * row_bytes;
  return device_bytes + (block.queries * (model.relations.count ? 2 : 1) + block.entities) * row_bytes +
         block.queries * (4 * padded(block.entities) + Offset(sizeof(kernels::TripleQuery)));
}

void AnswerScorer::gather(Rows<const float> table, Offset row, float* out) const {
  std::copy_n(table.row(row), table.dim, out);
  if (!model_.cosine) return;
  double squares = 0;
  for (int c = 0; c < table.dim; ++c) squares += double(out[c]) * out[c];
  if (squares > 0)
    for (int c = 0; c < table.dim; ++c) out[c] = float(out[c] / std::sqrt(squares));
}

void AnswerScorer::ask(Span<const kernels::TripleQuery> queries) {
  asked_ = queries.size;
  for (Offset i = 0; i < asked_; ++i) {
    const auto& [entity, relation, asks_head] = queries[i];
    gather(model_.entities, entity, known_rows_.data() + i * stride_);
    if (model_.relations.count == 0) continue;
    const bool by_reciprocal = asks_head && model_.shape.reciprocal > 0;
    gather(model_.relations, Offset(relation) + (by_reciprocal ? model_.shape.reciprocal : 0),
           relations_.data() + i * stride_);
    queries_.data()[i] = {RowId(i), RowId(i), asks_head && !by_reciprocal};
  }

  const int dim = model_.entities.dim;
  const Rows<float> vectors(vectors_.data(), asked_, dim, stride_);
  const Rows<const float> known_rows(known_rows_.data(), asked_, dim, stride_);
  if (model_.relations.count == 0)
    return copy_bytes(vectors.data, known_rows.data, asked_ * stride_ * Offset(sizeof(float)), exec_);
  kernels::TripleShape shape = model_.shape;
  shape.reciprocal = 0;  // such queries are asked with the reciprocal's own row
  kernels::ops(exec_).make_queries(shape, known_rows, {relations_.data(), asked_, dim, stride_},
                                   queries_.span().subspan(0, asked_), vectors, exec_);
}

Rows<const float> AnswerScorer::wait_scores(const kernels::RowSequence& rows, Offset count) {
  const int dim = model_.entities.dim;
  Rows<const float> block(rows_.data(), count, dim, stride_);
  if (rows.list.empty() && !model_.cosine && !exec_.device.is_cuda()) {
    block = {model_.entities.row(rows.first), count, dim, model_.entities.stride};
  } else {
    for (Offset i = 0; i < count; ++i) gather(model_.entities, rows[i], rows_.data() + i * stride_);
    if (exec_.device.is_cuda()) {
      copy_bytes(entities_.data(), rows_.data(), count * stride_ * Offset(sizeof(float)), exec_);
      block.data = entities_.data();
    }
  }
  const Rows<float> scores(scores_.data(), asked_, int(count), score_stride_);
  kernels::ops(exec_).score_rows(model_.shape.score, {vectors_.data(), asked_, dim, stride_}, block, scores, exec_);
  wait(exec_);
  return scores;
}

std::vector<float> answer_scores(const AnswerModel& model, const kernels::TripleQuery& query, int threads) {
  GS_EXPECT(Offset(query.entity) < model.entities.count, "answer_scores: entity ", query.entity, " of ",
            model.entities.count);
  GS_EXPECT(model.relations.count == 0 || Offset(query.relation) + model.shape.reciprocal < model.relations.count,
            "answer_scores: relation ", query.relation, " of ", model.relations.count - model.shape.reciprocal);
  MemoryLedger ledger({});
  std::vector<float> scores(std::size_t(model.entities.count));
  parallel_for(threads, model.entities.count, kAnswerPiece, [&](Offset first, Offset last, int) {
    AnswerScorer scorer(model, {1, kAnswerBlock}, {{}, 1, nullptr, &ledger}, ledger);
    scorer.ask({&query, 1});
    for (; first < last; first += kAnswerBlock) {
      const Offset count = std::min(kAnswerBlock, last - first);
      kernels::RowSequence rows;
      rows.first = RowId(first);
      std::copy_n(scorer.wait_scores(rows, count).data, count, scores.data() + first);
    }
  });
  return scores;
}

}  // namespace gs
