// Sharded tables that start from given values, and rows of them that never move.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/half.hpp"

#include "tests/support/rank_tables.hpp"

namespace gs {
namespace {

const std::vector<TablesCase> kCases = [] {
  std::vector<TablesCase> cases;
  const auto add = [&](int ranks, const std::string& name, std::function<void(Config&)> change, Offset dense_rows = 0) {
    const bool one_table = dense_rows > 0;
    cases.push_back({ranks, name, std::move(change), false, one_table, dense_rows, true});
  };
  const auto by_partition = [](Config& c) { c.store.placement = "partition"; };
  for (const int ranks : {1, 2, 3}) {
    add(ranks, "Cyclic", [](Config&) {});
    add(ranks, "Partition", by_partition);
    add(ranks, "Head", [](Config& c) { c.store.replicated_rows = 37; });
    add(ranks, "Allreduce", [](Config& c) { c.exchange.method = "allreduce"; });
    add(ranks, "ColdRows", [](Config& c) { c.store.hot_rows = 20, c.training.optimizer = "adam"; });
    add(ranks, "Fp16", [](Config& c) { c.store.hot_rows = 20, c.model.dtype = "fp16"; });
    add(ranks, "Bf16", [](Config& c) { c.store.replicated_rows = 37, c.model.dtype = "bf16"; });
    add(
        ranks, "DenseRows", [](Config&) {}, 11);
    add(ranks, "DenseRowsPartition", by_partition, 11);
    add(
        ranks, "DenseRowsAllreduce", [](Config& c) { c.exchange.method = "allreduce"; }, 11);
  }
  add(4, "Apart", [](Config& c) { c.ranks.storage = "0,2", c.ranks.compute = "1,3"; });
  return cases;
}();

float value_at(RowId row, int column) {
  return unit_float(draw(kSeed, 5, row, std::uint32_t(column), Draw::edge).word[0]) - 0.5f;
}

bool has_value(RowId row) { return row % 3 != 1; }
bool is_frozen(RowId row) { return row % 5 < 2; }

/// Values for two rows of three, kept or drawn ones frozen alike.
StartRows start_rows() {
  StartRows start;
  start.vectors = [](RowId row, float* values) {
    for (int c = 0; c < kDim && has_value(row); ++c) values[c] = value_at(row, c);
    return has_value(row);
  };
  start.frozen = is_frozen;
  return start;
}

class StartedTables : public testing::TestWithParam<TablesCase> {
 protected:
  const SmallGraph graph_ = random_graph(kNodes, 300, false, 3);
};

TEST_P(StartedTables, HoldTheGivenValuesAndOtherRowsAsDrawn) {
  run_on_ranks(GetParam().ranks, [&](Comm& comm) {
    RankTables r(GetParam(), graph_, comm);
    std::vector<float> expected = gathered(*r.tables, r.rank, GetParam().rows());

    r.tables->start_from(start_rows());

    kernels::with_type(r.shape.type, [&](auto type) {
      for (std::size_t i = 0; i < expected.size(); ++i)
        if (const RowId row = RowId(i / kDim); has_value(row))
          expected[i] = float(kernels::nearest<decltype(type)>(value_at(row, int(i % kDim))));
    });
    EXPECT_EQ(gathered(*r.tables, r.rank, GetParam().rows()), expected);
  });
}

TEST_P(StartedTables, AreHeldOnceOverAllRanksWithAllThatTheyStartFrom) {
  const TablesCase& c = GetParam();
  StartRows start = start_rows();
  start.contexts = start.vector_state = start.context_state = [](RowId row, float* values) {
    values[0] = float(row % 97);
    return true;
  };
  std::mutex mutex;
  std::vector<int> holders(std::size_t(c.rows()), 0);

  run_on_ranks(c.ranks, [&](Comm& comm) {
    RankTables r(c, graph_, comm);
    r.tables->start_from(start);
    for (const TablesPart& part : r.tables->parts())
      for (const NamedTable& table : part.tables)
        kernels::with_type(table.rows.type, [&](auto type) {
          for (Offset i = 0; i < table.rows.count; ++i) {
            const RowId row = part.rows[i];
            const auto* const values = static_cast<const decltype(type)*>(table.rows.row(i));
            const std::lock_guard lock(mutex);
            holders.at(row) += table.name == kVectors;
            if (table.name != kVectors) {
              ASSERT_EQ(float(values[0]), float(row % 97)) << table.name << ", row " << row;
            } else if (has_value(row)) {
              ASSERT_EQ(float(values[3]), float(kernels::nearest<decltype(type)>(value_at(row, 3)))) << "row " << row;
            }
          }
        });
  });
  EXPECT_EQ(holders, std::vector<int>(holders.size(), 1));
}

TEST_P(StartedTables, NeverMoveFrozenRowsAndMoveAllElse) {
  const TablesCase& c = GetParam();
  std::mutex mutex;
  std::set<RowId> pushed;  // rows whose vectors in the table of embeddings had a gradient on any rank

  run_on_ranks(c.ranks, [&](Comm& comm) {
    RankTables r(c, graph_, comm);
    r.tables->start_from(start_rows());
    const std::vector<float> before = gathered(*r.tables, r.rank, c.rows());
    const Batch& batch = r.step->batch;
    {
      const std::lock_guard lock(mutex);
      for (const RowId slot : batch.node_slots())
        if (slot != kNoRow) pushed.insert(batch.rows()[slot]);
      if (c.one_table) pushed.insert(batch.rows().begin(), batch.rows().end());
    }
    kernels::UpdateRule rule;
    rule.optimizer = r.shape.optimizer, rule.learning_rate = 0.25f;

    for (rule.step = 0; rule.step < 3; ++rule.step) {
      r.tables->fetch(*r.step, {});
      const kernels::TileGradients gradients = r.step->gradients();
      for (Offset slot = 0; slot < batch.slots(); ++slot) std::fill_n(gradients.contexts.row(slot), kDim, 1.0f);
      for (const RowId slot : batch.node_slots())
        if (slot != kNoRow) std::fill_n(gradients.centres.row(slot), kDim, 1.0f);
      r.tables->push(*r.step, rule);
    }

    const std::vector<float> after = gathered(*r.tables, r.rank, c.rows());
    for (std::size_t i = 0; i < after.size(); ++i) {
      const RowId row = RowId(i / kDim);
      ASSERT_EQ(after[i] != before[i], pushed.count(row) > 0 && !is_frozen(row)) << "row " << row;
    }
    r.tables->fetch(*r.step, {});
    const Rows<float> contexts = r.step->rows(r.step->contexts);
    for (Offset slot = 0; slot < batch.slots() && !c.one_table; ++slot)
      for (int column = 0; column < kDim; ++column)
        ASSERT_NE(contexts(slot, column), 0.0f) << "the context of row " << batch.rows()[slot];
  });
  EXPECT_TRUE(std::any_of(pushed.begin(), pushed.end(), is_frozen));
}

INSTANTIATE_TEST_SUITE_P(Ranks, StartedTables, testing::ValuesIn(kCases),
                         [](const auto& info) { return cat(info.param.name, "On", info.param.ranks); });

TEST(TablesWithoutBits, RefuseToFreezeRows) {
  const SmallGraph graph = random_graph(kNodes, 300, false, 3);
  run_on_ranks(1, [&](Comm& comm) {
    RankTables r({}, graph, comm);
    EXPECT_THROW(r.tables->start_from(start_rows()), Error);
    r.tables->start_from({});
  });
}

}  // namespace
}  // namespace gs
