// Gradients as bytes: what each codec keeps, what error feedback makes up for, and that nothing hides what diverged.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/stored_table.hpp"

namespace gs {
namespace {

using kernels::Compression;
using kernels::Fp16;
using kernels::GradientCodec;

constexpr Compression kAll[] = {Compression::none, Compression::fp16, Compression::int8, Compression::topk,
                                Compression::onebit};

GradientCodec codec_of(Compression kind, int dim) { return {kind, dim, std::max(1, dim / 8)}; }

/// A value at a byte of a coded row.
template <class T>
T at(const char* coded, int offset) {
  T value;
  std::memcpy(static_cast<void*>(&value), coded + offset, sizeof value);
  return value;
}

/// What a coded row stands for, read as views.hpp describes it.
std::vector<float> decoded(const GradientCodec& codec, const char* coded) {
  std::vector<float> values(static_cast<std::size_t>(codec.dim));
  for (int c = 0; c < codec.dim; ++c) {
    float& value = values[std::size_t(c)];
    switch (codec.kind) {
      case Compression::none:
        value = at<float>(coded, 4 * c);
        break;
      case Compression::fp16:
        value = at<Fp16>(coded, 2 * c);
        break;
      case Compression::int8:
        value = at<float>(coded, 0) * float(at<std::int8_t>(coded, 4 + c));
        break;
      case Compression::topk:
        for (int k = 0; k < codec.keep; ++k)
          if (at<std::uint16_t>(coded, 4 * codec.keep + 2 * k) == c) value = at<float>(coded, 4 * k);
        break;
      case Compression::onebit:
        value =
            at<float>(coded, c / 32 * 12 + ((at<std::uint32_t>(coded, c / 32 * 12 + 8) >> c % 32 & 1) != 0 ? 4 : 0));
    }
  }
  return values;
}

/// One sender: encodes step after step with its residuals.
class Sender {
 public:
  /// residual_rows 0: no feedback.
  Sender(Backend backend, const GradientCodec& codec, Offset residual_rows = 0)
      : on_(backend, 2),
        codec_(codec),
        residual_(on_, codec.dim, std::vector<float>(std::size_t(residual_rows * codec.dim))) {}

  /// gradients [n, dim], of global rows `rows`.
  std::vector<char> encode(const std::vector<float>& gradients, const std::vector<RowId>& rows) {
    const FloatRows in(on_, codec_.dim, gradients);
    const auto count = Offset(rows.size());
    std::vector<float> curvature;
    for (Offset i = 0; i < count; ++i) curvature.push_back(curvature_of(i));
    const Values<float> curvatures(on_, curvature);
    const Values<RowId> ids(on_, rows);
    const Values<char> coded(on_, count * codec_.row_bytes(), char(0x77));
    kernels::Feedback feedback;
    if (residual_.view().count > 0) feedback = {residual_.view(), ids.span()};
    on_.ops.encode_gradients(codec_, in.view(), curvatures.span(), feedback, coded.span().data, on_.exec);
    return coded.host();
  }
  std::vector<float> residual() const { return residual_.host(); }
  static float curvature_of(Offset i) { return 0.5f + float(i); }

 private:
  TestDevice on_;
  GradientCodec codec_;
  FloatRows residual_;
};

std::vector<RowId> first_rows(Offset count) {
  std::vector<RowId> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), RowId(0));
  return rows;
}

class Codec : public OnBackends {
 protected:
  static constexpr Offset kRows = 14;

  /// body(codec, gradients [kRows, dim], coded) for every kind and dim, without feedback.
  template <class Body>
  void for_each_codec(const Body& body) const {
    for (const Compression kind : kAll)
      for (const int dim : kTestDims) {
        SCOPED_TRACE(testing::Message() << "kind " << int(kind) << ", dim " << dim);
        const GradientCodec codec = codec_of(kind, dim);
        const std::vector<float> gradients = normal_values(kRows * dim, 21);
        body(codec, gradients, Sender(GetParam(), codec).encode(gradients, first_rows(kRows)));
      }
  }
};

TEST_P(Codec, RowsAreWholeWordsAsLongAsTheyHaveToBe) {
  EXPECT_EQ(GradientCodec({Compression::none, 7, 0}).row_bytes(), 7 * 4 + 4);
  EXPECT_EQ(GradientCodec({Compression::fp16, 7, 0}).row_bytes(), 16 + 4);
  EXPECT_EQ(GradientCodec({Compression::int8, 7, 0}).row_bytes(), 4 + 8 + 4);
  EXPECT_EQ(GradientCodec({Compression::topk, 7, 3}).row_bytes(), 3 * 4 + 8 + 4);
  EXPECT_EQ(GradientCodec({Compression::onebit, 33, 0}).row_bytes(), 2 * 12 + 4);
}

