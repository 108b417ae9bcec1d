#include "graphscale/core.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

TEST(Core, ParallelForCoversEveryIndexOnce) {
  std::vector<std::atomic<int>> seen(1000);

  parallel_for(3, 1000, 7, [&](Offset first, Offset last, int) {
    for (Offset i = first; i < last; ++i) ++seen[std::size_t(i)];
  });

  for (const auto& count : seen) EXPECT_EQ(count.load(), 1);
}

TEST(Core, AnExceptionInAThreadReachesTheCaller) {
  EXPECT_THROW(on_threads(4, [](int thread) {
                 if (thread == 2) throw Error(Fault::input, "bad");
               }),
               Error);
}

TEST(Core, TheLedgerAddsUpByPurposeAndForgetsWhatIsReleased) {
  MemoryLedger ledger(Device{});

  {
    Buffer<float> a(ledger, 100, "rows"), b(ledger, 50, "rows");
    EXPECT_EQ(ledger.held_bytes("rows"), 600);
    EXPECT_EQ(a.data()[99], 0.0f);
    Buffer<float> moved = std::move(a);
    EXPECT_EQ(ledger.held_bytes("rows"), 600);
  }

  EXPECT_EQ(ledger.held_bytes("rows"), 0);
  EXPECT_EQ(ledger.peak_bytes(), 600);
}

TEST(Core, MoreMemoryThanThereIsIsRefusedByName) {
  MemoryLedger ledger(Device{});

  try {
    ledger.allocate(Offset{1} << 60, "rows");
    FAIL() << "an exbibyte was allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::memory);
    EXPECT_NE(std::string(error.what()).find("rows"), std::string::npos);
  }
}

}  // namespace
}  // namespace gs
