// Vectors of the CPU, and the few products and functions that kernels are made of.
//
// Written with GCC's vector types, so that one source serves AVX-512, AVX2 and SSE without -ffast-math; the order of
// adds is fixed for a given vector width.
#pragma once

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include <cmath>
#include <cstring>

#include "kernels/exec.hpp"

namespace gs::kernels::GS_BACKEND::simd {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif
using Vec [[gnu::vector_size(kLanes * 4), gnu::may_alias]] = float;
using IVec [[gnu::vector_size(kLanes * 4), gnu::may_alias]] = int;

GS_DEV Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
GS_DEV void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }
GS_DEV Vec all(float x) { return x - Vec{}; }

/// What need not stand at a multiple of a vector's size.
GS_DEV Vec load_any(const float* p) {
  using Anywhere [[gnu::vector_size(kLanes * 4), gnu::may_alias, gnu::aligned(4)]] = float;
  return *reinterpret_cast<const Anywhere*>(p);
}

/// The first `count` lanes, below kLanes, from or to memory; the others are 0, or left alone.
#if defined(__AVX512F__)
GS_DEV Vec load_first(const float* p, int count) { return Vec(_mm512_maskz_loadu_ps(__mmask16((1 << count) - 1), p)); }
#elif defined(__AVX__)
GS_DEV Vec load_first(const float* p, int count) {
  static constexpr int kMask[2 * kLanes] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return Vec(_mm256_maskload_ps(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + kLanes - count))));
}
#else
GS_DEV Vec load_first(const float* p, int count) {
  Vec v = {};
  std::memcpy(&v, p, std::size_t(count) * sizeof(float));
  return v;
}
#endif
GS_DEV void store_first(float* p, Vec v, int count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, __mmask16((1 << count) - 1), __m512(v));
#else
  std::memcpy(p, &v, std::size_t(count) * sizeof(float));
#endif
}
GS_DEV void store_any(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }

/// Keeps `v` in a register: g++ 12 would rather read a row again at every use, and the loads then bound the loop.
GS_DEV Vec held(Vec v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v));
#else
  asm("" : "+x"(v));
#endif
  return v;
}

// ---------------------------------------------------------------------------------------------------- size and root

GS_DEV Vec magnitude(Vec v) { return reinterpret_cast<Vec>(reinterpret_cast<IVec>(v) & 0x7FFFFFFF); }

/// `size` times the sign of x, 0 where x is 0.
GS_DEV Vec signed_by(Vec size, Vec x) {
  const IVec sign = reinterpret_cast<IVec>(x) & int(0x80000000);
  return x == 0.0f ? Vec{} : reinterpret_cast<Vec>(reinterpret_cast<IVec>(size) ^ sign);
}

GS_DEV Vec root(Vec v) {
#if defined(__AVX512F__)
  return Vec(_mm512_maskz_sqrt_ps(0xFFFF, __m512(v)));  // g++ 12 warns of the unmasked one
#elif defined(__AVX__)
  return Vec(_mm256_sqrt_ps(__m256(v)));
#else
  for (int i = 0; i < kLanes; ++i) v[i] = std::sqrt(v[i]);
  return v;
#endif
}

/// 1 / root, 0 of 0 and below the normal numbers; the estimate's error e becomes 1.5 e^2: below 1e-8, or 2e-7 without
/// AVX-512.
GS_DEV Vec inverse_root(Vec v) {
#if defined(__AVX512F__)
  const Vec near = Vec(_mm512_maskz_rsqrt14_ps(0xFFFF, __m512(v)));
#elif defined(__AVX__)
  const Vec near = Vec(_mm256_rsqrt_ps(__m256(v)));
#else
  const Vec near = 1.0f / root(v);
#endif
  return v < 1.2e-38f ? Vec{} : near * (1.5f - 0.5f * v * near * near);
}

// ------------------------------------------------------------------------------------------------- sums of vectors