TEST_P(Codec, EveryRowEndsWithItsCurvature) {
  for_each_codec([](const GradientCodec& codec, const std::vector<float>&, const std::vector<char>& coded) {
    for (Offset i = 0; i < kRows; ++i)
      ASSERT_EQ(at<float>(coded.data(), int((i + 1) * codec.row_bytes()) - 4), Sender::curvature_of(i));
  });
}

TEST_P(Codec, BackendsAgreeOnEveryByte) {
  for_each_codec([](const GradientCodec& codec, const std::vector<float>& gradients, const std::vector<char>& coded) {
    ASSERT_EQ(coded, Sender(Backend::cpu, codec).encode(gradients, first_rows(kRows)));
  });
}

TEST_P(Codec, KeepsWhatItsKindPromises) {
  for_each_codec([](const GradientCodec& codec, const std::vector<float>& gradients, const std::vector<char>& coded) {
    for (Offset i = 0; i < kRows; ++i) {
      const float* row = &gradients[std::size_t(i * codec.dim)];
      const std::vector<float> got = decoded(codec, &coded[std::size_t(i * codec.row_bytes())]);
      float largest = 0;
      std::map<std::pair<int, bool>, double> sum, count;  // of 32 columns, and of the values below 0 or the others
      for (int c = 0; c < codec.dim; ++c) {
        largest = std::max(largest, std::abs(row[c]));
        sum[{c / 32, row[c] >= 0}] += row[c], count[{c / 32, row[c] >= 0}] += 1;
      }
      for (int c = 0; c < codec.dim; ++c) {
        double expected = row[c], tolerance = 0;
        if (codec.kind == Compression::fp16) expected = Fp16::nearest(row[c]);
        if (codec.kind == Compression::int8) tolerance = 0.50001 * largest / 127;
        if (codec.kind == Compression::topk && got[std::size_t(c)] == 0) expected = 0;
        if (codec.kind == Compression::onebit)
          expected = sum[{c / 32, row[c] >= 0}] / count[{c / 32, row[c] >= 0}], tolerance = 1e-5;
        ASSERT_NEAR(got[std::size_t(c)], expected, tolerance) << "column " << c;
      }
    }
  });
}

TEST_P(Codec, TopkKeepsTheLargestAndOfEqualOnesTheFirst) {
  for (const int dim : kTestDims)
    for (const int keep : {1, 3, 64, dim}) {
      if (keep > dim) continue;
      const GradientCodec codec{Compression::topk, dim, keep};
      std::vector<float> gradients = normal_values(kRows * dim, 22, 3);
      for (std::size_t i = 0; i < gradients.size() / 2; ++i) gradients[i] = std::round(gradients[i]);  // ties, zeros

      const std::vector<char> coded = Sender(GetParam(), codec).encode(gradients, first_rows(kRows));

      for (Offset i = 0; i < kRows; ++i) {
        const float* row = &gradients[std::size_t(i * dim)];
        std::vector<int> columns(static_cast<std::size_t>(dim));
        std::iota(columns.begin(), columns.end(), 0);
        std::stable_sort(columns.begin(), columns.end(),
                         [&](int a, int b) { return std::abs(row[a]) > std::abs(row[b]); });
        columns.resize(std::size_t(keep));
        std::sort(columns.begin(), columns.end());
        const char* bytes = &coded[std::size_t(i * codec.row_bytes())];
        for (int k = 0; k < keep; ++k) {
          ASSERT_EQ(at<std::uint16_t>(bytes, 4 * keep + 2 * k), columns[std::size_t(k)])
              << "dim " << dim << ", keep " << keep << ", row " << i << ", place " << k;
          ASSERT_EQ(at<float>(bytes, 4 * k), row[columns[std::size_t(k)]]);
        }
      }
    }
}

TEST_P(Codec, SendsZerosAsZerosAndTheTiniestRowsAsLittle) {
  for (const Compression kind : kAll)
    for (const float value : {0.0f, 1e-35f, 1e-42f}) {
      const GradientCodec codec = codec_of(kind, 7);

      const std::vector<char> coded =
          Sender(GetParam(), codec).encode({value, -value, 0, 0, 0, value, 0}, first_rows(1));

      for (const float got : decoded(codec, coded.data()))
        ASSERT_LE(std::abs(got), value) << "kind " << int(kind) << ", value " << value;
    }
}

TEST_P(Codec, LeavesNothingHiddenThatIsNotFinite) {
  constexpr int kDim = 40, kBad = 33;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Compression kind : kAll)
    for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()})
      for (const Offset residual_rows : {0, 1}) {
        const GradientCodec codec = codec_of(kind, kDim);
        std::vector<float> gradient = normal_values(kDim, 23);
        gradient[kBad] = bad;

        const std::vector<char> coded = Sender(GetParam(), codec, residual_rows).encode(gradient, first_rows(1));

        EXPECT_FALSE(std::isfinite(decoded(codec, coded.data())[kBad])) << "kind " << int(kind) << ", " << bad;
      }
}

