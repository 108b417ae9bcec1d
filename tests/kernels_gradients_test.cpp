#include "tests/support/tile_case.hpp"

namespace gs {
namespace {

constexpr double kTolerance = 3e-5;  // float sums of some hundred products of values below 1, against double

/// A batch whose gradients are summed: into rows and curvatures that are not zero, as after another batch.
struct GradientCase : TileCase {
  static constexpr float kGradient = 0.25f, kCurvature = 0.5f;  // what is there before

  GradientCase(TestDevice& on, kernels::TileShape with, Offset walks, Offset rows, std::uint64_t seed)
      : TileCase(on, with, walks, rows, seed),
        centre_gradients(on, before()),
        context_gradients(on, before()),
        centre_curvature(on, rows, kCurvature),
        context_curvature(on, rows, kCurvature) {
    batch.gradients = {rows_of(centre_gradients), rows_of(context_gradients), centre_curvature.span(),
                       context_curvature.span()};
    batch.learning_rate = 0.3f, batch.curvature_limit = 1e-3f;  // of training in place: must not matter
  }

  std::vector<float> before() const {
    std::vector<float> values(std::size_t(row_count * padded_stride(shape.dim)), 0);
    for (Offset i = 0; i < row_count; ++i)
      std::fill_n(values.begin() + i * padded_stride(shape.dim), shape.dim, kGradient);
    return values;
  }

