// How far a step goes: schedules, and the rule by which a row takes its gradient.
#pragma once

#include "graphscale/model.hpp"

namespace gs {

/// Learning rate after `share` (0 to 1) of all walks: warm-up from 0 over the first warm_up_share, then the schedule.
double learning_rate_at(const TrainingConfig& training, double share);

kernels::Optimizer optimizer_of(const TrainingConfig& training);

/// The rule of step `step`, the same on every rank.
kernels::UpdateRule update_rule(const TrainingConfig& training, double share, Offset step);

/// Whether rows must be trained by exchange though there is one rank: what the in-place tile cannot do.
bool needs_exchange(const Config& config);

}  // namespace gs
