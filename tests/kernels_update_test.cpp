// One optimizer step a row, against twins in double: every optimizer, type of row, home and bound.
#include <cmath>

#include "tests/support/stored_table.hpp"

namespace gs {
namespace {

using kernels::Optimizer;
using kernels::RowType;
using kernels::UpdateRule;
using kernels::UpdateTotals;

constexpr Optimizer kOptimizers[] = {Optimizer::sgd, Optimizer::momentum, Optimizer::adagrad, Optimizer::adam};

/// Rows and their optimizer's state, step by step as the definitions say, in double.
struct Twin {
  UpdateRule rule;
  int dim = 0;
  std::vector<double> table, velocity, second, steps;
  UpdateTotals totals{};

  Twin(const UpdateRule& of, int columns, std::vector<float> start)
      : rule(of),
        dim(columns),
        table(start.begin(), start.end()),
        velocity(table.size()),
        second(table.size()),
        steps(table.size() / std::size_t(columns)) {}

  static double norm(const std::vector<double>& values) {
    double squared = 0;
    for (double value : values) squared += value * value;
    return std::sqrt(squared);
  }
  static bool bound(std::vector<double>& values, double limit) {
    const double shrink = limit > 0 ? limit / norm(values) : 1;
    if (!(shrink < 1)) return false;
    for (double& value : values) value *= shrink;
    return true;
  }

  void update(std::size_t row, const float* given, double curvature) {
    std::vector<double> gradient(given, given + dim);
    if (norm(gradient) == 0 && curvature == 0) return;
    totals.squared_gradient += norm(gradient) * norm(gradient), totals.gradient_norms += norm(gradient);
    totals.largest_norm = std::max(totals.largest_norm, norm(gradient));
    totals.rows += 1;
    bool clipped = bound(gradient, rule.clip_gradient);
    const double reach = rule.learning_rate * curvature;
    if (rule.curvature_limit > 0 && reach > rule.curvature_limit)
      for (double& value : gradient) value *= rule.curvature_limit / reach;
    steps[row] += 1;
    std::vector<double> step(gradient.size());
    double mean_square = 0;
    for (double g : gradient) mean_square += g * g / dim;
    if (rule.optimizer == Optimizer::adagrad) second[row] += mean_square;
    for (std::size_t c = 0; c < step.size(); ++c) {
      const double g = gradient[c];
      double &moment = velocity[row * step.size() + c], &square = second[row * step.size() + c];
      switch (rule.optimizer) {
        case Optimizer::sgd:
          step[c] = rule.learning_rate * g;
          break;
        case Optimizer::momentum:
          moment = rule.momentum * moment + g;
          step[c] = rule.learning_rate * moment;
          break;
        case Optimizer::adagrad:
          step[c] = rule.learning_rate * g / (std::sqrt(second[row]) + rule.epsilon);
          break;
        case Optimizer::adam:
          moment = rule.momentum * moment + (1 - double(rule.momentum)) * g;
          square = rule.second_moment * square + (1 - double(rule.second_moment)) * g * g;
          step[c] = rule.learning_rate * moment / (1 - std::pow(double(rule.momentum), steps[row])) /
                    (std::sqrt(square / (1 - std::pow(double(rule.second_moment), steps[row]))) + rule.epsilon);
      }
      step[c] += double(rule.learning_rate) * rule.weight_decay * table[row * step.size() + c];
    }
    clipped |= bound(step, rule.max_row_step);
    totals.clipped += clipped;
    for (std::size_t c = 0; c < step.size(); ++c) table[row * step.size() + c] -= step[c];
  }
};

/// A table with state on a device, that takes steps.
class Updated {
 public:
  Updated(Backend backend, int threads, RowType type, int dim, Offset hot_rows, const std::vector<float>& start,
          Optimizer optimizer)
      : on_(backend, threads),
        dim_(dim),
        table_(on_, type, dim, hot_rows, start),
        state_(on_, RowType::fp32, std::max(1, kernels::state_columns(optimizer, dim)), hot_rows,
               std::vector<float>(start.size() / std::size_t(dim) *
                                  std::size_t(std::max(1, kernels::state_columns(optimizer, dim))))) {}

