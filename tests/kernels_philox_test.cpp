#include <gtest/gtest.h>

#include <set>

#include "kernels/philox.hpp"

namespace gs {
namespace {

void expect_words(Philox4 got, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  EXPECT_EQ(got.word[0], a);
  EXPECT_EQ(got.word[1], b);
  EXPECT_EQ(got.word[2], c);
  EXPECT_EQ(got.word[3], d);
}

// The known answers of Random123 1.09 for philox4x32-10.
TEST(Philox, GivesTheKnownAnswers) {
  expect_words(philox4x32({{0, 0, 0, 0}}, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  expect_words(philox4x32({{~0u, ~0u, ~0u, ~0u}}, ~std::uint64_t(0)), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
  expect_words(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822u), 0xd16cfe09,
               0x94fdcceb, 0x5001e420, 0x24126ea1);
}

TEST(Philox, PurposesEpochsAndStepsDiffer) {
  std::set<std::uint64_t> seen;
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch)
    for (std::uint64_t index : {std::uint64_t(0), std::uint64_t(1), std::uint64_t(1) << 32})
      for (std::uint32_t step = 0; step < 4; ++step)
        for (Draw purpose : {Draw::walk, Draw::window, Draw::negative, Draw::order})
          seen.insert(draw(7, epoch, index, step, purpose).low());

  EXPECT_EQ(seen.size(), 4u * 3 * 4 * 4);
}

TEST(Below, StaysBelowItsBoundAndReachesBothEnds) {
  for (std::uint64_t bound : {std::uint64_t(1), std::uint64_t(3), std::uint64_t(1) << 33}) {
    EXPECT_EQ(below(0, bound), 0u);
    EXPECT_EQ(below(~std::uint64_t(0), bound), bound - 1);
  }
}

TEST(Shuffled, IsABijectionForEverySmallCount) {
  for (std::uint64_t count = 1; count < 70; ++count) {
    std::set<std::uint64_t> images;
    for (std::uint64_t i = 0; i < count; ++i) images.insert(shuffled(i, count, 42));

    EXPECT_EQ(images.size(), count);
    EXPECT_EQ(*images.rbegin(), count - 1);
  }
}

TEST(Shuffled, KeysGiveDifferentOrders) {
  int same = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) same += shuffled(i, 1000, 1) == shuffled(i, 1000, 2) ? 1 : 0;

  EXPECT_LT(same, 20);  // about 1 by chance
}

}  // namespace
}  // namespace gs