  Values<float> centre_gradients, context_gradients, centre_curvature, context_curvature;
};

/// What the twin adds over all tiles of a batch in host memory.
struct TwinSums {
  TwinSums(const kernels::TileBatch& batch, const twin::Table& u, const twin::Table& v)
      : du(u.size(), std::vector<double>(u[0].size())), dv(du), cu(u.size()), cv(u.size()) {
    for (Offset tile = 0; tile < batch.results.size; ++tile) {
      pairs.push_back(0);
      losses.push_back(twin::tile_loss(batch, tile, u, v, &du, &dv, &pairs.back()));
      twin::add_curvatures(batch, tile, u, v, cu, cv);
    }
  }
  twin::Table du, dv;
  std::vector<double> cu, cv, losses;
  std::vector<Offset> pairs;
};

void expect_added(const twin::Table& got, const twin::Table& wanted, const char* table) {
  for (std::size_t i = 0; i < got.size(); ++i)
    for (std::size_t c = 0; c < got[i].size(); ++c)
      ASSERT_NEAR(got[i][c] - double(GradientCase::kGradient), wanted[i][c], kTolerance * (1 + std::abs(wanted[i][c])))
          << table << " row " << i << " column " << c;
}

void expect_added(const std::vector<float>& got, const std::vector<double>& wanted, const char* table) {
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(double(got[i] - GradientCase::kCurvature), wanted[i], kTolerance * (1 + wanted[i]))
        << table << " row " << i;
}

/// Few rows: walks return to a node, and negatives are centres and contexts.
void expect_the_twins_sums(TestDevice& on, const kernels::TileShape& shape, Offset walks = 5, Offset rows = 12) {
  TestDevice host_device(Backend::cpu);
  GradientCase c(on, shape, walks, rows, 5), host(host_device, shape, walks, rows, 5);
  const std::vector<float> centres = c.centres.host(), contexts = c.contexts.host();
  const TwinSums sums(host.batch, c.table_of(centres), c.table_of(contexts));

  on.ops.train_tiles(c.batch, on.exec);

  expect_added(c.table_of(c.centre_gradients.host()), sums.du, "centres");
  expect_added(c.table_of(c.context_gradients.host()), sums.dv, "contexts");
  expect_added(c.centre_curvature.host(), sums.cu, "centre curvature");
  expect_added(c.context_curvature.host(), sums.cv, "context curvature");
  EXPECT_EQ(c.centres.host(), centres) << "a table was written";
  EXPECT_EQ(c.contexts.host(), contexts) << "a table was written";
  const std::vector<kernels::TileResult> results = c.results.host();
  for (std::size_t t = 0; t < results.size(); ++t) {
    EXPECT_EQ(Offset(results[t].pairs), sums.pairs[t]);
    EXPECT_NEAR(results[t].loss, sums.losses[t], 1e-4 * (1 + sums.losses[t]));
  }
}

class TileGradients : public OnBackends {};

TEST_P(TileGradients, AreTheTwinsForEveryDim) {
  TestDevice on(GetParam());
  for (const int dim : {1, 7, 16, 100, 128, 500}) {
    SCOPED_TRACE(dim);
    expect_the_twins_sums(on, shape_of(12, 1, 3, true, 8, dim));
  }
}

TEST_P(TileGradients, AreTheTwinsForEveryShape) {
  TestDevice on(GetParam());
  for (const int length : {2, 3, 7, 40})
    for (const int tiles : {1, 2, 3})
      for (const int window : {1, 4, 10})
        for (const int negatives : {1, 5, 32})
          for (const bool shrink : {true, false}) {
            SCOPED_TRACE(cat("length ", length, " tiles ", tiles, " window ", window, " negatives ", negatives,
                             " shrink ", shrink));
            expect_the_twins_sums(on, shape_of(length, tiles, window, shrink, negatives, 20));
          }
}

TEST_P(TileGradients, AreTheFiniteDifferencesOfTheLoss) {
  TestDevice on(GetParam()), host_device(Backend::cpu);
  const kernels::TileShape shape = shape_of(9, 2, 3, true, 6, 5);
  GradientCase c(on, shape, 3, 10, 17), host(host_device, shape, 3, 10, 17);
  twin::Table u = c.table_of(c.centres.host()), v = c.table_of(c.contexts.host());
  const auto loss = [&] {
    double sum = 0;
    for (Offset tile = 0; tile < host.batch.results.size; ++tile) sum += twin::tile_loss(host.batch, tile, u, v);
    return sum;
  };

  on.ops.train_tiles(c.batch, on.exec);

  constexpr double kStep = 1e-4;
  const double here = loss();
  for (auto* side : {&u, &v}) {
    const twin::Table gradient = c.table_of((side == &u ? c.centre_gradients : c.context_gradients).host());
    const std::vector<float> curvature = (side == &u ? c.centre_curvature : c.context_curvature).host();
    for (std::size_t i = 0; i < side->size(); ++i)
      for (std::size_t k = 0; k < (*side)[i].size(); ++k) {
        double& value = (*side)[i][k];
        const double saved = value;
        value = saved + kStep;
        const double above = loss();
        value = saved - kStep;
        const double below_it = loss();
        value = saved;
        EXPECT_NEAR(gradient[i][k] - double(GradientCase::kGradient), (above - below_it) / (2 * kStep), kTolerance);
        EXPECT_LE((above - 2 * here + below_it) / (kStep * kStep),
                  double(curvature[i] - GradientCase::kCurvature) + 1e-5)
            << "the curvature is no bound";
      }
  }
}

TEST_P(TileGradients, TimesTheLearningRateAreTheStepInPlace) {
  TestDevice on(GetParam());
  const kernels::TileShape shape = shape_of(20, 1, 5, true, 9, 33);
  GradientCase summed(on, shape, 1, 12, 7);
  TileCase in_place(on, shape, 1, 12, 7);
  const twin::Table start = in_place.table_of(in_place.contexts.host());
  in_place.batch.learning_rate = 0.125f;

  on.ops.train_tiles(summed.batch, on.exec);
  on.ops.train_tiles(in_place.batch, on.exec);

  const twin::Table gradient = summed.table_of(summed.context_gradients.host());
  const twin::Table stepped = in_place.table_of(in_place.contexts.host());
  for (std::size_t i = 0; i < start.size(); ++i)
    for (std::size_t c = 0; c < start[i].size(); ++c)
      ASSERT_NEAR(stepped[i][c], start[i][c] - 0.125 * (gradient[i][c] - double(GradientCase::kGradient)), 1e-6);
}

TEST_P(TileGradients, OfARowThatNoTileHoldsStayAsTheyAre) {
  TestDevice on(GetParam());
  GradientCase c(on, shape_of(6, 1, 2, true, 3, 18), 4, 200, 21);
  const std::vector<RowId> walks = c.nodes.host(), negatives = c.negatives.host();
  std::set<RowId> used(walks.begin(), walks.end());
  used.insert(negatives.begin(), negatives.end());

  on.ops.train_tiles(c.batch, on.exec);

  const twin::Table du = c.table_of(c.centre_gradients.host()), dv = c.table_of(c.context_gradients.host());
  const std::vector<float> cu = c.centre_curvature.host(), cv = c.context_curvature.host();
  for (RowId row = 0; row < 200; ++row)
    if (!used.count(row)) {
      EXPECT_EQ(du[row], std::vector<double>(18, double(GradientCase::kGradient)));
      EXPECT_EQ(dv[row], std::vector<double>(18, double(GradientCase::kGradient)));
      EXPECT_EQ(cu[row], GradientCase::kCurvature);
      EXPECT_EQ(cv[row], GradientCase::kCurvature);
    }
}

TEST_P(TileGradients, OfAnotherShapeThanTheTablesAreRefused) {
  TestDevice on(GetParam());
  GradientCase c(on, shape_of(6, 1, 2, true, 3, 18), 2, 12, 21);
  kernels::TileBatch fewer_rows = c.batch, no_curvature = c.batch;
  fewer_rows.gradients.contexts.count = 11;
  no_curvature.gradients.centre_curvature = {};

  EXPECT_THROW(on.ops.train_tiles(fewer_rows, on.exec), Error);
  EXPECT_THROW(on.ops.train_tiles(no_curvature, on.exec), Error);
}

TEST_P(TileGradients, OfPairsAtATimeAreRefused) {
  TestDevice on(GetParam());
  GradientCase c(on, shape_of(6, 1, 2, true, 3, 18), 2, 12, 21);
  Values<kernels::AliasSlot> table(on, 12, {0, 3});

  EXPECT_THROW(on.ops.train_pairs(c.batch, table.span(), on.exec), Error);
}

GS_ON_ALL_BACKENDS(TileGradients);

// -------------------------------------------------------------------------------------------------------- chosen walks

class ChosenWalks : public OnBackends {};

/// The walk's number decides the windows; pairs tell them apart.
TEST_P(ChosenWalks, GiveTheTilesOfTheirNumbers) {
  TestDevice on(GetParam());
  const std::vector<Offset> numbers{70, 3, Offset(1) << 40, 4, 5};
  const auto walks = Offset(numbers.size());
  const kernels::TileShape shape = shape_of(20, 3, 6, true, 4, 16);
  TileCase chosen(on, shape, walks, 30, 3), alone(on, shape, walks, 30, 3);
  Values<Offset> on_device(on, numbers);
  chosen.batch.walks.chosen = on_device.span();
  chosen.batch.learning_rate = alone.batch.learning_rate = 0;

  on.ops.train_tiles(chosen.batch, on.exec);
  for (Offset w = 0; w < walks; ++w) {
    kernels::TileBatch one = alone.batch;
    one.walks.first = numbers[std::size_t(w)], one.walks.count = 1;
    one.nodes = one.nodes.subspan(w * 20, 20);
    one.negatives = one.negatives.subspan(w * 3 * 4, 3 * 4);
    one.results = one.results.subspan(w * 3, 3);
    on.ops.train_tiles(one, on.exec);
  }

  const std::vector<kernels::TileResult> got = chosen.results.host(), wanted = alone.results.host();
  for (std::size_t t = 0; t < got.size(); ++t) {
    EXPECT_EQ(got[t].pairs, wanted[t].pairs) << "tile " << t;
    EXPECT_EQ(got[t].loss, wanted[t].loss) << "tile " << t;
  }
}

TEST_P(ChosenWalks, GiveTheNegativesOfTheirNumbers) {
  TestDevice on(GetParam());
  constexpr int kTiles = 3, kPerTile = 5;
  const std::vector<Offset> numbers{70, 3, Offset(1) << 40, 4, 5};
  std::vector<kernels::AliasSlot> slots(1000);
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = {std::uint32_t(i) << 20, std::uint32_t(i / 2)};
  Values<kernels::AliasSlot> table(on, slots);
  Values<Offset> on_device(on, numbers);
  Values<RowId> chosen(on, Offset(numbers.size()) * kTiles * kPerTile, kNoRow), alone(on, chosen.host());

  on.ops.draw_negatives({table.span(), {}}, {4, 1, 0, Offset(numbers.size()), 10, on_device.span()}, kTiles, kPerTile,
                        chosen.span(), on.exec);
  for (std::size_t w = 0; w < numbers.size(); ++w)
    on.ops.draw_negatives({table.span(), {}}, {4, 1, numbers[w], 1, 10, {}}, kTiles, kPerTile,
                          alone.span().subspan(Offset(w) * kTiles * kPerTile, kTiles * kPerTile), on.exec);

  EXPECT_EQ(chosen.host(), alone.host());
}

TEST_P(ChosenWalks, GiveThePairsOfTheirNumbers) {
  TestDevice on(GetParam());
  const std::vector<Offset> numbers{70, 3};
  const kernels::TileShape shape = shape_of(12, 2, 3, true, 1, 8);
  TileCase chosen(on, shape, 2, 30, 3), alone(on, shape, 2, 30, 3);
  std::vector<kernels::AliasSlot> slots(30);
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = {~0u, std::uint32_t(i)};
  Values<kernels::AliasSlot> table(on, slots);
  Values<Offset> on_device(on, numbers);
  chosen.batch.walks.chosen = on_device.span();
  chosen.batch.learning_rate = alone.batch.learning_rate = 0;

  on.ops.train_pairs(chosen.batch, table.span(), on.exec);
  for (Offset w = 0; w < 2; ++w) {
    kernels::TileBatch one = alone.batch;
    one.walks.first = numbers[std::size_t(w)], one.walks.count = 1;
    one.nodes = one.nodes.subspan(w * 12, 12);
    one.negatives = one.negatives.subspan(w * 2, 2);
    one.results = one.results.subspan(w * 2, 2);
    on.ops.train_pairs(one, table.span(), on.exec);
  }

  const std::vector<kernels::TileResult> got = chosen.results.host(), wanted = alone.results.host();
  for (std::size_t t = 0; t < got.size(); ++t) {
    EXPECT_EQ(got[t].pairs, wanted[t].pairs) << "tile " << t;
    EXPECT_EQ(got[t].loss, wanted[t].loss) << "tile " << t;
  }
}

GS_ON_ALL_BACKENDS(ChosenWalks);

}  // namespace
}  // namespace gs