  UpdateTotals update(UpdateRule rule, const std::vector<RowId>& rows, const std::vector<float>& gradients,
                      const std::vector<float>& curvature, const std::vector<std::uint32_t>& frozen = {}) {
    const Values<RowId> chosen(on_, rows);
    const Values<float> curvatures(on_, curvature);
    const Values<UpdateTotals> totals(on_, 1, UpdateTotals{100, 10, 1});
    const Values<std::uint32_t> bits(on_, frozen);
    rule.frozen = bits.span();
    const FloatRows in(on_, dim_, gradients);
    on_.ops.update_rows(table_.view(), state_.view(), chosen.span(), in.view(), curvatures.span(), rule, totals.span(),
                        on_.exec);
    UpdateTotals sums = totals.host()[0];
    sums.squared_gradient -= 100, sums.rows -= 10, sums.clipped -= 1;
    return sums;
  }
  std::vector<float> table() const { return table_.host(); }
  std::vector<float> state() const { return state_.host(); }

 private:
  TestDevice on_;
  int dim_;
  StoredTable table_, state_;
};

/// From the number that `type` stores for x to the next larger in size; of float32, far above its roundings here.
double gap_at(RowType type, double x) {
  if (type == RowType::fp32) return 4e-6 * std::max(1.0, std::abs(x));
  const int exponent = std::max(std::ilogb(x), type == RowType::fp16 ? -14 : -126);
  return std::ldexp(1.0, exponent - (type == RowType::fp16 ? 10 : 7));
}

class Update : public OnBackends {
 protected:
  static constexpr Offset kRows = 11;

  static UpdateRule rule_of(Optimizer optimizer, float rate = 0.05f) {
    UpdateRule rule;
    rule.optimizer = optimizer, rule.learning_rate = rate, rule.epsilon = 1e-4f, rule.seed = 5;
    return rule;
  }

  /// Some of the rows in any order, other ones each step.
  static std::vector<RowId> rows_of_step(std::uint32_t step) {
    std::vector<RowId> rows;
    for (std::uint64_t i = 0; i < 8; ++i) rows.push_back(RowId(shuffled(i, kRows, step)));
    return rows;
  }

