// The transports that need no launcher, held against what every transport must do.
#include <gtest/gtest.h>

#include "src/exchange/pieces.hpp"
#include "tests/support/comm_conformance.hpp"
#include "tests/support/ranks.hpp"

namespace gs {
namespace {

class EveryTransport : public testing::TestWithParam<std::tuple<Transport, int>> {
 protected:
  void run(const std::function<void(Comm&)>& body) const {
    run_on_ranks(std::get<1>(GetParam()), body, std::get<0>(GetParam()));
  }
};

TEST_P(EveryTransport, EachRankGetsWhatEachSentItWhateverTheSizes) {
  run([](Comm& comm) { conformance::uneven_parts(comm); });
}

TEST_P(EveryTransport, PartsMayBeEmpty) {
  run([](Comm& comm) { conformance::empty_parts(comm); });
}

TEST_P(EveryTransport, CallsDoNotMix) {
  run([](Comm& comm) { conformance::random_parts(comm); });
}

TEST_P(EveryTransport, MessagesFarBeyondSocketBuffersCrossAllAtOnce) {
  run([](Comm& comm) { conformance::large_parts(comm); });
}

TEST_P(EveryTransport, AllReduceAddsInTheOrderOfRanksToTheSameBits) {
  run([](Comm& comm) { conformance::all_reduce(comm); });
}

TEST_P(EveryTransport, BroadcastComesFromAnyRoot) {
  run([](Comm& comm) { conformance::broadcast(comm); });
}

TEST_P(EveryTransport, TextsAndCountsReachEveryRank) {
  run([](Comm& comm) { conformance::texts_and_counts(comm); });
}

TEST_P(EveryTransport, NoRankPassesABarrierBeforeAllHaveCome) {
  std::atomic<int> arrived{0};
  run([&](Comm& comm) { conformance::barrier(comm, &arrived); });
}

TEST_P(EveryTransport, AHandshakeNamesWhatDiffersAndOnWhichRanks) {
  run([](Comm& comm) { conformance::handshakes(comm); });
}

TEST_P(EveryTransport, RanksKnowTheirNumbersAndTransport) {
  std::atomic<int> seen{0};
  run([&](Comm& comm) {
    EXPECT_EQ(comm.size(), std::get<1>(GetParam()));
    EXPECT_EQ(comm.transport(), name_of(std::get<0>(GetParam())));
    EXPECT_FALSE(comm.device().is_cuda());
    seen += 1 << comm.rank();
  });
  EXPECT_EQ(seen.load(), (1 << std::get<1>(GetParam())) - 1);
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryTransport,
                         testing::Combine(testing::ValuesIn(kThreadTransports), testing::Values(1, 2, 3, 8)),
                         [](const auto& info) {
                           return cat(name_of(std::get<0>(info.param)), "_", std::get<1>(info.param));
                         });

TEST(Pieces, CutTransfersOfMoreThanTwoToThe31Bytes) {
  constexpr Offset kTotal = 5'000'000'000, kMost = 0x7FFFF000;
  std::vector<Offset> pieces;
  for (Offset done = 0; done < kTotal; done += pieces.back()) pieces.push_back(next_piece(kTotal, done, kMost));
  EXPECT_EQ(pieces, (std::vector<Offset>{kMost, kMost, kTotal - 2 * kMost}));
  EXPECT_EQ(next_piece(0, 0, kMost), 0);
}

TEST(Pieces, EvenPiecesCoverAnySizeOnce) {
  for (const Offset size : {Offset(0), Offset(1), Offset(7), Offset(1000), Offset(5'000'000'003), Offset(1) << 56})
    for (const int count : {1, 2, 3, 8, 64}) {
      Offset end = 0;
      for (int i = 0; i < count; ++i) {
        const auto [first, last] = even_piece(size, count, i);
        EXPECT_EQ(first, end);
        EXPECT_GE(last - first, size / count);
        EXPECT_LE(last - first, size / count + 1);
        end = last;
      }
      EXPECT_EQ(end, size);
    }
}

TEST(Comm, RefusesPartsThatDoNotFitTheRanks) {
  const std::unique_ptr<Comm> comm = std::move(open_local(1, 1)[0]);
  const std::vector<Offset> one{4}, two{4, 4}, less{3}, negative{-1};
  char from[8], to[8];

  EXPECT_THROW(comm->all_to_all(from, two, to, two), Error);
  EXPECT_THROW(comm->all_to_all(from, one, to, less), Error);
  EXPECT_THROW(comm->all_to_all(from, negative, to, negative), Error);
  EXPECT_NO_THROW(comm->all_to_all(from, one, to, one));
}

}  // namespace
}  // namespace gs
