#include "src/train/validator.hpp"

#include <cstdio>

namespace gs {

Validator::Validator(const Validation& validation, const Config& config, const Exec& exec, MetricsFile& metrics,
                     TrainSummary& summary, std::function<void(Rows<const float>)> keep)
    : validation_(validation),
      config_(config),
      exec_(exec),
      metrics_(metrics),
      summary_(summary),
      keep_(std::move(keep)) {}

bool Validator::goes_on(const Training& training, Rows<const float> table) {
  const double start_s = now_s();
  const RankScores scores = validation_.rank(table, exec_);
  const bool is_best = rankings_ == 0 || scores.mrr > summary_.best_mrr;
  if (is_best) {
    keep_(table);
    summary_.best_mrr = scores.mrr, summary_.best_epoch = training.epochs_done();
  }
  without_better_ = is_best ? 0 : without_better_ + 1;
  ++rankings_, ++summary_.validations;
  const double seconds = now_s() - start_s;
  summary_.validation_seconds += seconds;
  metrics_.write_validation(training, scores, is_best, seconds);

  char text[160];
  std::snprintf(text, sizeof text, "MRR %.4f", scores.mrr);
  note_ = text;
  if (!is_best) {
    std::snprintf(text, sizeof text, " (best %.4f, epoch %.4g)", summary_.best_mrr, summary_.best_epoch);
    note_ += text;
  }
  std::snprintf(text, sizeof text, "epoch %.4g: %s, Hits@10 %.4f%s (%s queries, %s)", training.epochs_done(),
                note_.c_str(), scores.hits_at_10, is_best ? ", saved as the best" : "",
                with_commas(scores.queries).c_str(), human_seconds(seconds).c_str());
  log_info(cat("validation: ", text));
  if (config_.eval.patience == 0 || without_better_ < config_.eval.patience || training.done()) return true;
  summary_.early = true;
  log_info(cat("training ends early: no better MRR in ", without_better_, " validations (eval.patience)"));
  return false;
}

bool Validator::restore(const RunState& from) {
  rankings_ = from.part_validations, without_better_ = from.validations_without_better;
  if (!has_lost_patience(from)) return true;
  summary_.early =
      from.config.eval.patience == config_.eval.patience && from.config.training.epochs == config_.training.epochs;
  if (!summary_.early) without_better_ = 0;
  return !summary_.early;
}

bool has_lost_patience(const RunState& state) {
  return state.config.eval.patience > 0 && state.validations_without_better >= state.config.eval.patience;
}

}  // namespace gs