  /// Takes steps on the backend and in the twin; both start each of them from the rows as the backend stores them.
  static void expect_twin(Backend backend, const UpdateRule& of, RowType type, int dim, Offset hot_rows) {
    SCOPED_TRACE(testing::Message() << "optimizer " << int(of.optimizer) << ", type " << int(type) << ", dim " << dim
                                    << ", hot rows " << hot_rows);
    const std::vector<float> start = normal_values(kRows * dim, 40);
    Updated updated(backend, 2, type, dim, hot_rows, start, of.optimizer);
    Twin twin(of, dim, updated.table());
    UpdateRule rule = of;
    for (rule.step = 0; rule.step < 4; ++rule.step) {
      const std::vector<RowId> rows = rows_of_step(rule.step);
      const std::vector<float> gradients = normal_values(Offset(rows.size()) * dim, 41 + rule.step, 0.3f);
      std::vector<float> curvature;
      for (RowId row : rows) curvature.push_back(30 * float(row));
      twin.totals = {};

      const UpdateTotals totals = updated.update(rule, rows, gradients, curvature);

      for (std::size_t i = 0; i < rows.size(); ++i)
        twin.update(rows[i], &gradients[i * std::size_t(dim)], curvature[i]);
      const std::vector<float> got = updated.table();
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double gap = gap_at(type, twin.table[i]), slack = 4e-6 * std::max(1.0, std::abs(twin.table[i]));
        ASSERT_NEAR(got[i], twin.table[i], gap + slack) << "step " << rule.step << ", value " << i;
        if (type != RowType::fp32) twin.table[i] = got[i];
      }
      ASSERT_NEAR(totals.squared_gradient, twin.totals.squared_gradient, 1e-5 * twin.totals.squared_gradient);
      ASSERT_NEAR(totals.gradient_norms, twin.totals.gradient_norms, 1e-5 * twin.totals.gradient_norms);
      ASSERT_NEAR(totals.largest_norm, twin.totals.largest_norm, 1e-5 * twin.totals.largest_norm);
      ASSERT_EQ(totals.rows, twin.totals.rows);
      ASSERT_EQ(totals.clipped, twin.totals.clipped);
    }
  }
};

TEST_P(Update, StepsAsTheOptimizersAreDefined) {
  for (const Optimizer optimizer : kOptimizers)
    for (const RowType type : kRowTypes)
      for (const int dim : kTestDims)
        expect_twin(GetParam(), rule_of(optimizer), type, dim,
                    std::array<Offset, 3>{0, 4, kRows}[std::size_t(dim) % 3]);
}

TEST_P(Update, EveryBoundHoldsAloneAndAllTogether) {
  constexpr int kDim = 20;
  for (const Optimizer optimizer : kOptimizers) {
    UpdateRule all = rule_of(optimizer);
    const UpdateRule plain = all;
    all.clip_gradient = 1.3f, all.curvature_limit = 5, all.max_row_step = 0.06f, all.weight_decay = 0.5f;
    for (int which = 0; which < 5; ++which) {
      SCOPED_TRACE(testing::Message() << "bound " << which);
      UpdateRule rule = which == 4 ? all : plain;
      if (which == 0) rule.clip_gradient = all.clip_gradient;
      if (which == 1) rule.curvature_limit = all.curvature_limit;
      if (which == 2) rule.max_row_step = all.max_row_step;
      if (which == 3) rule.weight_decay = all.weight_decay;
      expect_twin(GetParam(), rule, RowType::fp32, kDim, 4);
      expect_twin(GetParam(), rule, RowType::fp16, kDim, 4);
    }
  }
}

TEST_P(Update, StepsAreShortenedAsLongAsTheyAreAllowed) {
  constexpr int kDim = 24;
  UpdateRule rule = rule_of(Optimizer::sgd, 1);
  rule.max_row_step = 0.2f;
  const std::vector<float> zeros(2 * kDim);
  std::vector<float> gradients(2 * kDim, 0.01f);
  std::fill(gradients.begin() + kDim, gradients.end(), 7.0f);
  Updated updated(GetParam(), 1, RowType::fp32, kDim, 1, zeros, rule.optimizer);

  const UpdateTotals totals = updated.update(rule, {0, 1}, gradients, {0, 0});

  const std::vector<float> got = updated.table();
  EXPECT_NEAR(got[0], -0.01, 1e-9);
  EXPECT_NEAR(got[kDim], -0.2 / std::sqrt(double(kDim)), 1e-8);
  EXPECT_EQ(totals.clipped, 1u);
}

TEST_P(Update, ARowWithoutGradientIsLeftAsItIs) {
  constexpr int kDim = 9;
  const std::vector<float> start = normal_values(kRows * kDim, 42);
  for (const Optimizer optimizer : kOptimizers)
    for (const RowType type : kRowTypes) {
      UpdateRule rule = rule_of(optimizer);
      rule.weight_decay = 0.5f;
      Updated updated(GetParam(), 1, type, kDim, 4, start, optimizer);
      const std::vector<float> ones(2 * kDim, 1.0f), nothing(3 * kDim);
      updated.update(rule, {1, 6}, ones, {0, 0});
      const std::vector<float> table = updated.table(), state = updated.state();

      const UpdateTotals none = updated.update(rule, {1, 6, 3}, nothing, {0, 0, 0});

      EXPECT_EQ(updated.table(), table);
      EXPECT_EQ(updated.state(), state);
      EXPECT_EQ(none.rows, 0u);
      EXPECT_EQ(updated.update(rule, {1, 6, 3}, nothing, {0, 2, 0}).rows, 1u) << "curvature alone is a step";
      EXPECT_NE(updated.table(), table);
    }
}

TEST_P(Update, FrozenRowsStayAsTheyAreAndOthersStepAsEver) {
  constexpr int kDim = 20;
  constexpr Offset kMany = 70;  // three words of bits, the last one in part
  const std::vector<float> start = normal_values(kMany * kDim, 49);
  std::vector<std::uint32_t> frozen(std::size_t(kernels::bit_words(kMany)));
  std::vector<RowId> rows;
  for (const std::uint64_t row : {0, 5, 31, 32, 63, 64, 69}) frozen[row / 32] |= 1u << row % 32;
  for (std::uint64_t i = 0; i < kMany; ++i) rows.push_back(RowId(shuffled(i, kMany, 3)));
  const auto is_frozen = [&](std::size_t row) { return (frozen[row / 32] >> row % 32 & 1) != 0; };
  for (const Optimizer optimizer : kOptimizers)
    for (const RowType type : kRowTypes) {
      SCOPED_TRACE(testing::Message() << "optimizer " << int(optimizer) << ", type " << int(type));
      UpdateRule rule = rule_of(optimizer);
      rule.weight_decay = 0.5f;
      Updated plain(GetParam(), 2, type, kDim, 40, start, optimizer),
          some(GetParam(), 2, type, kDim, 40, start, optimizer);
      const std::vector<float> curvature(kMany, 1.0f);
      for (Updated* each : {&plain, &some}) each->update(rule, rows, normal_values(kMany * kDim, 50), curvature);
      const std::vector<float> table = some.table(), state = some.state();
      std::vector<float> gradients = normal_values(kMany * kDim, 51);
      double squared = 0;
      for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t c = 0; c < kDim; ++c) {
          float& gradient = gradients[i * kDim + c];
          if (!is_frozen(rows[i])) squared += double(gradient) * gradient;
          if (rows[i] == 31) gradient = std::numeric_limits<float>::quiet_NaN();
        }
      rule.step = 1;

      plain.update(rule, rows, gradients, curvature);
      const UpdateTotals totals = some.update(rule, rows, gradients, curvature, frozen);

      const auto expect_rows = [&](const std::vector<float>& got, const std::vector<float>& before,
                                   const std::vector<float>& stepped) {
        const std::size_t columns = got.size() / kMany;
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_EQ(got[i], (is_frozen(i / columns) ? before : stepped)[i]) << "row " << i / columns;
      };
      expect_rows(some.table(), table, plain.table());
      expect_rows(some.state(), state, plain.state());
      EXPECT_EQ(totals.rows, std::uint64_t(kMany) - 7);
      EXPECT_NEAR(totals.squared_gradient, squared, 1e-5 * squared);
    }
}