/// a and b each hold `Sums` partial sums of kLanes / Sums lanes; the result holds those of a, then of b, halved in
/// width.
template <int Sums, int... Lane>
GS_DEV Vec halve(Vec a, Vec b, std::integer_sequence<int, Lane...>) {
  constexpr int width = kLanes / Sums, half = width / 2;
  return __builtin_shufflevector(a, b, (Lane / half / Sums * kLanes + Lane / half % Sums * width + Lane % half)...) +
         __builtin_shufflevector(a, b,
                                 (Lane / half / Sums * kLanes + Lane / half % Sums * width + Lane % half + half)...);
}

/// v holds sums of `Width` partial lanes each, at most 4: they are added within 128-bit lanes, where shuffles are
/// cheap, and the totals gathered into the first lanes.
template <int Width, int... Lane>
GS_DEV Vec gather_sums(Vec v, std::integer_sequence<int, Lane...>) {
  if constexpr (Width >= 4) v += __builtin_shufflevector(v, v, (Lane ^ 2)...);
  if constexpr (Width >= 2) v += __builtin_shufflevector(v, v, (Lane ^ 1)...);
  return __builtin_shufflevector(v, v, (Lane * Width % kLanes)...);
}

/// Lane i of the result is the sum over acc[i]'s lanes, i < N; N a power of two, at most kLanes.
template <int N, int Sums = 1>
GS_DEV Vec lane_sums(const Vec* acc) {
  constexpr auto lanes = std::make_integer_sequence<int, kLanes>{};
  if constexpr (N == 1 && kLanes / Sums <= 4) {
    return gather_sums<kLanes / Sums>(acc[0], lanes);
  } else {
    Vec next[N > 1 ? N / 2 : 1];
    if constexpr (N == 1) {
      next[0] = halve<Sums>(acc[0], acc[0], lanes);
    } else {
      for (int i = 0; i < N / 2; ++i) next[i] = halve<Sums>(acc[2 * i], acc[2 * i + 1], lanes);
    }
    return lane_sums<(N > 1 ? N / 2 : 1), 2 * Sums>(next);
  }
}

// ------------------------------------------------------------------------------------------------ the two products

/// Lane a * Y + b of the result is x[a].y[b].
template <int X, int Y>
GS_DEV Vec dot_block(const float* const* x, const float* const* y, int columns) {
  Vec acc[X * Y] = {};
  for (int c = 0; c < columns; c += kLanes) {
    Vec left[X];
    for (int a = 0; a < X; ++a) left[a] = held(load(x[a] + c));
    for (int b = 0; b < Y; ++b) {
      const Vec right = held(load(y[b] + c));
      for (int a = 0; a < X; ++a) acc[a * Y + b] += left[a] * right;
    }
  }
  return lane_sums<X * Y>(acc);
}

/// A sum over rows r of coefficient[r * step] times row r, for two outputs whose coefficients are `second` apart.
struct WeightedRows {
  const float* const* rows;
  const float* coefficient;
  Offset step, second;
  int count;
};

/// acc[o][v] += the two sums of `w` over columns [column, column + V kLanes).
template <int V>
GS_DEV void add_weighted(const WeightedRows& w, int column, Vec (&acc)[2][V]) {
  const float* coefficient = w.coefficient;
  for (int r = 0; r < w.count; ++r, coefficient += w.step) {
    const Vec first = all(coefficient[0]), second = all(coefficient[w.second]);
    const float* row = w.rows[r] + column;
    for (int v = 0; v < V; ++v) {
      const Vec values = held(load(row + v * kLanes));
      acc[0][v] += first * values;
      acc[1][v] += second * values;
    }
  }
}

/// Both outputs of the sum of `parts` products; write(output, column, vector) takes the result.
template <int V, int Parts, class Write>
GS_DEV void weighted_block(const WeightedRows (&parts)[Parts], int column, const Write& write) {
  Vec acc[2][V] = {};
  for (const WeightedRows& part : parts) add_weighted<V>(part, column, acc);
  for (int o = 0; o < 2; ++o)
    for (int v = 0; v < V; ++v) write(o, column + v * kLanes, acc[o][v]);
}

