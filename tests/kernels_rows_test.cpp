// 16-bit numbers, and rows that move between tables, the wire and batches.
#include <cmath>

#include "tests/support/stored_table.hpp"

namespace gs {
namespace {

using kernels::Bf16;
using kernels::Fp16;
using kernels::RowType;

// ------------------------------------------------------------------------------------------------------ 16-bit numbers

template <class T>
struct Format;
template <>
struct Format<Fp16> {
  static constexpr int kMantissa = 10, kBias = 15;
};
template <>
struct Format<Bf16> {
  static constexpr int kMantissa = 7, kBias = 127;
};

/// The finite number that 16 bits are by the formats' definition; bits below infinity's.
template <class T>
double value_of(int bits) {
  constexpr int mantissa_bits = Format<T>::kMantissa, bias = Format<T>::kBias;
  const int exponent = bits >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa | 1 << mantissa_bits;
  return std::ldexp(double(whole), std::max(exponent, 1) - bias - mantissa_bits);
}
template <class T>
constexpr int kInfinityBits = 0x8000 - (1 << Format<T>::kMantissa);

template <class T>
class HalfNumber : public testing::Test {};
using HalfTypes = testing::Types<Fp16, Bf16>;
TYPED_TEST_SUITE(HalfNumber, HalfTypes);

TYPED_TEST(HalfNumber, EveryOneIsItsValueAndComesBack) {
  for (int bits = 0; bits < kInfinityBits<TypeParam>; ++bits)
    for (const int sign : {0, 0x8000}) {
      const float value = TypeParam{std::uint16_t(bits | sign)};

      ASSERT_EQ(value, (sign ? -1 : 1) * value_of<TypeParam>(bits)) << bits;
      ASSERT_EQ(TypeParam::nearest(value).bits, bits | sign);
      for (const std::uint32_t random : {0u, 0x1234u, 0xFFFFu, 0xFFFFFFFFu})
        ASSERT_EQ(TypeParam::random(value, random).bits, bits | sign) << value << " was changed";
    }
}

TYPED_TEST(HalfNumber, NearestSplitsNeighboursInTheMiddleAndTiesToEven) {
  for (int bits = 0; bits < kInfinityBits<TypeParam> - 1; ++bits) {
    const auto middle = float((value_of<TypeParam>(bits) + value_of<TypeParam>(bits + 1)) / 2);
    for (const int sign : {0, 0x8000}) {
      const float x = sign ? -middle : middle;
      ASSERT_EQ(TypeParam::nearest(x).bits, (bits + bits % 2) | sign) << x;
      ASSERT_EQ(TypeParam::nearest(std::nextafter(x, 0.0f)).bits, bits | sign) << x;
      ASSERT_EQ(TypeParam::nearest(std::nextafter(x, 2 * x)).bits, (bits + 1) | sign) << x;
    }
  }
}

TYPED_TEST(HalfNumber, WhatIsTooLargeIsInfiniteAndNanStays) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const double largest = value_of<TypeParam>(kInfinityBits<TypeParam> - 1);
  const double gap = largest - value_of<TypeParam>(kInfinityBits<TypeParam> - 2);
  const auto first_infinite = float(largest + gap / 2);

  EXPECT_EQ(float(TypeParam::nearest(std::nextafter(first_infinite, 0.0f))), float(largest));
  EXPECT_EQ(float(TypeParam::nearest(first_infinite)), infinity);
  EXPECT_EQ(float(TypeParam::nearest(-first_infinite)), -infinity);
  EXPECT_EQ(float(TypeParam::nearest(std::numeric_limits<float>::max())), infinity);
  for (const std::uint32_t random : {0u, 0xFFFFu}) {
    EXPECT_EQ(float(TypeParam::random(infinity, random)), infinity);
    EXPECT_EQ(float(TypeParam::random(-infinity, random)), -infinity);
    EXPECT_TRUE(std::isnan(float(TypeParam::random(nan, random))));
    EXPECT_TRUE(std::isnan(float(TypeParam::random(std::bit_cast<float>(0xFF800001u), random)))) << "least payload";
  }
  EXPECT_TRUE(std::isnan(float(TypeParam::nearest(nan))));
  EXPECT_TRUE(std::isnan(float(TypeParam::nearest(std::bit_cast<float>(0x7F800001u))))) << "least payload";
  EXPECT_EQ(float(TypeParam{std::uint16_t(kInfinityBits<TypeParam>)}), infinity);
  EXPECT_EQ(float(TypeParam{std::uint16_t(kInfinityBits<TypeParam> | 0x8000)}), -infinity);
  EXPECT_TRUE(std::isnan(float(TypeParam{std::uint16_t(kInfinityBits<TypeParam> + 1)})));
}

TYPED_TEST(HalfNumber, RandomRoundingMeetsBothNeighboursAsOftenAsItIsNear) {
  std::mt19937_64 generator(11);
  for (int round = 0; round < 60; ++round) {
    const int bits = int(generator() % std::uint64_t(kInfinityBits<TypeParam> - 1));
    const double low = value_of<TypeParam>(bits), high = value_of<TypeParam>(bits + 1);
    const double share = double(generator() % 8192) / 8192;
    const auto x = float(low + share * (high - low));
    const double exact = (double(x) - low) / (high - low);

    int ups = 0;
    for (std::uint32_t random = 0; random < 1 << 16; ++random) {
      const std::uint16_t got = TypeParam::random(-x, random).bits;
      ASSERT_TRUE(got == (bits | 0x8000) || got == ((bits + 1) | 0x8000)) << x << " became " << float(TypeParam{got});
      ups += got == ((bits + 1) | 0x8000);
    }

    ASSERT_NEAR(ups / 65536.0, exact, 1.0 / 65536) << x;  // numbers below fp16's normal ones are cut to 16 bits
  }
}

// ---------------------------------------------------------------------------------------------------------------- rows

class MovedRows : public OnBackends {
 protected:
  static constexpr Offset kRows = 41;
  static constexpr Offset kHotRows[] = {0, 13, kRows};