TEST_P(Update, AdamCountsARowsOwnSteps) {
  constexpr int kDim = 5;
  const UpdateRule rule = rule_of(Optimizer::adam);
  Updated updated(GetParam(), 1, RowType::fp32, kDim, 2, std::vector<float>(3 * kDim), rule.optimizer);
  const std::vector<float> one(kDim, 2.0f);

  for (int step = 0; step < 3; ++step) updated.update(rule, {0}, one, {0});
  updated.update(rule, {2}, one, {0});

  const std::vector<float> state = updated.state(), table = updated.table();
  EXPECT_EQ(state[2 * kDim], 3);
  EXPECT_EQ(state[1 * (2 * kDim + 1) + 2 * kDim], 0);
  EXPECT_EQ(state[2 * (2 * kDim + 1) + 2 * kDim], 1);
  EXPECT_NEAR(table[2 * kDim], -rule.learning_rate, 1e-5) << "a first step is as long as the rate, however late it is";
  EXPECT_NEAR(table[0], -3 * rule.learning_rate, 1e-5);
}

TEST_P(Update, RandomRoundingIsRightInTheMean) {
  constexpr int kDim = 128, kSteps = 200;
  for (const RowType type : {RowType::fp16, RowType::bf16}) {
    const std::vector<float> start = normal_values(kDim, 43);
    const std::vector<float> gradient = normal_values(kDim, 44, 0.002f);
    double deviations = 0, variance = 0;
    int steps = 0;
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      UpdateRule rule = rule_of(Optimizer::sgd, 1);
      rule.step = step;
      Updated updated(GetParam(), 1, type, kDim, 1, start, rule.optimizer);

      updated.update(rule, {0}, gradient, {0});

      const std::vector<float> got = updated.table();
      for (std::size_t c = 0; c < kDim; ++c) {
        const double x = double(as_stored(type, start[c])) - double(gradient[c]), gap = gap_at(type, x);
        const double share = x / gap - std::floor(x / gap);
        ASSERT_LT(std::abs(got[c] - x), gap) << "column " << c;
        deviations += (got[c] - x) / gap, variance += share * (1 - share), ++steps;
      }
    }
    EXPECT_LT(std::abs(deviations), 4 * std::sqrt(variance)) << deviations << " of " << steps << " steps too many";
    EXPECT_GT(variance, 0.05 * steps) << "nothing to be rounded";
  }
}

