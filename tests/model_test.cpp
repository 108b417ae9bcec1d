// The shape of tiles and the tables at their start.
#include "graphscale/model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/backends.hpp"

namespace gs {
namespace {

TEST(TileShape, IsTheConfigurations) {
  Config config;
  config.model = {"deepwalk", 33, 4, false, 2.5};
  config.sampler.walk_length = 12, config.sampler.shared_negatives = 7;

  const kernels::TileShape shape = tile_shape(config);

  EXPECT_EQ(shape.dim, 33);
  EXPECT_EQ(shape.window, 4);
  EXPECT_FALSE(shape.shrink_window);
  EXPECT_EQ(shape.negatives, 2.5f);
  EXPECT_EQ(shape.walk_length, 12);
  EXPECT_EQ(shape.shared_negatives, 7);
}

TEST(TileShape, CutsWalksIntoAsFewTilesAsHoldTheirCentres) {
  for (int length = 2; length <= 1024; ++length) {
    Config config;
    config.sampler.walk_length = length;

    const kernels::TileShape shape = tile_shape(config);

    EXPECT_LE(shape.centres(), kTileCentres);
    EXPECT_GE(shape.centres() * shape.tiles_per_walk, length) << "a node of the walk is no tile's centre";
    EXPECT_LT((shape.tiles_per_walk - 1) * kTileCentres, length) << "a tile too many";
  }
}

class Tables : public OnBackends {
 protected:
  /// All values of the table, padding too.
  static std::vector<float> host(Rows<float> rows, TestDevice& on) {
    std::vector<float> values(std::size_t(rows.count * rows.stride));
    copy_bytes(values.data(), rows.data, Offset(values.size() * sizeof(float)), on.exec);
    wait(on.exec);
    return values;
  }
};

TEST_P(Tables, CentresStartUniformInTheirRangeAndPaddingAtZero) {
  constexpr int kDim = 20;
  constexpr Offset kNodes = 5000;
  TestDevice on(GetParam());
  const Model model(ModelShape::skip_gram(kNodes, kDim), 7, on.exec);

  const std::vector<float> values = host(model.centres(), on);

  const Offset stride = model.centres().stride;
  const double limit = 0.5 / kDim;
  double sum = 0, squares = 0;
  for (Offset row = 0; row < kNodes; ++row)
    for (int c = 0; c < stride; ++c) {
      const double value = values[std::size_t(row * stride + c)];
      ASSERT_LE(std::abs(value), c < kDim ? limit : 0) << "row " << row << ", column " << c;
      sum += value, squares += value * value;
    }
  const double count = double(kNodes) * kDim, sd = limit / std::sqrt(3.0);
  EXPECT_LT(std::abs(sum / count), 5 * sd / std::sqrt(count)) << "five standard errors";
  EXPECT_NEAR(squares / count, sd * sd, 0.01 * sd * sd);
}

TEST_P(Tables, ContextsStartAtZero) {
  TestDevice on(GetParam());
  const Model model(ModelShape::skip_gram(100, 9), 7, on.exec);

  for (const float value : host(model.contexts(), on)) ASSERT_EQ(value, 0);
}

TEST_P(Tables, TheSeedDecidesTheStartWhateverTheThreads) {
  TestDevice one(GetParam(), 1), three(GetParam(), 3);
  const ModelShape shape = ModelShape::skip_gram(3000, 5);
  const Model model(shape, 1, one.exec), same(shape, 1, three.exec), other(shape, 2, one.exec);

  EXPECT_EQ(host(model.centres(), one), host(same.centres(), three));
  EXPECT_NE(host(model.centres(), one), host(other.centres(), one));
}

TEST_P(Tables, StartFromTheValuesThatAreGivenAndElseAsDrawn) {
  constexpr int kDim = 100;
  constexpr Offset kRows = 80000;  // several blocks
  TestDevice on(GetParam(), 2);
  Model model(ModelShape::skip_gram(kRows, kDim), 7, on.exec);
  std::vector<float> expected = host(model.centres(), on);
  const Offset stride = model.centres().stride;
  const auto has_value = [](RowId row) { return row % 3 == 2 && (row < 20000 || row > 70000); };
  for (RowId row = 0; row < kRows; ++row)
    for (int c = 0; has_value(row) && c < kDim; ++c) expected[std::size_t(row * stride + c)] = float(row + RowId(c));
  const StartRows start{[&](RowId row, float* values) {
    for (int c = 0; has_value(row) && c < kDim; ++c) values[c] = float(row + RowId(c));
    return has_value(row);
  }};

  model.start_from(start, on.exec);

  EXPECT_EQ(host(model.centres(), on), expected);
  for (const float value : host(model.contexts(), on)) ASSERT_EQ(value, 0);
  EXPECT_THROW(model.start_from({.frozen = [](RowId) { return true; }}, on.exec), Error) << "all move, in place";
}

TEST_P(Tables, HoldWhatTheySay) {
  TestDevice on(GetParam());
  const Model model(ModelShape::skip_gram(123, 17), 1, on.exec);

  for (const auto& [purpose, bytes] : Model::bytes(ModelShape::skip_gram(123, 17))) {
    EXPECT_EQ(on.ledger.held_bytes(purpose), bytes);
    EXPECT_EQ(bytes, std::string(purpose) == "model: squared gradients" ? 0 : 123 * 32 * 4) << purpose;
  }
}

TEST_P(Tables, OfRotateKeepPhasesInHalfOfARelationsColumns) {
  TestDevice on(GetParam());
  Config config = default_config("rotate");
  config.model.dim = 20, config.model.reciprocal = true;
  const Model model(model_shape(config, 30, 7), 1, on.exec);

  EXPECT_EQ(model.centres().count, 2 * 7 + 30);
  EXPECT_EQ(model.contexts().data, model.centres().data);
  EXPECT_EQ(model.squares().size, 2 * 7 + 30);
  const std::vector<float> values = host(model.centres(), on);
  float largest = 0;
  for (Offset row = 0; row < 14; ++row)
    for (int c = 0; c < 20; ++c) {
      const float value = values[std::size_t(row * model.centres().stride + c)];
      if (c >= 10) {
        ASSERT_EQ(value, 0) << row;
      }
      largest = std::max(largest, std::abs(value));
    }
  EXPECT_GT(largest, 2.5f) << "phases go round the circle";
  EXPECT_LE(largest, 3.1416f);
}

INSTANTIATE_TEST_SUITE_P(Devices, Tables, testing::Values(Backend::cpu, Backend::cuda), backend_name);

TEST(FirstNotFinite, IsThePlaceOfTheFirstAndLooksAtNoPadding) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  std::vector<float> values{1, 2, nan, 3, 4, nan};  // two rows of two, and a column of padding
  const Rows<const float> rows(values.data(), 2, 2, 3);

  EXPECT_EQ(first_not_finite(rows), std::pair(Offset(-1), -1));
  values[4] = -inf;
  EXPECT_EQ(first_not_finite(rows), std::pair(Offset(1), 1));
  values[0] = nan;
  EXPECT_EQ(first_not_finite(rows), std::pair(Offset(0), 0));
}

}  // namespace
}  // namespace gs