  /// Rows of the table in any order, some twice.
  static std::vector<RowId> chosen_rows() {
    std::vector<RowId> rows;
    for (std::uint64_t i = 0; i < kRows; ++i) rows.push_back(RowId(shuffled(i, kRows, 3)));
    rows.insert(rows.end(), {RowId(0), RowId(kRows - 1), RowId(12), RowId(13), RowId(0)});
    return rows;
  }
};

TEST_P(MovedRows, GatheredOnesAreTheTablesInFloat) {
  TestDevice on(GetParam(), 2);
  const std::vector<RowId> rows = chosen_rows();
  const Values<RowId> chosen(on, rows);
  for (const RowType type : kRowTypes)
    for (const int dim : kTestDims) {
      const std::vector<float> values = normal_values(kRows * dim, 5);
      const Offset hot_rows = kHotRows[std::size_t(dim) % 3];
      const StoredTable table(on, type, dim, hot_rows, values);
      const FloatRows out(on, dim, std::vector<float>(rows.size() * std::size_t(dim)));

      on.ops.gather_rows(table.view(), chosen.span(), out.view(), on.exec);

      const std::vector<float> got = out.host();
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t from = rows[i / std::size_t(dim)] * std::size_t(dim) + i % std::size_t(dim);
        ASSERT_EQ(got[i], as_stored(type, values[from])) << "dim " << dim << ", type " << int(type) << ", value " << i;
      }
    }
}

TEST_P(MovedRows, PackedOnesLieOneAfterAnotherAndUnpackAsRows) {
  TestDevice on(GetParam(), 2);
  const std::vector<RowId> rows = chosen_rows();
  const Values<RowId> chosen(on, rows);
  for (const RowType type : kRowTypes)
    for (const RowType wire : kRowTypes)
      for (const int dim : {1, 7, 100}) {
        const std::vector<float> values = normal_values(kRows * dim, 6);
        const StoredTable table(on, type, dim, kHotRows[std::size_t(dim) % 3], values);
        const Values<char> packed(on, Offset(rows.size()) * dim * kernels::bytes_of(wire), char(0x11));
        const FloatRows out(on, dim, std::vector<float>(rows.size() * std::size_t(dim)));

        on.ops.pack_rows(table.view(), chosen.span(), wire, packed.span().data, on.exec);
        on.ops.unpack_rows(wire, packed.span().data, out.view(), on.exec);

        const std::vector<char> bytes = packed.host();
        const std::vector<float> got = out.host();
        kernels::with_type(wire, [&](auto value) {
          for (std::size_t i = 0; i < got.size(); ++i) {
            const std::size_t from = rows[i / std::size_t(dim)] * std::size_t(dim) + i % std::size_t(dim);
            const float expected = as_stored(wire, as_stored(type, values[from]));
            std::memcpy(static_cast<void*>(&value), &bytes[i * sizeof value], sizeof value);
            ASSERT_EQ(float(value), expected) << "packed value " << i << ", types " << int(type) << int(wire);
            ASSERT_EQ(got[i], expected) << "unpacked value " << i << ", types " << int(type) << int(wire);
          }
        });
      }
}

TEST_P(MovedRows, NoneIsFine) {
  TestDevice on(GetParam());
  const StoredTable table(on, RowType::fp16, 7, 3, normal_values(7 * 5, 1));

  on.ops.gather_rows(table.view(), {}, {nullptr, 0, 7, 16}, on.exec);
  on.ops.pack_rows(table.view(), {}, RowType::fp32, nullptr, on.exec);
  on.ops.unpack_rows(RowType::bf16, nullptr, {nullptr, 0, 7, 16}, on.exec);
  wait(on.exec);
}

TEST_P(MovedRows, OutOfTheWrongShapeIsRefused) {
  TestDevice on(GetParam());
  const StoredTable table(on, RowType::fp32, 7, 3, normal_values(7 * 5, 1));
  const FloatRows out(on, 8, std::vector<float>(16));
  const Values<RowId> rows(on, std::vector<RowId>{1, 2});

  EXPECT_THROW(on.ops.gather_rows(table.view(), rows.span(), out.view(), on.exec), Error);
}

TEST_P(MovedRows, InitialOnesAreTheFloatTablesToTheNearest) {
  TestDevice on(GetParam(), 2);
  constexpr int kDim = 23;
  constexpr Offset kHot = 9;
  const std::vector<float> zeros(kRows * kDim);
  const kernels::RowSequence rows{2, 3, {}};
  const StoredTable floats(on, RowType::fp32, kDim, kRows, zeros);
  on.ops.initialize_rows(floats.view(), rows, 0.25f, 7, on.exec);
  const std::vector<float> expected = floats.host();

  for (const RowType type : kRowTypes) {
    const StoredTable table(on, type, kDim, kHot, zeros);

    on.ops.initialize_rows(table.view(), rows, 0.25f, 7, on.exec);

    const std::vector<float> got = table.host();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], as_stored(type, expected[i])) << "value " << i;
  }
}

GS_ON_ALL_BACKENDS(MovedRows);

}  // namespace
}  // namespace gs
