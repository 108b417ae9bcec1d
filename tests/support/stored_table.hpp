// A table in two homes with padded rows, as kernels meet it, and its values back on the host.
#pragma once

#include <cstring>
#include <random>

#include "kernels/half.hpp"

#include "tests/support/backends.hpp"

namespace gs {

/// Normal values of the given deviation.
inline std::vector<float> normal_values(Offset count, std::uint64_t seed, float deviation = 1) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

/// Columns that kernels with vectors, warps and pads treat differently.
inline const std::vector<int> kTestDims = {1, 7, 16, 100, 128, 513};

inline constexpr kernels::RowType kRowTypes[] = {kernels::RowType::fp32, kernels::RowType::fp16,
                                                 kernels::RowType::bf16};

/// What `type` stores for x, as a float.
inline float as_stored(kernels::RowType type, float x) {
  float stored = 0;
  kernels::with_type(type, [&](auto value) { stored = float(kernels::nearest<decltype(value)>(x)); });
  return stored;
}

/// The first hot_rows rows in one allocation, the others in another, each between guards and with padding that only
/// `host` may find as it was.
class StoredTable {
 public:
  /// values [count, dim]; those that `type` cannot hold are rounded to the nearest.
  StoredTable(TestDevice& on, kernels::RowType type, int dim, Offset hot_rows, const std::vector<float>& values)
      : type_(type),
        dim_(dim),
        stride_(padded_stride(dim)),
        count_(Offset(values.size()) / dim),
        hot_rows_(hot_rows),
        hot_(on, bytes(values, 0, hot_rows)),
        cold_(on, bytes(values, hot_rows, count_)) {}

  kernels::StoredRows view() const {
    return {type_, dim_, stride_, count_, hot_rows_, hot_.span().data, cold_.span().data};
  }

  /// [count, dim]
  std::vector<float> host() const {
    std::vector<char> all = hot_.host();
    const std::vector<char> cold = cold_.host();
    all.insert(all.end(), cold.begin(), cold.end());
    std::vector<float> values;
    kernels::with_type(type_, [&](auto type) {
      std::vector<decltype(type)> stored(std::size_t(count_ * stride_));
      if (!all.empty()) std::memcpy(static_cast<void*>(stored.data()), all.data(), all.size());
      const char* padding = nullptr;
      for (Offset row = 0; row < count_; ++row) {
        for (int c = 0; c < dim_; ++c) values.push_back(stored[std::size_t(row * stride_ + c)]);
        padding = reinterpret_cast<const char*>(&stored[std::size_t(row * stride_)] + dim_);
        for (Offset i = 0; i < (stride_ - dim_) * Offset(sizeof type); ++i)
          EXPECT_EQ(padding[i], kPadding) << "the padding of row " << row << " was written";
      }
    });
    return values;
  }

 private:
  static constexpr char kPadding = 0x33;

  std::vector<char> bytes(const std::vector<float>& values, Offset first, Offset last) const {
    std::vector<char> bytes(std::size_t((last - first) * stride_ * kernels::bytes_of(type_)), kPadding);
    kernels::with_type(type_, [&](auto type) {
      using T = decltype(type);
      for (Offset row = first; row < last; ++row)
        for (int c = 0; c < dim_; ++c) {
          const T stored = kernels::nearest<T>(values[std::size_t(row * dim_ + c)]);
          std::memcpy(&bytes[std::size_t((row - first) * stride_ + c) * sizeof stored], &stored, sizeof stored);
        }
    });
    return bytes;
  }

  kernels::RowType type_;
  int dim_;
  Offset stride_, count_, hot_rows_;
  Values<char> hot_, cold_;
};

/// Float rows of one home, [count, dim] on the host.
class FloatRows {
 public:
  FloatRows(TestDevice& on, int dim, const std::vector<float>& values)
      : dim_(dim), count_(Offset(values.size()) / dim), table_(on, kernels::RowType::fp32, dim, count_, values) {}
  Rows<float> view() const { return {static_cast<float*>(table_.view().hot), count_, dim_, padded_stride(dim_)}; }
  std::vector<float> host() const { return table_.host(); }

 private:
  int dim_;
  Offset count_;
  StoredTable table_;
};

}  // namespace gs
