// What a device can do at most: multiply-adds kept in registers, and rows read and written in a given order. The
// yardsticks that benchmarks hold the other kernels against.
#include "kernels/exec.hpp"
#include "kernels/ops.hpp"
#if !defined(__CUDACC__)
#include "kernels/simd.hpp"
#endif

namespace gs::kernels::GS_BACKEND {

#if defined(__CUDACC__) || defined(GS_EMULATED)
using Chain = float;
inline constexpr int kChainWidth = 1;
#else
using Chain = simd::Vec;
inline constexpr int kChainWidth = simd::kLanes;
#endif

/// A unit is a value on a thread of its own (CUDA), or a vector of values (CPU).
struct MultiplyAdds {
  Span<float> values;
  int rounds;

  GS_DEV void operator()(Offset first, int count) const {
    for (Offset i = first; i < first + count; i += kChainWidth) {
      Chain& value = *reinterpret_cast<Chain*>(&values[i]);
      Chain chain[kMultiplyAddChains];
      GS_UNROLL
      for (int k = 0; k < kMultiplyAddChains; ++k) chain[k] = value + float(k);
      for (int round = 0; round < rounds; ++round) {
        GS_UNROLL
        for (int k = 0; k < kMultiplyAddChains; ++k) chain[k] = chain[k] * 0.5f + 1.0f;
      }
      Chain sum = chain[0];
      GS_UNROLL
      for (int k = 1; k < kMultiplyAddChains; ++k) sum += chain[k];
      value = sum;
    }
  }
};

void multiply_adds(Span<float> values, int rounds, const Exec& exec) {
  GS_EXPECT(values.size % 64 == 0, "multiply_adds: ", values.size, " values are not a multiple of 64");
  for_each_flock("multiply_adds", values.size, MultiplyAdds{values, rounds}, exec);
}

/// A unit is kGroup rows: a block whose threads share them, 16 bytes each (CUDA), or a thread that asks memory for the
/// rows to come (CPU).
struct NegateRows {
  static constexpr int kGroup = 8;   // rows of 128 columns that 256 threads move at once
  static constexpr int kAhead = 12;  // rows: covers the latency of memory, and fits the misses a core has in flight
  Rows<float> table;
  Span<const RowId> order;

  GS_DEV void operator()(const Team& team, Offset group, Offset) const {
    const Offset first = group * kGroup, last = first + kGroup < order.size ? first + kGroup : order.size;
    const int packs = int(table.stride) / kPack, lanes = packs < team.size() ? packs : team.size();
    const int at_once = team.size() / lanes;
    if (team.rank() >= at_once * lanes) return;
    for (Offset i = first + team.rank() / lanes; i < last; i += at_once) {
      if (i + kAhead < order.size) ask_for(table.row(order[i + kAhead]));
      float* row = table.row(order[i]);
      if (team.size() == 1) {
#pragma omp simd
        for (int c = 0; c < int(table.stride); ++c) row[c] = -row[c];
      } else {
        for (int p = team.rank() % lanes; p < packs; p += lanes) {
          Pack4& v = reinterpret_cast<Pack4*>(row)[p];
          v = {-v.x, -v.y, -v.z, -v.w};
        }
      }
    }
  }

 private:
  GS_DEV void ask_for(const float* row) const {
    for (Offset c = 0; c < table.stride; c += 16) prefetch(row + c);
  }
};

void negate_rows(Rows<float> table, Span<const RowId> order, const Exec& exec) {
  GS_EXPECT(table.stride % 16 == 0, "negate_rows: a stride of ", table.stride, " floats is not whole 64-byte lines");
  const Offset groups = (order.size + NegateRows::kGroup - 1) / NegateRows::kGroup;
  for_each_team("negate_rows", groups, 0, NegateRows{table, order}, exec);
}

}  // namespace gs::kernels::GS_BACKEND
