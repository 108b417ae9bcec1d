// Sharded tables: what is fetched, what a push changes, where rows lie.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "graphscale/store.hpp"

#include "tests/support/graphs.hpp"
#include "tests/support/ranks.hpp"

namespace gs {
namespace {

constexpr Offset kNodes = 301, kWalks = 6;  // walks of a rank
constexpr int kDim = 20;
constexpr std::uint64_t kSeed = 7;

struct Case {
  int ranks = 1;
  const char* name = "";
  std::function<void(Config&)> change = [](Config&) {};
  bool asks_one_owner = false;  // every row is owner 0's
};

Config config_of(const Case& c) {
  Config config;
  config.model.dim = kDim, config.model.window = 2;
  config.sampler.walk_length = 5, config.sampler.shared_negatives = 3;
  config.training.max_row_step = config.training.curvature_limit = 0;
  c.change(config);
  return config;
}

/// One rank's end of the tables, with a step whose walks and negatives are drawn at random; ranks have 0, 1, 2 ... of
/// kWalks walks, so that some have none.
struct Rank {
  Rank(const Case& c, const SmallGraph& graph, Comm& comm)
      : config(config_of(c)),
        placement(Placement::make(config, graph.csr(), comm)),
        exec{{}, 1, nullptr, &ledger},
        rank(comm.rank()) {
    TablesShape shape = tables_shape(config, kNodes, kWalks);
    shape.hot_rows = config.store.hot_rows < 0 ? kNodes : config.store.hot_rows;
    tables = std::make_unique<ShardedTables>(shape, placement, kSeed, comm, comm, host, exec);
    step = tables->make_step();
    const int index = placement.compute_index(rank);
    const Offset walks = index < 0 ? 0 : (rank + 1) % (kWalks + 1);
    step->batch.start({kSeed, 0, 0, walks, config.sampler.walk_length});
    std::uint64_t draws = 0;
    const auto fill = [&](Span<RowId> rows) {
      for (RowId& row : rows)
        row = RowId(below(draw(kSeed, 1, draws++, std::uint32_t(rank), Draw::edge).low(), kNodes));
      for (RowId& row : rows)
        if (c.asks_one_owner) row -= row % RowId(c.ranks);
    };
    fill(step->batch.nodes()), fill(step->batch.negatives());
    if (walks > 0) step->batch.nodes()[4] = kNoRow;  // a walk that ended early
    const std::vector<Offset> ends =
        config.training.deterministic && walks > 0 ? std::vector<Offset>{walks / 2, walks} : std::vector<Offset>{};
    step->batch.deduplicate(tables->owners(), RowId(tables->head_rows()), ends, exec);
  }

  Config config;
  MemoryLedger ledger{Device{}}, host{Device{}, true};
  Placement placement;
  Exec exec;
  int rank;
  std::unique_ptr<ShardedTables> tables;
  std::unique_ptr<StepRows> step;
};

/// The gradient of a slot's column that its rank makes up.
float gradient_at(int rank, RowId row, int column, bool is_centre) {
  return unit_float(draw(kSeed, 2, row, std::uint32_t(4 * column + 2 * (rank % 2) + is_centre), Draw::edge).word[0]) -
         0.5f;
}

/// The vectors that a table of one rank starts with.
std::vector<float> first_centres() {
  std::vector<float> values(std::size_t(kNodes * padded_stride(kDim)), 0.0f);
  MemoryLedger ledger{Device{}};
  const Exec exec{{}, 1, nullptr, &ledger};
  const Rows<float> rows(values.data(), kNodes, kDim, padded_stride(kDim));
  kernels::ops(exec).initialize_rows(rows, {}, SkipGram::initial_scale(kDim), kSeed, exec);
  return values;
}

/// All centre vectors, on rank 0, gathered in two uneven blocks.
std::vector<float> gathered(ShardedTables& tables, int rank) {
  std::vector<float> values(std::size_t(rank == 0 ? kNodes * kDim : 0));
  for (const auto& [first, count] : {std::pair<Offset, Offset>{0, 40}, {40, kNodes - 40}})
    tables.gather_centres(first, {rank == 0 ? values.data() + first * kDim : nullptr, count, kDim, kDim});
  return values;
}

const std::vector<Case> kCases = [] {
  std::vector<Case> cases;
  for (const int ranks : {1, 2, 3, 8}) {
    cases.push_back({ranks, "Cyclic"});
    cases.push_back({ranks, "Partition", [](Config& c) { c.store.placement = "partition"; }});
    cases.push_back({ranks, "Head", [](Config& c) { c.store.replicated_rows = 5; }});
    cases.push_back({ranks, "Allreduce", [](Config& c) { c.exchange.method = "allreduce"; }});
    cases.push_back({ranks, "ColdRows", [](Config& c) { c.store.hot_rows = 2; }});
    cases.push_back({ranks, "Slices", [](Config& c) { c.training.deterministic = true; }});
  }
  cases.push_back({8, "MoreThanThereIsRoomFor", [](Config&) {}, true});
  cases.push_back({3, "OneComputes", [](Config& c) { c.ranks.compute = "1"; }});
  cases.push_back({3, "OneStores", [](Config& c) { c.ranks.storage = "2"; }});
  cases.push_back({4, "Apart", [](Config& c) { c.ranks.storage = "0,2", c.ranks.compute = "1,3"; }});
  return cases;
}();

class Tables : public testing::TestWithParam<Case> {
 protected:
  const SmallGraph graph_ = random_graph(kNodes, 300, false, 3);
};

TEST_P(Tables, FetchTheRowsAsTheirOwnersHoldThem) {
  const std::vector<float> first = first_centres();

  run_on_ranks(GetParam().ranks, [&](Comm& comm) {
    Rank r(GetParam(), graph_, comm);
    r.tables->fetch(*r.step, {});

    const Batch& batch = r.step->batch;
    const Rows<float> centres = r.step->rows(r.step->centres), contexts = r.step->rows(r.step->contexts);
    for (const RowId slot : batch.node_slots()) {
      if (slot == kNoRow) continue;
      const RowId row = batch.rows()[slot];
      for (int c = 0; c < kDim; ++c) {
        ASSERT_EQ(centres(slot, c), first[std::size_t(Offset(row) * padded_stride(kDim) + c)]) << row;
        ASSERT_EQ(contexts(slot, c), 0.0f);
      }
    }
  });
}

TEST_P(Tables, TakeTheSumOfAllRanksGradientsAndChangeNoOtherRow) {
  constexpr float kRate = 0.25f;
  const std::vector<float> first = first_centres();
  std::vector<double> expected(first.begin(), first.end());
  std::mutex mutex;
  std::vector<float> result;

  run_on_ranks(GetParam().ranks, [&](Comm& comm) {
    Rank r(GetParam(), graph_, comm);
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
          gradients.contexts(slot, c) = gradient_at(r.rank, row, c, false);
          if (!centre_slots.count(RowId(slot))) continue;
          gradients.centres(slot, c) = gradient_at(r.rank, row, c, true);
          expected[std::size_t(Offset(row) * padded_stride(kDim) + c)] -= kRate * gradients.centres(slot, c);
        }
    }
    kernels::UpdateRule rule;
    rule.learning_rate = kRate;
    r.tables->push(*r.step, rule);

    for (const Buffer<float>* sums : {&r.step->centre_gradients, &r.step->context_gradients})
      for (const float value : sums->span()) ASSERT_EQ(value, 0.0f) << "a gradient was left";
    std::vector<float> values = gathered(*r.tables, r.rank);
    if (r.rank == 0) result = std::move(values);
  });

