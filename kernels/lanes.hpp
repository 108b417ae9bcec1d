// Lanes: the threads that share one row and its columns. A warp on CUDA, all of a team's threads when emulated, one
// thread with vector instructions on the CPU. What kernels over rows are written against.
//
// Lane l of a warp has columns l, l + 32, ... everywhere, so that a lane meets again what it wrote. Sums over columns
// are 32 partial sums, one a lane of a warp, added as a tree: the same bits on every backend.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kernels/exec.hpp"
#include "kernels/half.hpp"

namespace gs::kernels::GS_BACKEND {

inline constexpr int kPartials = 32;

/// Keys the rounding of a row: see UpdateRule.
struct RoundingKey {
  std::uint64_t seed;
  std::uint32_t step;
  RowId row;

  /// Bits for the columns c, c + 16, ... of the kSpan from `first` on, 16 a column; c < 16.
  GS_DEV Philox4 bits(int first, int c) const {
    return draw(seed, step, row, std::uint32_t(first / 8 + c), Draw::rounding);
  }
  static constexpr int kDraws = 16;  // a draw has the bits of eight columns
  static constexpr int kSpan = 8 * kDraws;
};

/// The rows that a team's item stands for: first, first + step, ... below last, for these lanes.
struct RowGroup {
  Offset first, last, step;
};

#if defined(__CUDACC__)

inline constexpr int kAhead = 0;  // other warps hide the latency

class Lanes {
 public:
  static constexpr int kGroup = 32;  // rows an item: four a warp, which then adds its totals once
  static constexpr int kReserved = 0;

  GS_DEV explicit Lanes(const Team& team) : scratch_(team.scratch), rank_(team.rank() % 32), warp_(team.rank() / 32) {}
  GS_DEV bool is_first() const { return rank_ == 0; }
  GS_DEV void sync() const { __syncwarp(); }
  GS_DEV RowGroup group(Offset index, Offset rows) const {
    const Offset first = index * kGroup;
    return {first + warp_, first + kGroup < rows ? first + kGroup : rows, kWarps};
  }
  /// This row's scratch of `bytes`, as told to for_each_row_group.
  GS_DEV char* scratch(Offset bytes) const { return scratch_ + warp_ * bytes; }
  static Offset scratch_bytes(Offset bytes) { return kWarps * bytes; }

  template <class F>
  GS_DEV void each(int columns, const F& f) const {
    for (int c = rank_; c < columns; c += 32) f(c);
  }

  template <class F>
  GS_DEV void each_with_bits(int columns, const RoundingKey& key, const F& f) const {
    for (int first = 0; first < columns; first += RoundingKey::kSpan) {
      const Philox4 random = key.bits(first, rank_ % 16);
      GS_UNROLL
      for (int j = 0; j < 4; ++j)
        if (const int c = first + 32 * j + rank_; c < columns) f(c, random.word[j] >> (rank_ & 16));
    }
  }

  template <class F>
  GS_DEV float sum(int columns, const F& add) const {
    float sum = 0;
    for (int c = rank_; c < columns; c += 32) sum = add(sum, c);
    for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
    return sum;
  }
  template <class F>
  GS_DEV int count(int columns, const F& holds) const {
    int count = 0;
    for (int c = rank_; c < columns; c += 32) count += holds(c);
    return int(__reduce_add_sync(~0u, unsigned(count)));
  }
  template <class F>
  GS_DEV std::uint32_t most(int columns, const F& of) const {
    std::uint32_t most = 0;
    for (int c = rank_; c < columns; c += 32) most = of(c) > most ? of(c) : most;
    return __reduce_max_sync(~0u, most);
  }
  template <class F>
  GS_DEV std::uint32_t mask(int first, int columns, const F& holds) const {
    return __ballot_sync(~0u, first + rank_ < columns && holds(first + rank_));
  }
  GS_DEV std::uint32_t own_bits() const { return 1u << rank_; }

