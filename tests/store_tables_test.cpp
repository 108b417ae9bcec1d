// Sharded tables: what is fetched, what a push changes, where rows lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/support/rank_tables.hpp"

namespace gs {
namespace {

using Case = TablesCase;

/// The gradient of a slot's column that its rank makes up.
float gradient_at(int rank, RowId row, int column, bool is_centre) {
  return unit_float(draw(kSeed, 2, row, std::uint32_t(4 * column + 2 * (rank % 2) + is_centre), Draw::edge).word[0]) -
         0.5f;
}

/// The vectors that a table of one rank starts with: those of all centres, or of the one table.
std::vector<float> first_rows(const Case& c) {
  const Offset stride = padded_stride(kDim);
  std::vector<float> values(std::size_t(c.rows() * stride), 0.0f);
  MemoryLedger ledger{Device{}};
  const Exec exec{{}, 1, nullptr, &ledger};
  const Rows<float> dense(values.data(), c.dense_rows, kDenseColumns, stride);
  const Rows<float> nodes(values.data() + c.dense_rows * stride, kNodes, kDim, stride);
  kernels::ops(exec).initialize_rows(dense, {}, kDenseScale, kSeed, exec);
  kernels::ops(exec).initialize_rows(nodes, {RowId(c.dense_rows)}, ModelShape::skip_gram(kNodes, kDim).initial_scale,
                                     kSeed, exec);
  return values;
}

/// Every way to lay rows out and to split roles, for the tables of every kind of model.
const std::vector<Case> kCases = [] {
  std::vector<Case> cases;
  const auto add = [&](const std::string& model, bool one_table, Offset dense_rows) {
    const auto on = [&](int ranks, const char* name, std::function<void(Config&)> change, bool asks_one_owner = false) {
      cases.push_back({ranks, model + name, std::move(change), asks_one_owner, one_table, dense_rows});
    };
    for (const int ranks : {1, 2, 3, 8}) {
      on(ranks, "Cyclic", [](Config&) {});
      on(ranks, "Partition", [](Config& c) { c.store.placement = "partition"; });
      on(ranks, "Head", [](Config& c) { c.store.replicated_rows = 5; });
      on(ranks, "Allreduce", [](Config& c) { c.exchange.method = "allreduce"; });
      on(ranks, "ColdRows", [](Config& c) { c.store.hot_rows = 2; });
      on(ranks, "Slices", [](Config& c) { c.training.deterministic = true; });
      on(ranks, "Feedback",
         [](Config& c) { c.exchange.compression = "topk", c.exchange.keep_share = 1, c.exchange.feedback_rows = 100; });
    }
    on(3, "OneComputes", [](Config& c) { c.ranks.compute = "1"; });
    on(3, "OneStores", [](Config& c) { c.ranks.storage = "2"; });
    on(4, "Apart", [](Config& c) { c.ranks.storage = "0,2", c.ranks.compute = "1,3"; });
    if (dense_rows == 0)
      on(
          8, "MoreThanThereIsRoomFor", [](Config&) {}, true);
  };
  add("TwoTables", false, 0);
  add("OneTable", true, 0);
  add("OneTableWithDenseRows", true, 11);
  const auto head = [](Config& c) { c.store.replicated_rows = 5; };
  cases.push_back({3, "TwoTablesWithDenseRows", head, false, false, 11});
  cases.push_back({3, "TwoTablesNoneFrozen", head, false, false, 0, true});
  cases.push_back({3, "OneTableNoneFrozen", head, false, true, 11, true});
  return cases;
}();

class Tables : public testing::TestWithParam<Case> {
 protected:
  const SmallGraph graph_ = random_graph(kNodes, 300, false, 3);
};

TEST_P(Tables, FetchTheRowsAsTheirOwnersHoldThem) {
  const bool one_table = GetParam().one_table;
  const std::vector<float> first = first_rows(GetParam());

  run_on_ranks(GetParam().ranks, [&](Comm& comm) {
    RankTables r(GetParam(), graph_, comm);
    r.tables->fetch(*r.step, {});

    const Batch& batch = r.step->batch;
    const Rows<float> centres = r.step->rows(r.step->centres), contexts = r.step->rows(r.step->contexts);
    const auto first_at = [&](Offset slot, int column) {
      return first[std::size_t(Offset(batch.rows()[slot]) * padded_stride(kDim) + column)];
    };
    for (const RowId slot : batch.node_slots())
      for (int c = 0; slot != kNoRow && c < kDim; ++c) ASSERT_EQ(centres(slot, c), first_at(slot, c)) << slot;
    for (Offset slot = 0; slot < batch.slots(); ++slot)
      for (int c = 0; c < kDim; ++c) ASSERT_EQ(contexts(slot, c), one_table ? first_at(slot, c) : 0.0f) << slot;
  });
}

TEST_P(Tables, TakeTheSumOfAllRanksGradientsAndChangeNoOtherRow) {
  constexpr float kRate = 0.25f;
  const bool one_table = GetParam().one_table;
  const std::vector<float> first = first_rows(GetParam());
  std::vector<double> expected(first.begin(), first.end());
  std::mutex mutex;
  std::vector<float> result;

  run_on_ranks(GetParam().ranks, [&](Comm& comm) {
    RankTables r(GetParam(), graph_, comm);
    r.tables->fetch(*r.step, {});
    const Batch& batch = r.step->batch;
    const kernels::TileGradients gradients = r.step->gradients();
    std::set<RowId> centre_slots;
    for (const RowId slot : batch.node_slots())
      if (slot != kNoRow) centre_slots.insert(slot);
    {
      const std::lock_guard lock(mutex);
      for (Offset slot = 0; slot < batch.slots(); ++slot)
        for (int c = 0; c < kDim; ++c) {
          const RowId row = batch.rows()[slot];
          double& of_row = expected[std::size_t(Offset(row) * padded_stride(kDim) + c)];
          const float as_context = gradient_at(r.rank, row, c, false), as_centre = gradient_at(r.rank, row, c, true);
          gradients.contexts(slot, c) += as_context;
          if (one_table) of_row -= kRate * as_context;
          if (!centre_slots.count(RowId(slot))) continue;
          gradients.centres(slot, c) += as_centre;
          of_row -= kRate * as_centre;
        }
    }
    kernels::UpdateRule rule;
    rule.learning_rate = kRate;
    r.tables->push(*r.step, rule);

    for (const Buffer<float>* sums : {&r.step->centre_gradients, &r.step->context_gradients})
      for (const float value : sums->span()) ASSERT_EQ(value, 0.0f) << "a gradient was left";
    std::vector<float> values = gathered(*r.tables, r.rank, GetParam().rows());
    if (r.rank == 0) result = std::move(values);
  });

  constexpr double kTolerance = 2e-6;  // float sums of at most 16 values below 1
  for (Offset row = 0; row < GetParam().rows(); ++row)
    for (int c = 0; c < kDim; ++c)
      ASSERT_NEAR(result[std::size_t(row * kDim + c)], expected[std::size_t(row * padded_stride(kDim) + c)], kTolerance)
          << "row " << row;
}

TEST_P(Tables, ShowEveryRankWhatTheLastPushDid) {
  const std::vector<float> first = first_rows(GetParam());
  kernels::UpdateRule rule;
  rule.learning_rate = 1;

  run_on_ranks(GetParam().ranks, [&](Comm& comm) {
    RankTables r(GetParam(), graph_, comm);
    r.tables->fetch(*r.step, {});
    const Batch& batch = r.step->batch;
    const kernels::TileGradients gradients = r.step->gradients();
    for (Offset slot = 0; slot < batch.slots(); ++slot) gradients.contexts(slot, 0) = 1;
    r.tables->push(*r.step, rule);
    r.tables->fetch(*r.step, {});

    // A context's column 0 is now less by the number of slots, over all ranks, that held its row.
    std::vector<Offset> held(std::size_t(GetParam().rows()), 0);
    for (const RowId row : batch.rows()) ++held[row];
    comm.all_reduce(Span<Offset>(held));
    const Rows<float> contexts = r.step->rows(r.step->contexts);
    for (Offset slot = 0; slot < batch.slots(); ++slot) {
      const RowId row = batch.rows()[slot];
      const float before = GetParam().one_table ? first[std::size_t(Offset(row) * padded_stride(kDim))] : 0.0f;
      ASSERT_EQ(contexts(slot, 0), before - float(held[row])) << "row " << row;
    }
  });
}

TEST_P(Tables, HoldWhatTheirSizeSays) {
  run_on_ranks(GetParam().ranks, [&](Comm& comm) {
    const RankTables r(GetParam(), graph_, comm);
    const RankPart part = r.placement.part_of(r.rank);
    const TablesSize size(r.shape, part, Device{});
    std::map<std::string, Offset> on_device, on_host;
    for (const std::vector<MemoryNeed>& needs : {size.tables(r.shape), size.step(r.shape, part, Device{})})
      for (const MemoryNeed& need : needs)
        if (need.bytes > 0) (need.on_host ? on_host : on_device)[need.purpose] += need.bytes;

    const auto held = [](const MemoryLedger& ledger) {
      std::map<std::string, Offset> bytes = ledger.held();
      std::erase_if(bytes, [](const auto& entry) { return entry.second == 0; });
      return bytes;
    };
    EXPECT_EQ(held(r.ledger), on_device);
    EXPECT_EQ(held(r.host), on_host);
    EXPECT_EQ(on_device.count("centres: hot rows") + on_device.count("head centres: hot rows") > 0,
              !GetParam().one_table && part.stores);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Tables, testing::ValuesIn(kCases),
                         [](const auto& info) { return cat(info.param.name, "On", info.param.ranks); });

// ------------------------------------------------------------------------------------------------------------ others

TEST(TablesOfRanks, TellEveryoneEveryRanksReport) {
  const SmallGraph graph = random_graph(kNodes, 300, false, 3);

  run_on_ranks(3, [&](Comm& comm) {
    RankTables r({3}, graph, comm);
    const auto reports = r.tables->fetch(*r.step, {100 + comm.rank(), 0.5 * comm.rank(), comm.rank() == 1, false, {}});

    ASSERT_EQ(reports.size(), 3u);
    for (int from = 0; from < 3; ++from) {
      EXPECT_EQ(reports[std::size_t(from)].pairs, 100 + from);
      EXPECT_EQ(reports[std::size_t(from)].loss, 0.5 * from);
      EXPECT_EQ(reports[std::size_t(from)].stop, from == 1);
    }
  });
}

TEST(TablesOfRanks, KeepTheHeadEqualOnAllRanksBetweenItsUpdates) {
  const SmallGraph graph = random_graph(kNodes, 300, false, 3);
  Case c{3, "", [](Config& config) { config.store.replicated_rows = 20, config.store.replicate_every = 2; }};

  run_on_ranks(3, [&](Comm& comm) {
    RankTables r(c, graph, comm);
    kernels::UpdateRule rule;
    rule.learning_rate = 1;
    const Batch& batch = r.step->batch;
    const Offset head_slots = batch.groups()[0].rows;
    for (int round = 1; round <= 4; ++round) {
      r.tables->fetch(*r.step, {});
      const Rows<float> contexts = r.step->rows(r.step->contexts);
      std::vector<Offset> held(20, 0);
      for (Offset slot = 0; slot < head_slots; ++slot) ++held[batch.rows()[slot]];
      comm.all_reduce(Span<Offset>(held));
      // Rounds 1 and 2 see no update, 3 and 4 that of two rounds' gradients.
      for (Offset slot = 0; slot < head_slots; ++slot)
        ASSERT_EQ(contexts(slot, 0), round <= 2 ? 0.0f : -2.0f * float(held[batch.rows()[slot]])) << round;
      for (Offset slot = 0; slot < batch.slots(); ++slot) r.step->gradients().contexts(slot, 0) = 1;
      r.tables->push(*r.step, rule);
    }
  });
}

TEST(TablesOfRanks, GrowWhereAStepAsksOneOwnerForMoreThanWasPlanned) {
  const SmallGraph graph = random_graph(kNodes, 300, false, 3);
  run_on_ranks(8, [&](Comm& comm) {
    RankTables r({8, "", [](Config&) {}, true}, graph, comm);
    const Offset before = r.ledger.peak_bytes();
    r.tables->fetch(*r.step, {});
    EXPECT_EQ(r.ledger.peak_bytes() > before, comm.rank() == 0);
    const Offset grown = r.ledger.peak_bytes();
    r.tables->push(*r.step, {});
    r.tables->fetch(*r.step, {});
    EXPECT_EQ(r.ledger.peak_bytes(), grown) << "once";
  });
}

TEST(TablesOfRanks, OfOneTableMoveARowOnce) {
  const SmallGraph graph = random_graph(kNodes, 300, false, 3);
  const Case c{2, "", [](Config&) {}, false, true, 11};
  std::vector<StoreCounters> all(2);

  run_on_ranks(2, [&](Comm& comm) {
    RankTables r(c, graph, comm);
    const Offset sent = comm.traffic().sent_bytes;
    r.tables->fetch(*r.step, {});
    const Offset for_rows = comm.traffic().sent_bytes - sent - kCountBytes;
    r.tables->push(*r.step, {});

    const StoreCounters& counters = all[std::size_t(comm.rank())] = r.tables->counters();
    EXPECT_EQ(counters.requested_rows, r.step->batch.requested());
    EXPECT_EQ(counters.unique_rows, r.step->batch.slots());
    EXPECT_GT(counters.head_rows, 0);
    EXPECT_LE(counters.head_rows, 11);
    EXPECT_EQ(counters.id_bytes, counters.remote_rows * 4);
    EXPECT_EQ(counters.id_bytes + counters.row_bytes, for_rows);
    EXPECT_EQ(counters.gradient_bytes, counters.remote_rows * (kDim + 1) * 4);
    EXPECT_EQ(counters.head_bytes, 11 * (padded_stride(kDim) + 1) * 4) << "half of it, there and back";
  });

  EXPECT_EQ(all[0].row_bytes, all[1].remote_rows * kDim * 4);
  EXPECT_EQ(all[0].hot_rows + all[1].hot_rows + all[0].head_rows + all[1].head_rows,
            all[0].unique_rows + all[1].unique_rows);
}

TEST(TablesOfRanks, OfScaleZeroStartAtZero) {
  run_on_ranks(2, [&](Comm& comm) {
    const Placement placement = Placement::cyclic(kNodes, 2, 3);
    MemoryLedger ledger{Device{}}, host{Device{}, true};
    const Exec exec{{}, 1, nullptr, &ledger};
    TablesShape shape = tables_shape(config_of({}), kNodes, kWalks, 3);
    shape.one_table = true, shape.initial_scale = 0, shape.dense_scale = kDenseScale;
    ShardedTables tables(shape, placement, kSeed, comm, comm, host, exec);

    const std::vector<float> values = gathered(tables, comm.rank(), 3 + kNodes);

    const auto is_zero = [](float value) { return value == 0 && !std::signbit(value); };
    const auto dense = std::ptrdiff_t(comm.rank() == 0 ? 3 * kDim : 0);
    EXPECT_TRUE(std::none_of(values.begin(), values.begin() + dense, is_zero));
    EXPECT_TRUE(std::all_of(values.begin() + dense, values.end(), is_zero));
  });
}

TEST(TablesOfRanks, UpdateDenseRowsAtEveryStepOrRefuse) {
  const SmallGraph graph = random_graph(kNodes, 300, false, 3);
  const Case c{1, "", [](Config& config) { config.store.replicate_every = 2; }, false, true, 11};
  run_on_ranks(1, [&](Comm& comm) { EXPECT_THROW(RankTables(c, graph, comm), Error); });
}

TEST(TablesOfRanks, CountRowsBytesAndHomes) {
  const SmallGraph graph = random_graph(kNodes, 300, false, 3);
  Case c{2, "", [](Config& config) { config.store.hot_rows = 40; }};
  std::vector<StoreCounters> all(2);
  std::vector<Traffic> traffic(2);

  run_on_ranks(2, [&](Comm& comm) {
    RankTables r(c, graph, comm);
    const Offset sent = comm.traffic().sent_bytes, received = comm.traffic().received_bytes;
    r.tables->fetch(*r.step, {});
    r.tables->push(*r.step, {});

    const StoreCounters& counters = all[std::size_t(comm.rank())] = r.tables->counters();
    EXPECT_EQ(counters.unique_rows, counters.head_rows + counters.local_rows + counters.remote_rows);
    EXPECT_GE(counters.requested_rows, counters.unique_rows);
    EXPECT_EQ(comm.traffic().sent_bytes - sent,
              counters.id_bytes + counters.row_bytes + counters.gradient_bytes + kCountBytes);
    EXPECT_EQ(comm.traffic().received_bytes - received, counters.received_bytes + kCountBytes);
    EXPECT_EQ(counters.gradient_bytes, counters.remote_rows * (kDim + 1) * 4);
  });

  EXPECT_EQ(all[0].row_bytes, all[1].remote_rows * kDim * 4);
  EXPECT_EQ(all[1].row_bytes, all[0].remote_rows * kDim * 4);
  EXPECT_EQ(all[0].hot_rows + all[0].cold_rows + all[1].hot_rows + all[1].cold_rows,
            all[0].unique_rows + all[1].unique_rows);
  EXPECT_GT(all[0].hot_rows, 0);
  EXPECT_GT(all[0].cold_rows, 0);
}

}  // namespace
}  // namespace gs