  constexpr double kTolerance = 1e-6;  // float sums of at most 8 values below 1
  for (Offset row = 0; row < kNodes; ++row)
    for (int c = 0; c < kDim; ++c)
      ASSERT_NEAR(result[std::size_t(row * kDim + c)], expected[std::size_t(row * padded_stride(kDim) + c)], kTolerance)
          << "row " << row;
}

TEST_P(Tables, ShowEveryRankWhatTheLastPushDid) {
  kernels::UpdateRule rule;
  rule.learning_rate = 1;

  run_on_ranks(GetParam().ranks, [&](Comm& comm) {
    Rank r(GetParam(), graph_, comm);
    r.tables->fetch(*r.step, {});
    const Batch& batch = r.step->batch;
    const kernels::TileGradients gradients = r.step->gradients();
    for (Offset slot = 0; slot < batch.slots(); ++slot) gradients.contexts(slot, 0) = 1;
    r.tables->push(*r.step, rule);
    r.tables->fetch(*r.step, {});

    // A context's column 0 is now minus the number of slots, over all ranks, that held its row.
    std::vector<Offset> held(std::size_t(kNodes), 0);
    for (const RowId row : batch.rows()) ++held[row];
    comm.all_reduce(Span<Offset>(held));
    const Rows<float> contexts = r.step->rows(r.step->contexts);
    for (Offset slot = 0; slot < batch.slots(); ++slot)
      ASSERT_EQ(contexts(slot, 0), -float(held[batch.rows()[slot]])) << "row " << batch.rows()[slot];
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Tables, testing::ValuesIn(kCases),
                         [](const auto& info) { return cat(info.param.name, info.param.ranks); });

// ------------------------------------------------------------------------------------------------------------ others

TEST(TablesOfRanks, TellEveryoneEveryRanksReport) {
  const SmallGraph graph = random_graph(kNodes, 300, false, 3);

  run_on_ranks(3, [&](Comm& comm) {
    Rank r({3}, graph, comm);
    const auto reports = r.tables->fetch(*r.step, {100 + comm.rank(), 0.5 * comm.rank(), comm.rank() == 1, {}});

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
    Rank r(c, graph, comm);
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
    Rank r({8, "", [](Config&) {}, true}, graph, comm);
    const Offset before = r.ledger.peak_bytes();
    r.tables->fetch(*r.step, {});
    EXPECT_EQ(r.ledger.peak_bytes() > before, comm.rank() == 0);
    const Offset grown = r.ledger.peak_bytes();
    r.tables->push(*r.step, {});
    r.tables->fetch(*r.step, {});
    EXPECT_EQ(r.ledger.peak_bytes(), grown) << "once";
  });
}

TEST(TablesOfRanks, CountRowsBytesAndHomes) {
  const SmallGraph graph = random_graph(kNodes, 300, false, 3);
  Case c{2, "", [](Config& config) { config.store.hot_rows = 40; }};
  std::vector<StoreCounters> all(2);
  std::vector<Traffic> traffic(2);

  run_on_ranks(2, [&](Comm& comm) {
    Rank r(c, graph, comm);
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
