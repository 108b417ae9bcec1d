// 16-bit floating-point numbers of tables and of the wire: IEEE binary16 (fp16) and bfloat16 (bf16).
//
// Plain bit arithmetic that compilers turn into vectors, the same bits on every backend. A value too large for the type
// becomes infinity and NaN stays NaN (always 0x7FFF), so that what diverged is seen to have diverged. fp16 keeps its
// denormal numbers.
#pragma once

#include <bit>

#include "kernels/views.hpp"

namespace gs::kernels {

inline constexpr std::uint32_t kInfinity = 0x7F800000;  // the bits of float32's
GS_HD inline std::uint32_t magnitude_of(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFF; }

struct Fp16 {
  std::uint16_t bits = 0;

  GS_HD operator float() const {
    constexpr std::uint32_t kSmallest = 113 << 23;  // 2^-14: below it numbers are multiples of 2^-24
    const std::uint32_t size = std::uint32_t(bits & 0x7FFF) << 13, exponent = size & (31 << 23);
    const std::uint32_t normal = size + (exponent == 31 << 23 ? 224 << 23 : 112 << 23);
    const float small = std::bit_cast<float>(size + kSmallest) - std::bit_cast<float>(kSmallest);
    const std::uint32_t sign = std::uint32_t(bits & 0x8000) << 16;
    return std::bit_cast<float>(sign | (exponent == 0 ? std::bit_cast<std::uint32_t>(small) : normal));
  }

  /// To the nearest, ties to even; from 65520 on to infinity.
  GS_HD static Fp16 nearest(float x) {
    const std::uint32_t size = magnitude_of(x);
    const std::uint32_t normal = (size - kRebias + 0xFFF + (size >> 13 & 1)) >> 13;
    const float small = std::bit_cast<float>(size) + 0.5f;  // rounds to a multiple of 2^-24, in the low bits
    return of(x, size < kNormal ? std::bit_cast<std::uint32_t>(small) - std::bit_cast<std::uint32_t>(0.5f) : normal);
  }

  /// To either neighbour, each as likely as x is near to it; the low 16 bits of `random` decide. What fp16 can hold
  /// stays as it is; from 65504 to 65536 infinity counts as 65536.
  GS_HD static Fp16 random(float x, std::uint32_t random) {
    const std::uint32_t size = magnitude_of(x);
    const std::uint32_t normal = (size - kRebias + (random & 0x1FFF)) >> 13;
    const float bounded = std::bit_cast<float>(size < kNormal ? size : std::uint32_t(kNormal));  // no reference to it
    return of(x, size < kNormal ? (std::uint32_t(int(bounded * 0x1p40f)) + (random & 0xFFFF)) >> 16 : normal);
  }

 private:
  static constexpr std::uint32_t kRebias = 112 << 23;  // float32's exponents less fp16's
  static constexpr std::uint32_t kNormal = 113 << 23;  // 2^-14, the smallest with all bits

  GS_HD static Fp16 of(float x, std::uint32_t rounded) {
    constexpr std::uint32_t kTooLarge = 143 << 23;  // 2^16
    const std::uint32_t size = magnitude_of(x), sign = std::bit_cast<std::uint32_t>(x) >> 16 & 0x8000;
    const std::uint32_t finite = size < kTooLarge ? rounded : 0x7C00;
    return {std::uint16_t(size > kInfinity ? 0x7FFF : sign | finite)};
  }
};

struct Bf16 {
  std::uint16_t bits = 0;

  GS_HD operator float() const { return std::bit_cast<float>(std::uint32_t(bits) << 16); }

  /// To the nearest, ties to even.
  GS_HD static Bf16 nearest(float x) { return of(x, 0x7FFF + (std::bit_cast<std::uint32_t>(x) >> 16 & 1)); }

  /// As Fp16::random.
  GS_HD static Bf16 random(float x, std::uint32_t random) { return of(x, random & 0xFFFF); }

 private:
  GS_HD static Bf16 of(float x, std::uint32_t add) {
    const std::uint32_t rounded = (std::bit_cast<std::uint32_t>(x) + add) >> 16;
    return {std::uint16_t(magnitude_of(x) > kInfinity ? 0x7FFF : rounded)};
  }
};

/// x as T stores it: float itself, or the nearest.
template <class T>
GS_HD T nearest(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    return T::nearest(x);
  }
}

/// Calls f(T()) with the C++ type of `type`'s values.
template <class F>
void with_type(RowType type, const F& f) {
  switch (type) {
    case RowType::fp32:
      return f(float());
    case RowType::fp16:
      return f(Fp16());
    case RowType::bf16:
      return f(Bf16());
  }
}

}  // namespace gs::kernels