TEST_P(Update, RoundingIsKeyedByTheGlobalRowAndNotByWhereItLies) {
  constexpr int kDim = 33;
  const std::vector<float> start = normal_values(kRows * kDim, 45), gradients = normal_values(kRows * kDim, 46, 0.01f);
  UpdateRule rule = rule_of(Optimizer::sgd);
  rule.step = 3;
  std::vector<RowId> all, odd = {0, 1, 2, 3, 4};  // global rows 1, 3, 5, 7, 9
  for (RowId row = 0; row < kRows; ++row) all.push_back(row);
  const auto of_odd_rows = [&](const std::vector<float>& values) {
    std::vector<float> chosen;
    for (RowId local : odd)
      chosen.insert(chosen.end(), values.begin() + (2 * local + 1) * kDim, values.begin() + (2 * local + 2) * kDim);
    return chosen;
  };
  for (const RowType type : {RowType::fp16, RowType::bf16}) {
    Updated whole(GetParam(), 2, type, kDim, 4, start, rule.optimizer);
    Updated shard(GetParam(), 2, type, kDim, 5, of_odd_rows(start), rule.optimizer);
    UpdateRule of_shard = rule;
    of_shard.rows = {1, 2, {}};

    whole.update(rule, all, gradients, std::vector<float>(kRows));
    shard.update(of_shard, odd, of_odd_rows(gradients), std::vector<float>(odd.size()));

    EXPECT_EQ(shard.table(), of_odd_rows(whole.table()));
    UpdateRule of_other = of_shard;
    of_other.rows = {0, 2, {}};
    Updated other(GetParam(), 2, type, kDim, 5, of_odd_rows(start), rule.optimizer);
    other.update(of_other, odd, of_odd_rows(gradients), std::vector<float>(odd.size()));
    EXPECT_NE(other.table(), shard.table());
  }
}

TEST_P(Update, RowsDoNotDependOnThreadsOrBackend) {
  constexpr int kDim = 100;
  constexpr Offset kMany = 700;
  const std::vector<float> start = normal_values(kMany * kDim, 47), gradients = normal_values(kMany * kDim, 48, 0.3f);
  std::vector<RowId> rows;
  for (std::uint64_t i = 0; i < kMany; ++i) rows.push_back(RowId(shuffled(i, kMany, 9)));
  for (const RowType type : kRowTypes)
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum}) {
      UpdateRule rule = rule_of(optimizer);
      rule.max_row_step = 0.1f;
      Updated one(Backend::cpu, 1, type, kDim, 300, start, optimizer);
      Updated other(GetParam(), 3, type, kDim, 300, start, optimizer);

      const UpdateTotals expected = one.update(rule, rows, gradients, std::vector<float>(kMany));
      const UpdateTotals totals = other.update(rule, rows, gradients, std::vector<float>(kMany));

      EXPECT_EQ(other.table(), one.table());
      EXPECT_EQ(other.state(), one.state());
      EXPECT_EQ(totals.rows, std::uint64_t(kMany));
      EXPECT_EQ(totals.clipped, expected.clipped);
      EXPECT_NEAR(totals.squared_gradient, expected.squared_gradient, 1e-9 * expected.squared_gradient);
    }
}

TEST_P(Update, WhatIsNotFiniteIsSeenInTheRowAndTheTotals) {
  constexpr int kDim = 20;
  for (const Optimizer optimizer : kOptimizers)
    for (const RowType type : kRowTypes)
      for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        UpdateRule rule = rule_of(optimizer);
        rule.clip_gradient = 1, rule.max_row_step = 0.2f;
        std::vector<float> gradient(kDim, 0.5f);
        gradient[17] = bad;
        Updated updated(GetParam(), 1, type, kDim, 1, std::vector<float>(kDim), optimizer);

        const UpdateTotals totals = updated.update(rule, {0}, gradient, {1});

        EXPECT_FALSE(std::isfinite(updated.table()[17])) << "optimizer " << int(optimizer) << ", " << bad;
        EXPECT_FALSE(std::isfinite(totals.squared_gradient));
      }
}

TEST_P(Update, NoRowsIsFineAndWrongShapesAreRefused) {
  Updated updated(GetParam(), 1, RowType::fp32, 6, 1, std::vector<float>(12), Optimizer::momentum);

  EXPECT_EQ(updated.update(rule_of(Optimizer::momentum), {}, {}, {}).rows, 0u);
  EXPECT_THROW(updated.update(rule_of(Optimizer::adam), {0}, std::vector<float>(6), {0}), Error) << "state too short";
  EXPECT_THROW(updated.update(rule_of(Optimizer::sgd), {0}, std::vector<float>(6), {0, 1}), Error) << "curvatures";
}

GS_ON_ALL_BACKENDS(Update);

}  // namespace
}  // namespace gs
