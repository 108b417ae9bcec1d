#include "graphscale/optimizer.hpp"

#include <cmath>

namespace gs {

double learning_rate_at(const TrainingConfig& training, double share) {
  constexpr double kPi = 3.14159265358979323846;
  const double warm_up = training.warm_up_share > share ? share / training.warm_up_share : 1;
  if (training.schedule == "constant") return warm_up * training.learning_rate;
  const double fallen = training.schedule == "cosine" ? (1 - std::cos(kPi * share)) / 2 : share;
  return warm_up * (training.learning_rate + fallen * (training.final_learning_rate - training.learning_rate));
}

kernels::Optimizer optimizer_of(const TrainingConfig& training) {
  using kernels::Optimizer;
  return training.optimizer == "momentum"  ? Optimizer::momentum
         : training.optimizer == "adagrad" ? Optimizer::adagrad
         : training.optimizer == "adam"    ? Optimizer::adam
                                           : Optimizer::sgd;
}

kernels::UpdateRule update_rule(const TrainingConfig& training, double share, Offset step) {
  kernels::UpdateRule rule;
  rule.optimizer = optimizer_of(training);
  rule.learning_rate = float(learning_rate_at(training, share));
  rule.momentum = float(training.momentum);
  rule.second_moment = float(training.second_moment);
  rule.epsilon = float(training.epsilon);
  rule.weight_decay = float(training.weight_decay);
  rule.clip_gradient = float(training.clip_gradient);
  // Adagrad and Adam bound a row's step by its own past gradients: the loss's curvature says nothing of theirs.
  const bool by_gradient = rule.optimizer == kernels::Optimizer::sgd || rule.optimizer == kernels::Optimizer::momentum;
  rule.curvature_limit = by_gradient ? float(training.curvature_limit) : 0;
  rule.max_row_step = float(training.max_row_step);
  rule.seed = training.seed;
  rule.step = std::uint32_t(step);
  return rule;
}

bool needs_exchange(const Config& config) {
  const std::string& optimizer = config.training.optimizer;
  const bool in_place = optimizer == "sgd" || (optimizer == "adagrad" && is_knowledge_graph_model(config.model.kind));
  return config.run.ranks > 1 || config.exchange.method != "auto" || !in_place || config.training.weight_decay > 0 ||
         config.training.clip_gradient > 0 || config.model.dtype != "fp32" || config.store.hot_rows >= 0 ||
         config.sampler.topology == "partitioned" || !config.start.frozen.empty();
}

}  // namespace gs
