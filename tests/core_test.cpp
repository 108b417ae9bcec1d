#include "graphscale/core.hpp"

#include <gtest/gtest.h>

#include "src/core/device.hpp"

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
  EXPECT_THROW(on_threads(4,
                          [](int thread) {
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

TEST(Device, CodeServesItsMajorVersionAndPtxEverythingNewer) {
  EXPECT_TRUE(holds_code_for("80-real,90", 8, 0));
  EXPECT_TRUE(holds_code_for("80-real,90", 8, 6));
  EXPECT_TRUE(holds_code_for("80-real,90", 9, 0));
  EXPECT_TRUE(holds_code_for("80-real,90", 10, 0));
  EXPECT_FALSE(holds_code_for("80-real,90", 7, 5));
  EXPECT_FALSE(holds_code_for("80-real", 9, 0));
  EXPECT_FALSE(holds_code_for("86-real", 8, 0));
  EXPECT_TRUE(holds_code_for("native", 7, 0));
}

TEST(Device, UnknownNamesAreUsageErrorsAndMissingGpusDeviceErrors) {
  for (const char* name : {"gpu", "cuda:", "cuda:x", "cuda:1000", ""}) {
    try {
      choose_device(name);
      ADD_FAILURE() << name << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::usage) << name;
    }
  }
  EXPECT_FALSE(choose_device("cpu").is_cuda());
  try {
    choose_device("cuda:99");
    ADD_FAILURE() << "GPU 99 was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::device);
  }
}

TEST(Text, CountsBytesAndSecondsAreWrittenForPeople) {
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(17), "17 B");
  EXPECT_EQ(human_count(12300000), "12.3 M");
  EXPECT_EQ(human_seconds(3.21), "3.2 s");
  EXPECT_EQ(human_seconds(125), "2 min 05 s");
  EXPECT_EQ(human_seconds(7500), "2 h 05 min");
  EXPECT_EQ(with_commas(1049866), "1,049,866");
  EXPECT_EQ(with_commas(-1000), "-1,000");
  EXPECT_EQ(with_commas(999), "999");
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