TEST_P(Codec, FeedbackSendsLaterWhatWasLeftOut) {
  constexpr Offset kResidualRows = 5;  // of the rows 0, 3, 4, 5, 9: the last two have none
  const std::vector<RowId> rows = {4, 9, 0, 5, 3};
  for (const Compression kind : {Compression::topk, Compression::onebit})
    for (const int dim : kTestDims) {
      const GradientCodec codec = codec_of(kind, dim);
      Sender sender(GetParam(), codec, kResidualRows), twin(Backend::cpu, codec, kResidualRows);
      std::vector<double> given(rows.size() * std::size_t(dim)), got(given.size());

      for (std::uint64_t step = 0; step < 12; ++step) {
        const std::vector<float> gradients = normal_values(Offset(given.size()), 30 + step);
        const std::vector<char> coded = sender.encode(gradients, rows);
        ASSERT_EQ(coded, twin.encode(gradients, rows)) << "bytes of another backend, step " << step;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const std::vector<float> values = decoded(codec, &coded[i * std::size_t(codec.row_bytes())]);
          for (std::size_t c = 0; c < std::size_t(dim); ++c) {
            given[i * std::size_t(dim) + c] += gradients[i * std::size_t(dim) + c];
            got[i * std::size_t(dim) + c] += values[c];
          }
        }
      }

      const std::vector<float> residual = sender.residual();
      ASSERT_EQ(residual, twin.residual());
      for (std::size_t i = 0; i < given.size(); ++i) {
        const std::size_t row = rows[i / std::size_t(dim)];
        if (row >= kResidualRows) continue;
        ASSERT_NEAR(got[i] + residual[row * std::size_t(dim) + i % std::size_t(dim)], given[i], 2e-5)
            << "kind " << int(kind) << ", dim " << dim << ", value " << i;
      }
      for (std::size_t c = 0; c < std::size_t(dim); ++c) ASSERT_EQ(residual[std::size_t(dim) + c], 0) << "row 1";
    }
}

TEST_P(Codec, FeedbackMakesAConstantGradientArriveInTheMean) {
  constexpr int kDim = 24, kSteps = 200;
  const std::vector<float> gradient = normal_values(kDim, 24);
  for (const Compression kind : {Compression::topk, Compression::onebit}) {
    const GradientCodec codec = codec_of(kind, kDim);
    Sender sender(GetParam(), codec, 1);
    std::vector<double> sum(kDim);

    for (int step = 0; step < kSteps; ++step) {
      const std::vector<float> values = decoded(codec, sender.encode(gradient, first_rows(1)).data());
      for (std::size_t c = 0; c < kDim; ++c) sum[c] += values[c];
    }

    for (std::size_t c = 0; c < kDim; ++c) EXPECT_NEAR(sum[c] / kSteps, gradient[c], 0.15) << "kind " << int(kind);
  }
}

TEST_P(Codec, RowsWithoutAResidualForgetAndOtherKindsLeaveTheirsAlone) {
  constexpr int kDim = 16;
  const std::vector<float> gradient = normal_values(kDim, 25);
  for (const Compression kind : kAll) {
    const GradientCodec codec = codec_of(kind, kDim);
    const bool feeds_back = kind == Compression::topk || kind == Compression::onebit;
    Sender sender(GetParam(), codec, 2);
    const std::vector<char> first = Sender(GetParam(), codec).encode(gradient, first_rows(1));

    EXPECT_EQ(sender.encode(gradient, {2}), first);
    EXPECT_EQ(sender.encode(gradient, {2}), first);
    EXPECT_EQ(sender.residual(), std::vector<float>(2 * kDim));
    sender.encode(gradient, {1});
    EXPECT_EQ(sender.residual() != std::vector<float>(2 * kDim), feeds_back) << "kind " << int(kind);
  }
}

TEST_P(Codec, DecodedGradientsAreAddedAtTheirSlots) {
  for_each_codec([&](const GradientCodec& codec, const std::vector<float>&, const std::vector<char>& coded) {
    TestDevice on(GetParam(), 2);
    constexpr Offset kSlots = 20;
    const std::vector<float> start = normal_values(kSlots * codec.dim, 26);
    std::vector<RowId> slots;
    for (std::uint64_t i = 0; i < kRows; ++i) slots.push_back(RowId(shuffled(i, kSlots, 4)));
    const FloatRows sums(on, codec.dim, start);
    const Values<float> curvature(on, kSlots, 0.25f);
    const Values<char> bytes(on, coded);
    const Values<RowId> places(on, slots);

    on.ops.add_coded(codec, bytes.span().data, places.span(), sums.view(), curvature.span(), on.exec);

    std::vector<float> expected = start, expected_curvature(kSlots, 0.25f);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::vector<float> values = decoded(codec, &coded[i * std::size_t(codec.row_bytes())]);
      for (std::size_t c = 0; c < values.size(); ++c) expected[slots[i] * values.size() + c] += values[c];
      expected_curvature[slots[i]] += Sender::curvature_of(Offset(i));
    }
    const std::vector<float> got = sums.host();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-6) << "value " << i;
    ASSERT_EQ(curvature.host(), expected_curvature);
  });
}

