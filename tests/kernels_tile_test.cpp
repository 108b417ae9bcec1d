#include "tests/support/skip_gram_twin.hpp"
#include "tests/support/tile_case.hpp"

namespace gs {
namespace {

constexpr double kTolerance = 2e-5;  // float sums of up to 128 products of values below 1, against double

void expect_near(const twin::Table& got, const twin::Table& start, const twin::Table& gradient, const char* table) {
  for (std::size_t i = 0; i < got.size(); ++i)
    for (std::size_t c = 0; c < got[i].size(); ++c) {
      const double step = got[i][c] - start[i][c], wanted = -gradient[i][c];
      ASSERT_NEAR(step, wanted, kTolerance * (1 + std::abs(wanted))) << table << " row " << i << " column " << c;
    }
}

/// Applies the twin's factors to its gradients; some must bind and some not, or the test says nothing.
void shorten(const kernels::TileBatch& batch, const twin::Table& u, const twin::Table& v, twin::Table& du,
             twin::Table& dv) {
  const auto [centre_factors, context_factors] = twin::shortenings(batch, u, v);
  for (std::size_t i = 0; i < du.size(); ++i) {
    for (double& value : du[i]) value *= centre_factors[i];
    for (double& value : dv[i]) value *= context_factors[i];
  }
  const auto [least, most] = std::minmax_element(context_factors.begin(), context_factors.end());
  EXPECT_LT(*least, 0.9);
  EXPECT_GT(*most, *least);
}

/// Trains one batch of one tile (so that the step is exactly minus the gradient) and holds it against the twin. limit:
/// the curvature limit, 0 for none.
void expect_step_is_the_twins_gradient(TestDevice& on, kernels::TileShape shape, std::uint64_t seed, float limit = 0) {
  shape.tiles_per_walk = 1;
  TileCase c(on, shape, 1, 12, seed);
  const twin::Table u = c.table_of(c.centres.host()), v = c.table_of(c.contexts.host());
  twin::Table du(u.size(), std::vector<double>(u[0].size())), dv = du;
  TestDevice host_device(Backend::cpu);
  TileCase host(host_device, shape, 1, 12, seed);
  Offset pairs = 0;
  const double loss = twin::tile_loss(host.batch, 0, u, v, &du, &dv, &pairs);

  c.batch.learning_rate = host.batch.learning_rate = 1;
  c.batch.curvature_limit = host.batch.curvature_limit = limit;
  if (limit > 0) shorten(host.batch, u, v, du, dv);
  on.ops.train_tiles(c.batch, on.exec);

  expect_near(c.table_of(c.centres.host()), u, du, "centres");
  expect_near(c.table_of(c.contexts.host()), v, dv, "contexts");
  const kernels::TileResult result = c.results.host()[0];
  EXPECT_EQ(Offset(result.pairs), pairs);
  EXPECT_NEAR(result.loss, loss, 1e-4 * loss);
}

class WalkTile : public OnBackends {};

TEST_P(WalkTile, StepsByTheTwinsGradientForEveryDim) {
  TestDevice on(GetParam());
  for (const int dim : {1, 3, 10, 16, 31, 100, 128, 130, 768, 1100, 2048}) {
    SCOPED_TRACE(dim);
    expect_step_is_the_twins_gradient(on, shape_of(12, 1, 3, true, 8, dim), 5);
  }
}

TEST_P(WalkTile, StepsByTheTwinsGradientForEveryShape) {
  TestDevice on(GetParam());
  for (const int length : {2, 3, 7, 40, 64})
    for (const int window : {1, 2, 7, 10, 15, 64})
      for (const int negatives : {1, 5, 32, 33})
        for (const bool shrink : {true, false}) {
          SCOPED_TRACE(cat("length ", length, " window ", window, " negatives ", negatives, " shrink ", shrink));
          expect_step_is_the_twins_gradient(on, shape_of(length, 1, window, shrink, negatives, 20), 9);
        }
}

TEST_P(WalkTile, StepsAreShortenedWhereTheTwinSaysSo) {
  TestDevice on(GetParam());
  for (const int length : {7, 40})
    for (const int dim : {5, 128, 1100}) {
      SCOPED_TRACE(cat("length ", length, " dim ", dim));
      expect_step_is_the_twins_gradient(on, shape_of(length, 1, 4, true, 9, dim), 9, 2);
    }
}

kernels::TileShape edges_of(int length, bool both_ways, int negatives, int dim) {
  kernels::TileShape shape = shape_of(length, 1, 1, false, negatives, dim);
  shape.kind = kernels::TileKind::edges, shape.both_ways = both_ways;
  return shape;
}

TEST_P(WalkTile, OfEdgesStepsByTheTwinsGradient) {
  TestDevice on(GetParam());
  for (const bool both_ways : {false, true})
    for (const int length : {2, 6, 40, 64})
      for (const int dim : {3, 128, 1100}) {
        SCOPED_TRACE(cat("length ", length, " dim ", dim, both_ways ? " both ways" : ""));
        expect_step_is_the_twins_gradient(on, edges_of(length, both_ways, 9, dim), 4);
        if (length == 40) expect_step_is_the_twins_gradient(on, edges_of(length, both_ways, 9, dim), 9, 1);
      }
}

/// What the twin says of a tile whose centres and contexts are rows of one table.
struct OneTable {
  OneTable(kernels::TileBatch batch, const twin::Table& rows) : step(rows.size(), std::vector<double>(rows[0].size())) {
    twin::Table of_contexts = step;
    loss = twin::tile_loss(batch, 0, rows, rows, &step, &of_contexts);
    std::vector<double> mass(rows.size(), 0);
    twin::add_curvatures(batch, 0, rows, rows, mass, mass);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double curvature = double(batch.learning_rate) * mass[i], limit = double(batch.curvature_limit);
      for (std::size_t c = 0; c < rows[i].size(); ++c)
        step[i][c] = (step[i][c] + of_contexts[i][c]) * (limit > 0 && curvature > limit ? limit / curvature : 1);
    }
  }
  twin::Table step;  // of the gradient
  double loss;
};

TEST_P(WalkTile, OfOneTableStepsByTheSumOfBothGradients) {
  TestDevice on(GetParam()), host_device(Backend::cpu);
  for (const float limit : {0.0f, 2.0f})
    for (const int dim : {5, 128, 1100})
      for (const kernels::TileShape& shape : {edges_of(40, true, 9, dim), shape_of(12, 1, 3, true, 8, dim)}) {
        SCOPED_TRACE(cat("dim ", dim, " limit ", limit));
        TileCase c(on, shape, 1, 12, 6), host(host_device, shape, 1, 12, 6);
        const twin::Table rows = c.table_of(c.centres.host());
        for (TileCase* each : {&c, &host})
          each->batch.contexts = each->batch.centres, each->batch.curvature_limit = limit;
        const OneTable expected(host.batch, rows);

        on.ops.train_tiles(c.batch, on.exec);

        expect_near(c.table_of(c.centres.host()), rows, expected.step, "one table");
        EXPECT_NEAR(c.results.host()[0].loss, expected.loss, 1e-4 * expected.loss);
      }
}

TEST_P(WalkTile, CutWalksCountEveryPairOnce) {
  TestDevice on(GetParam()), host_device(Backend::cpu);
  for (const int tiles : {1, 2, 3, 5}) {
    const kernels::TileShape shape = shape_of(41, tiles, 6, true, 4, 8);
    TileCase c(on, shape, 7, 30, 3), host(host_device, shape, 7, 30, 3);
    const twin::Table u = c.table_of(c.centres.host()), v = c.table_of(c.contexts.host());
    c.batch.learning_rate = 0;  // so that every tile sees the same tables

    on.ops.train_tiles(c.batch, on.exec);

    const std::vector<kernels::TileResult> results = c.results.host();
    Offset all_pairs = 0;
    for (std::size_t t = 0; t < results.size(); ++t) {
      Offset pairs = 0;
      const double loss = twin::tile_loss(host.batch, Offset(t), u, v, nullptr, nullptr, &pairs);
      EXPECT_EQ(Offset(results[t].pairs), pairs) << "tile " << t << " of " << tiles;
      EXPECT_NEAR(results[t].loss, loss, 1e-4 * (1 + loss)) << "tile " << t;
      all_pairs += pairs;
    }
    EXPECT_GT(all_pairs, 7 * 41);
  }
}

TEST_P(WalkTile, ManyTilesLeavePaddingAndOtherRowsAlone) {
  TestDevice on(GetParam(), 2);
  TileCase c(on, shape_of(20, 1, 5, true, 6, 18), 50, 40, 21);
  const std::vector<RowId> walks = c.nodes.host(), negatives = c.negatives.host();
  const twin::Table before = c.table_of(c.contexts.host());
  c.batch.learning_rate = 0.01f;

  on.ops.train_tiles(c.batch, on.exec);

  const twin::Table after = c.table_of(c.contexts.host());  // checks the padding
  std::set<RowId> used(negatives.begin(), negatives.end());
  used.insert(walks.begin(), walks.end());
  for (std::size_t row = 0; row < after.size(); ++row)
    if (!used.count(RowId(row))) {
      EXPECT_EQ(after[row], before[row]);
    }
  (void)c.negatives.host(), (void)c.results.host();
}

TEST_P(WalkTile, ANanInTheTableReachesTheLoss) {
  TestDevice on(GetParam());
  const kernels::TileShape shape = shape_of(6, 1, 2, false, 4, 16);
  TileCase clean(on, shape, 1, 12, 5);
  std::vector<float> poisoned = clean.centres.host();
  for (float& value : poisoned) value = std::nanf("");
  Values<float> centres(on, poisoned);
  clean.batch.centres = clean.rows_of(centres);

  on.ops.train_tiles(clean.batch, on.exec);

  EXPECT_TRUE(std::isnan(clean.results.host()[0].loss));
}

TEST_P(WalkTile, SaturatedScoresStayFinite) {
  TestDevice on(GetParam());
  const kernels::TileShape shape = shape_of(6, 1, 2, false, 4, 16);
  TileCase c(on, shape, 1, 12, 5);
  std::vector<float> huge = c.centres.host();
  for (float& value : huge) value *= 1e6f;
  Values<float> centres(on, huge);
  c.batch.centres = c.rows_of(centres);

  on.ops.train_tiles(c.batch, on.exec);

  for (const float value : centres.host()) ASSERT_TRUE(std::isfinite(value));
  EXPECT_TRUE(std::isfinite(c.results.host()[0].loss));
}

TEST_P(WalkTile, PairAtATimeHasTheSamePairsAndAboutTheSameLoss) {
  TestDevice on(GetParam());
  TileCase tiles(on, shape_of(20, 1, 5, true, 64, 24), 60, 4000, 31),
      pairs(on, shape_of(20, 1, 5, true, 64, 24), 60, 4000, 31);
  std::vector<kernels::AliasSlot> uniform(4000);
  for (std::size_t i = 0; i < uniform.size(); ++i) uniform[i] = {~0u, std::uint32_t(i)};
  Values<kernels::AliasSlot> table(on, uniform);
  tiles.batch.learning_rate = pairs.batch.learning_rate = 0;

  on.ops.train_tiles(tiles.batch, on.exec);
  on.ops.train_pairs(pairs.batch, table.span(), on.exec);

  const auto a = tiles.results.host(), b = pairs.results.host();
  double loss_a = 0, loss_b = 0;
  for (std::size_t t = 0; t < a.size(); ++t) {
    EXPECT_EQ(a[t].pairs, b[t].pairs);
    loss_a += double(a[t].loss), loss_b += double(b[t].loss);
  }
  EXPECT_NEAR(loss_a / loss_b, 1, 0.02);  // the same expectation, other negatives
}

/// Where every negative is one row that the walk lacks, a tile that shares it has the pairs' gradient. The rate is
/// small, so that the steps of a pair hardly move the scores of the next.
TEST_P(WalkTile, PairAtATimeStepsByTheTwinsGradient) {
  constexpr float kRate = 1e-4f;
  constexpr double kRateTolerance = 0.03;  // the steps before a pair move its scores, and floats round at 1e-8
  for (const int dim : {3, 16, 128, 300})
    for (const int negatives : {1, 4, 7}) {
      SCOPED_TRACE(cat("dim ", dim, " negatives ", negatives));
      kernels::TileShape shape = shape_of(12, 1, 3, true, 1, dim);
      shape.negatives = float(negatives);
      TestDevice on(GetParam()), host_device(Backend::cpu);
      TileCase c(on, shape, 1, 12, 5), host(host_device, shape, 1, 12, 5);
      const std::vector<RowId> walk = c.nodes.host();
      RowId absent = 0;
      while (std::find(walk.begin(), walk.end(), absent) != walk.end()) ++absent;
      host.batch.negatives = Span<const RowId>(&absent, 1);
      Values<kernels::AliasSlot> table(on, 12, {0, absent});
      const twin::Table u = c.table_of(c.centres.host()), v = c.table_of(c.contexts.host());
      twin::Table du(u.size(), std::vector<double>(u[0].size())), dv = du;
      const double loss = twin::tile_loss(host.batch, 0, u, v, &du, &dv);
      c.batch.learning_rate = kRate;

      on.ops.train_pairs(c.batch, table.span(), on.exec);

      const twin::Table stepped_u = c.table_of(c.centres.host()), stepped_v = c.table_of(c.contexts.host());
      for (std::size_t i = 0; i < u.size(); ++i)
        for (std::size_t k = 0; k < u[i].size(); ++k) {
          ASSERT_NEAR((stepped_u[i][k] - u[i][k]) / kRate, -du[i][k], kRateTolerance * (1 + std::abs(du[i][k])));
          ASSERT_NEAR((stepped_v[i][k] - v[i][k]) / kRate, -dv[i][k], kRateTolerance * (1 + std::abs(dv[i][k])));
        }
      EXPECT_NEAR(c.results.host()[0].loss, loss, kRateTolerance * loss);
    }
}

TEST_P(WalkTile, TotalsAreTheSumsOfResults) {
  TestDevice on(GetParam());
  std::vector<kernels::TileResult> results;
  for (int i = 0; i < 1000; ++i) results.push_back({float(i) / 8, std::uint32_t(i)});
  Values<kernels::TileResult> on_device(on, results);
  Values<kernels::TrainTotals> totals(on, 1, {100, 1});

  on.ops.add_totals(on_device.span(), totals.span(), on.exec);

  EXPECT_EQ(totals.host()[0].loss, 100 + 999.0 * 1000 / 16);
  EXPECT_EQ(totals.host()[0].pairs, 1u + 999 * 1000 / 2);
}

GS_ON_ALL_BACKENDS(WalkTile);

TEST(SkipGramTwin, ItsGradientIsTheFiniteDifferenceOfItsLoss) {
  TestDevice on(Backend::cpu);
  TileCase c(on, shape_of(8, 1, 3, true, 6, 5), 1, 12, 17);
  twin::Table u = c.table_of(c.centres.host()), v = c.table_of(c.contexts.host());
  twin::Table du(u.size(), std::vector<double>(u[0].size())), dv = du;
  twin::tile_loss(c.batch, 0, u, v, &du, &dv);

  constexpr double kStep = 1e-5;
  for (auto* side : {&u, &v}) {
    const twin::Table& gradient = side == &u ? du : dv;
    for (std::size_t i = 0; i < side->size(); ++i)
      for (std::size_t k = 0; k < (*side)[i].size(); ++k) {
        double& value = (*side)[i][k];
        const double saved = value;
        value = saved + kStep;
        const double above = twin::tile_loss(c.batch, 0, u, v);
        value = saved - kStep;
        const double below_it = twin::tile_loss(c.batch, 0, u, v);
        value = saved;
        EXPECT_NEAR((above - below_it) / (2 * kStep), gradient[i][k], 1e-6);
      }
  }
}

}  // namespace
}  // namespace gs