 private:
  static constexpr int kWarps = kThreads / 32;
  char* scratch_;
  int rank_, warp_;
};

#else  // ------------------------------------------------------------------------------------ cpu and emulated

using Partials [[gnu::vector_size(kPartials / 2 * 4), gnu::may_alias]] = float;

/// Lane k is added to lane k + 16, then k + 8, 4, 2, 1: what a warp's butterfly gives its first lane.
template <int... Lane>
GS_DEV float sum_of_partials(const float* partial, std::integer_sequence<int, Lane...>) {
  auto* halves = reinterpret_cast<const Partials*>(partial);
  Partials sum = halves[0] + halves[1];
  sum += __builtin_shufflevector(sum, sum, (Lane ^ 8)...);
  sum += __builtin_shufflevector(sum, sum, (Lane ^ 4)...);
  sum += __builtin_shufflevector(sum, sum, (Lane ^ 2)...);
  sum += __builtin_shufflevector(sum, sum, (Lane ^ 1)...);
  return sum[0];
}
GS_DEV float sum_of_partials(const float* partial) {  // [32], aligned to 64 bytes
  return sum_of_partials(partial, std::make_integer_sequence<int, kPartials / 2>());
}

#if defined(GS_EMULATED)

inline constexpr int kAhead = 2;

class Lanes {
 public:
  static constexpr int kGroup = 3;  // small and odd, so that ends of groups are met
  static constexpr int kReserved = kPartials * 4;

  explicit Lanes(const Team& team) : team_(team) {}
  bool is_first() const { return team_.rank() == 0; }
  void sync() const { team_.sync(); }
  RowGroup group(Offset index, Offset rows) const { return {index * kGroup, std::min(rows, (index + 1) * kGroup), 1}; }
  char* scratch(Offset) const { return team_.scratch + kReserved; }
  static Offset scratch_bytes(Offset bytes) { return bytes + kReserved; }

  template <class F>
  void each(int columns, const F& f) const {
    for (int c = team_.rank(); c < columns; c += team_.size()) f(c);
  }

  template <class F>
  void each_with_bits(int columns, const RoundingKey& key, const F& f) const {
    for (int c = team_.rank(); c < columns; c += team_.size()) {
      const int place = c % RoundingKey::kSpan, half = place / RoundingKey::kDraws;
      const Philox4 random = key.bits(c - place, place % RoundingKey::kDraws);
      f(c, random.word[half / 2] >> 16 * (half % 2));
    }
  }

  template <class F>
  float sum(int columns, const F& add) const {
    auto* shared = reinterpret_cast<float*>(team_.scratch);
    for (int lane = team_.rank(); lane < kPartials; lane += team_.size()) {
      float sum = 0;
      for (int c = lane; c < columns; c += kPartials) sum = add(sum, c);
      shared[lane] = sum;
    }
    alignas(64) float partial[kPartials];
    read_shared(partial);
    return sum_of_partials(partial);
  }
  template <class F>
  int count(int columns, const F& holds) const {
    int count = 0;
    for (int c = team_.rank(); c < columns; c += team_.size()) count += holds(c);
    int sum = 0;
    for (int other : of_all(count)) sum += other;
    return sum;
  }
  template <class F>
  std::uint32_t most(int columns, const F& of) const {
    std::uint32_t most = 0;
    for (int c = team_.rank(); c < columns; c += team_.size()) most = std::max(most, of(c));
    for (std::uint32_t other : of_all(most)) most = std::max(most, other);
    return most;
  }
  template <class F>
  std::uint32_t mask(int first, int columns, const F& holds) const {
    std::uint32_t mask = 0;
    for (int k = 0; k < 32 && first + k < columns; ++k) mask |= std::uint32_t(holds(first + k)) << k;
    return mask;
  }
  std::uint32_t own_bits() const { return 0x11111111u << team_.rank(); }
  static_assert(kTeamThreads == 4, "a lane's columns are those of its bits");

 private:
  template <class T, std::size_t N>
  void read_shared(T (&values)[N]) const {
    team_.sync();
    std::copy_n(reinterpret_cast<const T*>(team_.scratch), N, values);
    team_.sync();
  }
  template <class T>
  std::array<T, kTeamThreads> of_all(T mine) const {
    reinterpret_cast<T*>(team_.scratch)[team_.rank()] = mine;
    T values[kTeamThreads];
    read_shared(values);
    return std::to_array(values);
  }

