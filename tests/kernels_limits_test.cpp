#include <cstring>

#include "tests/support/backends.hpp"

namespace gs {
namespace {

class Limits : public OnBackends {};

TEST_P(Limits, MultiplyAddsAreSumsOfChains) {
  TestDevice on(GetParam(), 2);
  std::vector<float> start(192);
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = float(i) / 8;
  Values<float> values(on, start);

  on.ops.multiply_adds(values.span(), 5, on.exec);

  const std::vector<float> got = values.host();
  for (std::size_t i = 0; i < start.size(); ++i) {
    double sum = 0;
    for (int chain = 0; chain < kernels::kMultiplyAddChains; ++chain) {
      double x = double(start[i]) + chain;
      for (int round = 0; round < 5; ++round) x = x / 2 + 1;
      sum += x;
    }
    ASSERT_NEAR(got[i], sum, 1e-5 * sum) << "value " << i;
  }
}

TEST_P(Limits, NegateRowsTurnsTheOrderedRowsAndNoOthers) {
  TestDevice on(GetParam(), 2);
  constexpr Offset kRows = 5000, kStride = 48;
  std::vector<float> start(kRows * kStride);
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = float(i + 1);
  std::vector<RowId> order;  // rows not divisible by 3, shuffled
  for (std::uint64_t i = 0; i < kRows; ++i)
    if (const auto row = RowId(shuffled(i, kRows, 7)); row % 3 != 0) order.push_back(row);
  Values<float> table(on, start);
  Values<RowId> rows(on, order);

  on.ops.negate_rows({table.span().data, kRows, int(kStride), kStride}, rows.span(), on.exec);

  const std::vector<float> got = table.host();
  for (std::size_t i = 0; i < start.size(); ++i)
    ASSERT_EQ(got[i], (i / kStride) % 3 != 0 ? -start[i] : start[i]) << "row " << i / kStride;
}

GS_ON_ALL_BACKENDS(Limits);

}  // namespace
}  // namespace gs
