// One gradient as bytes and back, a codec at a time; the formats are those of Compression.
//
//   encode   coded <- values [dim]
//   add      out [dim] += factor * what `coded` stands for; every product is a fused multiply-add, so that all backends
//            give the same bits
#pragma once

#include "kernels/lanes.hpp"

namespace gs::kernels::GS_BACKEND {

template <Compression kKind>
struct Coder;

template <class T>
struct PlainCoder {
  static GS_DEV void encode(const Lanes& lanes, const GradientCodec& codec, const float* values, char* coded) {
    T* out = reinterpret_cast<T*>(coded);
    lanes.each(codec.dim, [=](int c) { out[c] = nearest<T>(values[c]); });
    if (sizeof(T) == 2 && codec.dim % 2 != 0 && lanes.is_first()) out[codec.dim] = T();
  }
  static GS_DEV void add(const Lanes& lanes, const GradientCodec& codec, const char* coded, float factor, float* out) {
    const T* values = reinterpret_cast<const T*>(coded);
    lanes.each(codec.dim, [=](int c) { out[c] = fmaf(factor, values[c], out[c]); });
  }
};
template <>
struct Coder<Compression::none> : PlainCoder<float> {};
template <>
struct Coder<Compression::fp16> : PlainCoder<Fp16> {};

template <>
struct Coder<Compression::int8> {
  static GS_DEV void encode(const Lanes& lanes, const GradientCodec& codec, const float* values, char* coded) {
    constexpr float kLeast = 1e-30f;   // a row below it is sent as zeros: 127 / largest would be infinite
    constexpr float kWhole = 3 << 22;  // added to a small number, it leaves the nearest integer in the low bits
    constexpr float kSteps = 127;
    const float largest = std::bit_cast<float>(lanes.most(codec.dim, [=](int c) { return magnitude_of(values[c]); }));
    const float inverse = largest > kLeast ? kSteps / largest : 0;
    auto* out = reinterpret_cast<std::uint8_t*>(coded + 4);
    lanes.each(codec.dim,
               [=](int c) { out[c] = std::uint8_t(std::bit_cast<std::uint32_t>(fmaf(values[c], inverse, kWhole))); });
    if (!lanes.is_first()) return;
    *reinterpret_cast<float*>(coded) = largest <= kLeast ? 0 : largest / kSteps;  // NaN stays
    for (int c = codec.dim; c % 4 != 0; ++c) out[c] = 0;
  }
  static GS_DEV void add(const Lanes& lanes, const GradientCodec& codec, const char* coded, float factor, float* out) {
    const float scale = factor * *reinterpret_cast<const float*>(coded);
    const auto* values = reinterpret_cast<const std::int8_t*>(coded + 4);
    lanes.each(codec.dim, [=](int c) { out[c] = fmaf(float(values[c]), scale, out[c]); });
  }
};

template <>
struct Coder<Compression::topk> {
  static GS_DEV void encode(const Lanes& lanes, const GradientCodec& codec, const float* values, char* coded) {
    auto* kept = reinterpret_cast<float*>(coded);
    auto* columns = reinterpret_cast<std::uint16_t*>(kept + codec.keep);
    const std::uint32_t least = least_kept(lanes, codec, values);
    int place = 0;
    int room = codec.keep - lanes.count(codec.dim, [=](int c) { return magnitude_of(values[c]) > least; });
    for (int first = 0; first < codec.dim; first += 32) {
      std::uint32_t equal = lanes.mask(first, codec.dim, [=](int c) { return magnitude_of(values[c]) == least; });
      std::uint32_t taken = lanes.mask(first, codec.dim, [=](int c) { return magnitude_of(values[c]) > least; });
      for (; equal != 0 && room > 0; equal &= equal - 1, --room) taken |= equal & (0 - equal);
      for (std::uint32_t mine = taken & lanes.own_bits(); mine != 0; mine &= mine - 1) {
        const int bit = std::countr_zero(mine), at = place + std::popcount(taken & ((1u << bit) - 1));
        kept[at] = values[first + bit];
        columns[at] = std::uint16_t(first + bit);
      }
      place += std::popcount(taken);
    }
    if (codec.keep % 2 != 0 && lanes.is_first()) columns[codec.keep] = 0;
  }
  static GS_DEV void add(const Lanes& lanes, const GradientCodec& codec, const char* coded, float factor, float* out) {
    const auto* kept = reinterpret_cast<const float*>(coded);
    const auto* columns = reinterpret_cast<const std::uint16_t*>(kept + codec.keep);
    lanes.each(codec.keep, [=](int k) { out[columns[k]] = fmaf(factor, kept[k], out[columns[k]]); });
  }

 private:
  /// The magnitude that at least `keep` values have and fewer exceed, found a bit at a time; any that splits off
  /// exactly `keep` will do. NaN is larger than all numbers.
  static GS_DEV std::uint32_t least_kept(const Lanes& lanes, const GradientCodec& codec, const float* values) {
    std::uint32_t least = 0;
    for (int bit = 30; bit >= 0; --bit) {
      const std::uint32_t tried = least | 1u << bit;
      const int count = lanes.count(codec.dim, [=](int c) { return magnitude_of(values[c]) >= tried; });
      if (count >= codec.keep) least = tried;
      if (count == codec.keep) break;
    }
    return least;
  }
};

/// Means are of 32 columns at a time: one large column would keep a whole row's error large for many steps.
template <>
struct Coder<Compression::onebit> {
  struct Block {
    float below, others;  // means
    std::uint32_t signs;
  };

  static GS_DEV void encode(const Lanes& lanes, const GradientCodec& codec, const float* values, char* coded) {
    auto* const blocks = reinterpret_cast<Block*>(coded);
    for (int first = 0; first < codec.dim; first += 32) {
      const float* const here = values + first;
      const int width = codec.dim - first < 32 ? codec.dim - first : 32;
      const std::uint32_t signs = lanes.mask(first, codec.dim, [=](int c) { return values[c] >= 0; });
      const float below = lanes.sum(width, [=](float sum, int k) { return sum + (here[k] >= 0 ? 0 : here[k]); });
      const float others = lanes.sum(width, [=](float sum, int k) { return sum + (here[k] >= 0 ? here[k] : 0); });
      if (!lanes.is_first()) continue;
      const int count = std::popcount(signs);
      blocks[first / 32] = {count < width ? below / float(width - count) : 0, count > 0 ? others / float(count) : 0,
                            signs};
    }
  }
  static GS_DEV void add(const Lanes& lanes, const GradientCodec& codec, const char* coded, float factor, float* out) {
    const auto* const blocks = reinterpret_cast<const Block*>(coded);
    for (int first = 0; first < codec.dim; first += 32) {
      const Block block = blocks[first / 32];
      float* const here = out + first;
      lanes.each(codec.dim - first < 32 ? codec.dim - first : 32, [=](int k) {
        here[k] = fmaf(factor, (block.signs >> k & 1) != 0 ? block.others : block.below, here[k]);
      });
    }
  }
};

}  // namespace gs::kernels::GS_BACKEND
