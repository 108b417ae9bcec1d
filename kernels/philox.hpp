// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): 128 random bits
// as a function of a counter and a key. The only source of randomness of the program.
#pragma once

#include <cstdint>

#include "graphscale/core.hpp"

namespace gs {

struct Philox4 {
  std::uint32_t word[4];
  GS_HD std::uint64_t low() const { return std::uint64_t(word[1]) << 32 | word[0]; }
  GS_HD std::uint64_t high() const { return std::uint64_t(word[3]) << 32 | word[2]; }
};

GS_HD inline Philox4 philox4x32(Philox4 counter, std::uint64_t key) {
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  std::uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2], c3 = counter.word[3];
  GS_UNROLL
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t(0xD2511F53u) * c0, p1 = std::uint64_t(0xCD9E8D57u) * c2;
    c0 = std::uint32_t(p1 >> 32) ^ c1 ^ k0;
    c1 = std::uint32_t(p1);
    c2 = std::uint32_t(p0 >> 32) ^ c3 ^ k1;
    c3 = std::uint32_t(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// What a draw is for: equal (seed, epoch, index, step) of two purposes are independent.
enum class Draw : std::uint32_t {
  walk = 0,
  window = 1,
  negative = 2,
  order = 3,
  initial = 4,
  edge = 5,
  split = 6,
  rounding = 7,
  in_batch = 8,
  line = 9,
};

/// The random bits of (seed, epoch, index, step): index is a walk, tile, row or edge, by purpose. epoch < 2^28.
GS_HD inline Philox4 draw(std::uint64_t seed, std::uint32_t epoch, std::uint64_t index, std::uint32_t step,
                          Draw purpose) {
  return philox4x32({{std::uint32_t(index), std::uint32_t(index >> 32), step, epoch << 4 | std::uint32_t(purpose)}},
                    seed);
}

/// floor(bits * bound / 2^64): uniform in [0, bound), each value's probability right within 2^-64.
GS_HD inline std::uint64_t below(std::uint64_t bits, std::uint64_t bound) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(bits, bound);
#else
  return std::uint64_t((unsigned __int128)bits * bound >> 64);
#endif
}

/// Uniform in [0, 1) with 24 bits.
GS_HD inline float unit_float(std::uint32_t bits) { return float(bits >> 8) * (1.0f / 16777216.0f); }

/// A keyed bijection of [0, count): where `index` comes in a shuffled order. A four-round Feistel network on the next
/// power of four, walked until it falls inside (Black, Rogaway: "Ciphers with arbitrary finite domains", 2002).
GS_HD inline std::uint64_t shuffled(std::uint64_t index, std::uint64_t count, std::uint64_t key) {
  int half_bits = 1;
  while ((std::uint64_t(1) << 2 * half_bits) < count) ++half_bits;
  const std::uint64_t mask = (std::uint64_t(1) << half_bits) - 1;
  do {
    std::uint64_t left = index >> half_bits, right = index & mask;
    for (std::uint32_t round = 0; round < 4; ++round) {
      std::uint64_t mixed = (right + 1) * 0x9E3779B97F4A7C15ull + key + (std::uint64_t(round) << 60);
      mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ull;
      mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBull;
      mixed ^= mixed >> 31;
      const std::uint64_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    index = left << half_bits | right;
  } while (index >= count);
  return index;
}

/// Where walk `walk` of an epoch starts: every node once in each pass of `nodes` walks, in a seeded order.
GS_HD inline RowId start_of_walk(std::uint64_t seed, std::uint32_t epoch, std::uint64_t walk, std::uint64_t nodes) {
  const std::uint64_t key = draw(seed, epoch, walk / nodes, 0, Draw::order).low();
  return RowId(shuffled(walk % nodes, nodes, key));
}

}  // namespace gs