/// The block of the last `vectors` vectors, V at most.
template <int V, int Parts, class Write>
GS_DEV void last_weighted_block(const WeightedRows (&parts)[Parts], int column, int vectors, const Write& write) {
  if constexpr (V > 0) {
    if (vectors == V) return weighted_block<V>(parts, column, write);
    last_weighted_block<V - 1>(parts, column, vectors, write);
  }
}

template <int Parts, class Write>
GS_DEV void weighted_sums(const WeightedRows (&parts)[Parts], int columns, const Write& write) {
  constexpr int kWide = kLanes == 16 ? 8 : 4;  // 2 x kWide accumulators: half of the vector registers
  int column = 0;
  for (; column + kWide * kLanes <= columns; column += kWide * kLanes) weighted_block<kWide>(parts, column, write);
  last_weighted_block<kWide - 1>(parts, column, (columns - column) / kLanes, write);
}

// -------------------------------------------------------------------------------------------------- sigma and loss

/// e^x for x <= 0, 0 below -87; relative error below 2e-7 (Cephes' polynomial on [-ln 2 / 2, ln 2 / 2]).
GS_DEV Vec exp_of_negative(Vec x) {
  const Vec bounded = x < -87.0f ? all(-87.0f) : x;
  const IVec n = __builtin_convertvector(bounded * 1.44269504f - 0.5f, IVec);  // truncation rounds x <= 0 to nearest
  const Vec whole = __builtin_convertvector(n, Vec);
  const Vec r = (bounded - whole * 0.693359375f) + whole * 2.12194440e-4f;
  Vec p = all(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const IVec scaled = reinterpret_cast<IVec>(p) + (n << 23);
  return x < -87.0f ? Vec{} : reinterpret_cast<Vec>(scaled);
}

/// ln x for x in [1, 2^100], absolute error below 1e-6 of max(1, ln x) (Cephes' polynomial).
GS_DEV Vec log_of(Vec x) {
  const IVec bits = reinterpret_cast<IVec>(x) - 0x3F3504F3;  // sqrt(1/2): the mantissa falls in [sqrt(1/2), sqrt 2)
  const Vec exponent = __builtin_convertvector(bits >> 23, Vec);
  const Vec m = reinterpret_cast<Vec>((bits & 0x007FFFFF) + 0x3F3504F3) - 1.0f;
  Vec p = all(7.0376836292e-2f);
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  return m - 0.5f * m * m + p * m * m * m + exponent * 0.69314718f;
}

GS_DEV float sum_of(Vec v) { return lane_sums<1>(&v)[0]; }

/// Lane-wise sums of log(1 + e^x), with few logarithms: the factors 1 + e^-|x| are at most 2, and 64 are multiplied
/// first.
class SoftplusSum {
 public:
  /// x, and e = e^-|x|.
  GS_DEV void add(Vec x, Vec e) {
    linear_ += x < 0.0f ? Vec{} : x;  // so written that NaN stays NaN
    product_ *= 1.0f + e;
    if (++factors_ == 64) logs_ += log_of(product_), product_ = all(1.0f), factors_ = 0;
  }
  GS_DEV Vec lanes() const { return linear_ + logs_ + log_of(product_); }

 private:
  Vec linear_ = {}, logs_ = {}, product_ = all(1.0f);
  int factors_ = 0;
};

/// values[0 .. count) <- rate * sigma(sign * value); adds their -log sigma(-sign * value) to `loss`. A score of -sign *
/// infinity gives 0 and 0. count is a multiple of 16; the array is whole vectors.
GS_DEV void sigmas(float* values, int count, float sign, float rate, SoftplusSum& loss) {
  for (int c = 0; c < count; c += kLanes) {
    const Vec x = load(values + c) * sign, e = exp_of_negative(x < 0.0f ? x : -x);
    loss.add(x, e);
    store(values + c, rate * (x > 0.0f ? all(1.0f) : e) / (1.0f + e));
  }
}

}  // namespace gs::kernels::GS_BACKEND::simd