  const Team& team_;
};

#else

inline constexpr int kAhead = 8;  // rows; 4 to 16 measure alike

class Lanes {
 public:
  static constexpr int kGroup = 8;  // rows an item; threads take 32 items at once

  GS_DEV explicit Lanes(const Team& team) : scratch_(team.scratch) {}
  GS_DEV bool is_first() const { return true; }
  GS_DEV void sync() const {}
  GS_DEV RowGroup group(Offset index, Offset rows) const {
    const Offset first = index * kGroup;
    return {first, first + kGroup < rows ? first + kGroup : rows, 1};
  }
  GS_DEV char* scratch(Offset) const { return scratch_; }
  static Offset scratch_bytes(Offset bytes) { return bytes; }

  template <class F>
  GS_DEV void each(int columns, const F& f) const {
#pragma omp simd
    for (int c = 0; c < columns; ++c) f(c);
  }

  template <class F>
  GS_DEV void each_with_bits(int columns, const RoundingKey& key, const F& f) const {
    constexpr int kDraws = RoundingKey::kDraws;
    for (int first = 0; first < columns; first += RoundingKey::kSpan) {
      std::uint32_t random[4][2 * kDraws];  // of 32 columns each
#pragma omp simd
      for (int k = 0; k < kDraws; ++k) {
        const Philox4 bits = key.bits(first, k);
        GS_UNROLL
        for (int j = 0; j < 4; ++j) random[j][k] = bits.word[j], random[j][k + kDraws] = bits.word[j] >> 16;
      }
      for (int j = 0; j < 4 && first + 2 * kDraws * j < columns; ++j) {
        const int at = first + 2 * kDraws * j, here = columns - at < 2 * kDraws ? columns - at : 2 * kDraws;
#pragma omp simd
        for (int k = 0; k < here; ++k) f(at + k, random[j][k]);
      }
    }
  }

  template <class F>
  GS_DEV float sum(int columns, const F& add) const {
    alignas(64) float partial[kPartials] = {};
    int first = 0;
    for (; first + kPartials <= columns; first += kPartials) {
#pragma omp simd
      for (int k = 0; k < kPartials; ++k) partial[k] = add(partial[k], first + k);
    }
#pragma omp simd
    for (int k = 0; k < columns - first; ++k) partial[k] = add(partial[k], first + k);
    return sum_of_partials(partial);
  }
  template <class F>
  GS_DEV int count(int columns, const F& holds) const {
    int count = 0;
#pragma omp simd reduction(+ : count)
    for (int c = 0; c < columns; ++c) count += holds(c);
    return count;
  }
  template <class F>
  GS_DEV std::uint32_t most(int columns, const F& of) const {
    std::uint32_t most = 0;
#pragma omp simd reduction(max : most)
    for (int c = 0; c < columns; ++c) most = of(c) > most ? of(c) : most;
    return most;
  }
  template <class F>
  GS_DEV std::uint32_t mask(int first, int columns, const F& holds) const {
    std::uint32_t mask = 0;
    const int here = columns - first < 32 ? columns - first : 32;
#pragma omp simd reduction(| : mask)
    for (int k = 0; k < here; ++k) mask |= std::uint32_t(holds(first + k)) << k;
    return mask;
  }
  GS_DEV std::uint32_t own_bits() const { return ~0u; }

 private:
  char* scratch_;
};

#endif
#endif

/// The memory of a row that a CPU thread will soon need.
GS_DEV void ask_for(const void* row, Offset bytes) {
  for (Offset line = 0; line < bytes; line += 64) prefetch(static_cast<const char*>(row) + line);
}

/// body(team, g, next) for groups g of rows that cover [0, rows): the body asks Lanes(team).group(g, rows) for its
/// rows. row_scratch: bytes that each of a team's rows has to itself, a multiple of 16.
template <class Body>
void for_each_row_group(const char* op, Offset rows, Offset row_scratch, const Body& body, const Exec& exec) {
  const Offset groups = (rows + Lanes::kGroup - 1) / Lanes::kGroup;
  for_each_team(op, groups, Lanes::scratch_bytes(row_scratch), body, exec);
}

}  // namespace gs::kernels::GS_BACKEND
