// Validation as training goes: what was best is kept, and patience ends.
#pragma once

#include "graphscale/eval.hpp"

#include "src/train/metrics.hpp"

namespace gs {

class Validator {
 public:
  /// keep(table) is called with the vectors that are the best yet, the first among them. All must outlive this.
  Validator(const Validation& validation, const Config& config, const Exec& exec, MetricsFile& metrics,
            TrainSummary& summary, std::function<void(Rows<const float> table)> keep);

  /// Ranks the vectors so far [dense rows + nodes, dim] (host memory), logs it, adds a line to the metrics. false: no
  /// better MRR for eval.patience rankings. Throws what keep throws, and memory.
  bool goes_on(const Training& training, Rows<const float> table);

  bool has_kept() const { return rankings_ > 0; }
  bool is_best_at(const Training& training) const {  ///< the vectors after its last step
    return rankings_ > 0 && without_better_ == 0 && training.at_validation();
  }
  /// Of a run that goes on where its best vectors are kept. False: it has ended for want of patience, and still does by
  /// the options of now.
  bool restore(const RunState& from);
  void add_to(RunState& state) const {
    state.part_validations = rankings_, state.validations_without_better = without_better_;
  }
  const std::string& note() const { return note_; }  ///< for progress

 private:
  const Validation& validation_;
  const Config& config_;
  Exec exec_;
  MetricsFile& metrics_;
  TrainSummary& summary_;
  std::function<void(Rows<const float>)> keep_;
  int rankings_ = 0, without_better_ = 0;
  std::string note_;
};

/// Whether the part that `state` is of had as many validations without a better one as eval.patience allows.
bool has_lost_patience(const RunState& state);

}  // namespace gs