TEST_P(Codec, OneThreadMayMeetASlotTwice) {
  if (GetParam() == Backend::cuda) GTEST_SKIP() << "a GPU has no single thread";
  constexpr int kDim = 37;
  TestDevice on(GetParam(), 1);
  const std::vector<RowId> slots = {1, 0, 1, 1, 2, 0};
  const std::vector<float> gradients = normal_values(Offset(slots.size()) * kDim, 27);
  const Values<RowId> places(on, slots);
  for (const Compression kind : kAll) {
    const GradientCodec codec = codec_of(kind, kDim);
    const std::vector<char> coded = Sender(GetParam(), codec).encode(gradients, first_rows(Offset(slots.size())));
    const Values<char> bytes(on, coded);
    const FloatRows sums(on, kDim, std::vector<float>(3 * kDim));
    const Values<float> curvature(on, 3, 0.0f);

    on.ops.add_coded(codec, bytes.span().data, places.span(), sums.view(), curvature.span(), on.exec);

    std::vector<float> expected(3 * kDim);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::vector<float> values = decoded(codec, &coded[i * std::size_t(codec.row_bytes())]);
      for (std::size_t c = 0; c < kDim; ++c) expected[slots[i] * kDim + c] += values[c];
    }
    const std::vector<float> got = sums.host();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 2e-6) << "kind " << int(kind);
    EXPECT_EQ(curvature.host(), (std::vector<float>{1.5f + 5.5f, 0.5f + 2.5f + 3.5f, 4.5f}));
  }
}

TEST_P(Codec, PlainGradientsAreAddedAtTheirSlots) {
  for (const int dim : kTestDims) {
    TestDevice on(GetParam(), 1);
    const std::vector<RowId> slots = {3, 0, 5, 3, 4};
    const std::vector<float> given = normal_values(Offset(slots.size()) * dim, 28);
    const std::vector<float> start = normal_values(6 * dim, 29);
    const FloatRows gradients(on, dim, given), sums(on, dim, start);
    const Values<float> given_curvature(on, std::vector<float>{1, 2, 4, 8, 16}), curvature(on, 6, 0.5f);
    const std::vector<RowId> distinct(slots.begin(), slots.begin() + 3), others(slots.begin() + 3, slots.end());
    const Values<RowId> first(on, distinct), second(on, others);
    const Rows<float> all = gradients.view();

    on.ops.add_rows({all.data, 3, dim, all.stride}, given_curvature.span().subspan(0, 3), first.span(), sums.view(),
                    curvature.span(), on.exec);
    on.ops.add_rows({all.row(3), 2, dim, all.stride}, given_curvature.span().subspan(3, 2), second.span(), sums.view(),
                    curvature.span(), on.exec);

    std::vector<float> expected = start;
    for (std::size_t i = 0; i < slots.size(); ++i)
      for (std::size_t c = 0; c < std::size_t(dim); ++c)
        expected[slots[i] * std::size_t(dim) + c] += given[i * std::size_t(dim) + c];
    ASSERT_EQ(sums.host(), expected) << "dim " << dim;
    ASSERT_EQ(curvature.host(), (std::vector<float>{2.5f, 0.5f, 0.5f, 9.5f, 16.5f, 4.5f}));
  }
}

TEST_P(Codec, NothingIsFine) {
  TestDevice on(GetParam());
  for (const Compression kind : kAll) {
    const GradientCodec codec = codec_of(kind, 5);

    on.ops.encode_gradients(codec, {nullptr, 0, 5, 16}, {}, {}, nullptr, on.exec);
    on.ops.add_coded(codec, nullptr, {}, {nullptr, 0, 5, 16}, {}, on.exec);
  }
  on.ops.add_rows({nullptr, 0, 5, 16}, {}, {}, {nullptr, 0, 5, 16}, {}, on.exec);
  wait(on.exec);
}

TEST_P(Codec, TopkOfNoneOrMoreThanAllIsRefused) {
  TestDevice on(GetParam());
  for (const int keep : {0, 6})
    EXPECT_THROW(on.ops.encode_gradients({Compression::topk, 5, keep}, {nullptr, 0, 5, 16}, {}, {}, nullptr, on.exec),
                 Error);
}

GS_ON_ALL_BACKENDS(Codec);

}  // namespace
}  // namespace gs
