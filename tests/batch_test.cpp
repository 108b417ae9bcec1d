#include "graphscale/batch.hpp"

#include <cstring>
#include <numeric>
#include <set>

#include "tests/support/backends.hpp"
#include "tests/support/graphs.hpp"

namespace gs {
namespace {

kernels::TileShape small_shape() {
  kernels::TileShape shape;
  shape.walk_length = 7, shape.tiles_per_walk = 2, shape.shared_negatives = 3, shape.window = 2, shape.dim = 4;
  return shape;
}

/// Fills the walks and negatives of a started batch, which lies in host memory.
void fill(const Batch& batch, Offset nodes) {
  const auto at_random = [nodes](std::uint64_t i, std::uint32_t list) {
    return RowId(below(draw(1, 0, i, list, Draw::negative).low(), std::uint64_t(nodes)));
  };
  for (Offset i = 0; i < batch.nodes().size; ++i) batch.nodes()[i] = i % 7 == 6 ? kNoRow : at_random(i, 0);
  for (Offset i = 0; i < batch.negatives().size; ++i) batch.negatives()[i] = at_random(i, 1);
}

// --------------------------------------------------------------------------------------------------------------- batch

TEST(Batch, SlotsStandForTheRowsOfWalksAndNegatives) {
  TestDevice on(Backend::cpu);
  Batch batch(small_shape(), 20, 50, on.exec);
  for (const Offset walks : {20, 3, 0}) {
    batch.start({1, 0, 5, walks, 7});
    fill(batch, 50);
    batch.deduplicate({3, {}, {}}, 10, {}, on.exec);

    ASSERT_EQ(batch.node_slots().size, walks * 7);
    ASSERT_EQ(batch.negative_slots().size, walks * 2 * 3);
    EXPECT_EQ(batch.requested(), walks * (6 + 6));  // the seventh node of each walk is none
    EXPECT_LE(batch.slots(), Batch::capacity_rows(small_shape(), 20, 50));
    for (Offset i = 0; i < batch.node_slots().size; ++i)
      if (batch.nodes()[i] == kNoRow) {
        EXPECT_EQ(batch.node_slots()[i], kNoRow);
      } else {
        EXPECT_EQ(batch.rows()[batch.node_slots()[i]], batch.nodes()[i]);
      }
    for (Offset i = 0; i < batch.negative_slots().size; ++i)
      EXPECT_EQ(batch.rows()[batch.negative_slots()[i]], batch.negatives()[i]);
  }
}

TEST(Batch, GroupsCoverTheSlotsInOrder) {
  TestDevice on(Backend::cpu);
  Batch batch(small_shape(), 20, 50, on.exec);
  batch.start({1, 0, 0, 20, 7});
  fill(batch, 50);

  batch.deduplicate({3, {}, {}}, 10, {}, on.exec);

  ASSERT_EQ(batch.groups().size(), 4u);
  const std::set<RowId> nodes(batch.nodes().begin(), batch.nodes().end());
  Offset slot = 0, node_positions = 0, negative_positions = 0;
  for (std::size_t g = 0; g < 4; ++g) {
    const Batch::Group& group = batch.groups()[g];
    EXPECT_EQ(group.first_slot, slot);
    for (Offset i = 0; i < group.rows; ++i, ++slot) {
      const RowId row = batch.rows()[slot];
      EXPECT_EQ(g, row < 10 ? 0 : 1 + row % 3);
      EXPECT_EQ(batch.local_rows()[slot], row < 10 ? row : row / 3);
      EXPECT_EQ(nodes.count(row) > 0, i < group.centre_rows);
    }
    node_positions += group.node_positions, negative_positions += group.negative_positions;
  }
  EXPECT_EQ(slot, batch.slots());
  EXPECT_EQ(node_positions, 20 * 6);
  EXPECT_EQ(negative_positions, 20 * 6);
}

TEST(Batch, RowsThatNobodyOwnsAreOfTheHead) {
  TestDevice on(Backend::cpu);
  constexpr RowId kDense = 8, kHead = kDense + 5;
  Batch batch(small_shape(), 20, 50, on.exec);
  batch.start({1, 0, 0, 20, 7});
  fill(batch, 50);

  batch.deduplicate({3, kDense, {}, {}}, kHead, {}, on.exec);

  std::set<RowId> head;
  for (Offset slot = 0; slot < batch.slots(); ++slot) {
    const RowId row = batch.rows()[slot];
    const bool in_head = slot < batch.groups()[0].rows;
    EXPECT_EQ(in_head, row < kHead);
    EXPECT_EQ(batch.local_rows()[slot], in_head ? row : (row - kDense) / 3);
    if (in_head) head.insert(row);
  }
  EXPECT_EQ(head.size(), std::size_t(kHead)) << "the draws meet all of them";
  for (Offset i = 0; i < batch.node_slots().size; ++i)
    EXPECT_EQ(batch.nodes()[i], batch.node_slots()[i] == kNoRow ? kNoRow : batch.rows()[batch.node_slots()[i]]);
  EXPECT_THROW(batch.deduplicate({3, kDense, {}, {}}, kDense - 1, {}, on.exec), Error);
}

TEST(Batch, HoldsTheBytesThatItSays) {
  for (const Offset walks : {0, 1, 100})
    for (const Offset nodes : {5, 1000000})
      for (const int slices : {1, kSlices}) {
        TestDevice on(Backend::cpu);
        const Batch batch(small_shape(), walks, nodes, on.exec, slices);

        EXPECT_EQ(on.ledger.held_bytes("batch: rows and slots"),
                  Batch::bytes(small_shape(), walks, nodes, on.device, slices));
        EXPECT_EQ(on.ledger.held().size(), 1u);
      }
}

TEST(Batch, SlicesHaveRowsOfTheirOwn) {
  TestDevice on(Backend::cpu);
  Batch batch(small_shape(), 32, 5, on.exec, kSlices);
  const WalkShare share = share_of_walks(0, 32, 0, 1, true);
  batch.start({1, 0, share.first, share.count, 7});
  fill(batch, 5);

  batch.deduplicate({1, {}, {}}, 0, share.slice_ends, on.exec);

  EXPECT_GT(batch.slots(), 5 * kSlices / 2);  // two walks and their negatives meet most of five rows
  std::map<RowId, Offset> slice_of;
  for (Offset i = 0; i < batch.node_slots().size; ++i)
    if (batch.node_slots()[i] != kNoRow) {
      const Offset slice = i / (2 * 7);
      EXPECT_EQ(slice_of.insert({batch.node_slots()[i], slice}).first->second, slice);
    }
  for (Offset i = 0; i < batch.negative_slots().size; ++i) {
    const Offset slice = i / (2 * 6);
    EXPECT_EQ(slice_of.insert({batch.negative_slots()[i], slice}).first->second, slice);
  }
  EXPECT_EQ(batch.groups()[1].centre_rows, batch.slots());
}

TEST(Batch, RefusesMoreThanItWasMadeFor) {
  TestDevice on(Backend::cpu);
  Batch batch(small_shape(), 4, 50, on.exec);
  EXPECT_THROW(batch.start({1, 0, 0, 5, 7}), Error);
  EXPECT_THROW(batch.start({1, 0, 0, 4, 8}), Error);
  batch.start({1, 0, 0, 4, 7});
  EXPECT_THROW(batch.deduplicate({}, 0, {2, 4}, on.exec), Error);
}

// -------------------------------------------------------------------------------------------------------------- shares

/// Every rank's walks, in the order of ranks.
std::vector<Offset> walks_of(const WalkShare& share) {
  if (!share.chosen.empty()) return share.chosen;
  std::vector<Offset> walks(std::size_t(share.count));
  std::iota(walks.begin(), walks.end(), share.first);
  return walks;
}

TEST(WalkShares, TogetherAreTheStepAndDifferByOneAtMost) {
  for (const Offset count : {0, 1, 7, 64, 1000})
    for (const int ranks : {1, 2, 3, 8, 20}) {
      std::vector<Offset> all, expected(static_cast<std::size_t>(count));
      std::iota(expected.begin(), expected.end(), 500);
      for (int index = 0; index < ranks; ++index) {
        const WalkShare share = share_of_walks(500, count, index, ranks, false);
        EXPECT_GE(share.count, count / ranks);
        EXPECT_LE(share.count, (count + ranks - 1) / ranks);
        EXPECT_TRUE(share.slice_ends.empty());
        for (const Offset walk : walks_of(share)) all.push_back(walk);
      }
      EXPECT_EQ(all, expected) << count << " walks on " << ranks << " ranks";
    }
}

TEST(WalkShares, OfADeterministicStepAreTheSameSlicesOnAnyRanks) {
  for (const Offset count : {0, 1, 7, 64, 1000}) {
    const auto slices_on = [count](int ranks) {
      std::vector<std::vector<Offset>> slices;
      for (int index = 0; index < ranks; ++index) {
        const WalkShare share = share_of_walks(500, count, index, ranks, true);
        const std::vector<Offset> walks = walks_of(share);
        Offset begin = 0;
        for (const Offset end : share.slice_ends) {
          slices.emplace_back(walks.begin() + begin, walks.begin() + end);
          begin = end;
        }
        EXPECT_EQ(begin, share.count);
      }
      return slices;
    };
    const auto slices = slices_on(1);

    EXPECT_EQ(slices.size(), std::size_t(kSlices));
    for (const int ranks : {2, 3, 8, 20}) EXPECT_EQ(slices_on(ranks), slices) << ranks << " ranks";
  }
}

TEST(WalkShares, ByStartAreTheStepAndMostlyStartAtHome) {
  const Offset nodes = 300;
  for (const int ranks : {1, 2, 3, 8}) {
    const kernels::WalkBatch step{3, 1, 200, 240, 7};
    const auto owner_of = [ranks](RowId row) { return int(row) % ranks; };
    std::set<Offset> all;
    Offset at_home = 0;
    for (int index = 0; index < ranks; ++index) {
      const WalkShare share = share_by_start(step, nodes, index, ranks, owner_of);
      EXPECT_EQ(share.count, Offset(share.chosen.size()));
      EXPECT_LE(share.count, (240 + ranks - 1) / ranks);
      for (const Offset walk : share.chosen) {
        EXPECT_TRUE(all.insert(walk).second) << "walk " << walk << " is trained twice";
        at_home += owner_of(start_of_walk(3, 1, std::uint64_t(walk), nodes)) == index ? 1 : 0;
      }
    }
    EXPECT_EQ(all.size(), 240u);
    EXPECT_EQ(*all.begin(), 200);
    EXPECT_EQ(*all.rbegin(), 439);
    EXPECT_GE(at_home, 200) << ranks << " ranks";  // of 240; a few must move for an even share
  }
}

TEST(WalkShares, ByStartStayEvenWhereOneRankOwnsAll) {
  const kernels::WalkBatch step{3, 1, 0, 10, 7};
  const auto owner_of = [](RowId) { return 2; };

  EXPECT_EQ(share_by_start(step, 300, 0, 4, owner_of).count, 3);
  EXPECT_EQ(share_by_start(step, 300, 1, 4, owner_of).count, 3);
  EXPECT_EQ(share_by_start(step, 300, 2, 4, owner_of).chosen, (std::vector<Offset>{0, 1, 2}));
  EXPECT_EQ(share_by_start(step, 300, 3, 4, owner_of).count, 1);
}

}  // namespace
}  // namespace gs
