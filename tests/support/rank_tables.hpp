// One rank's end of small sharded tables, with a step at hand.
#pragma once

#include "graphscale/store.hpp"

#include "tests/support/graphs.hpp"
#include "tests/support/ranks.hpp"

namespace gs {

inline constexpr Offset kNodes = 301, kWalks = 6;  // walks of a rank
inline constexpr int kDim = 20;
inline constexpr std::uint64_t kSeed = 7;
inline constexpr float kDenseScale = 0.5f;
inline constexpr int kDenseColumns = 12;  // that dense rows start with

/// How tables are laid out, and what a step asks for.
struct TablesCase {
  int ranks = 1;
  std::string name{};
  std::function<void(Config&)> change = [](Config&) {};
  bool asks_one_owner = false;  // every row is owner 0's
  bool one_table = false;
  Offset dense_rows = 0;
  bool frozen_rows = false;

  Offset rows() const { return dense_rows + kNodes; }
};

inline Config config_of(const TablesCase& c) {
  Config config;
  config.model.dim = kDim, config.model.window = 2;
  config.sampler.walk_length = 5, config.sampler.shared_negatives = 3;
  config.training.max_row_step = config.training.curvature_limit = 0;
  c.change(config);
  return config;
}

inline Placement placement_of(const TablesCase& c, Config config, Csr graph, Comm& comm) {
  if (c.dense_rows > 0) config.model.kind = "distmult", graph.num_relations = c.dense_rows;
  return Placement::make(config, graph, comm);
}

/// One rank's end of the tables, with a step whose walks and negatives are drawn at random; ranks have 0, 1, 2 ... of
/// kWalks walks, so that some have none.
struct RankTables {
  RankTables(const TablesCase& c, const SmallGraph& graph, Comm& comm)
      : config(config_of(c)),
        placement(placement_of(c, config, graph.csr(), comm)),
        exec{{}, 1, nullptr, &ledger},
        rank(comm.rank()) {
    shape = tables_shape(config, kNodes, kWalks, c.dense_rows);
    shape.one_table = c.one_table, shape.frozen_rows = c.frozen_rows;
    shape.dense_scale = kDenseScale, shape.dense_columns = kDenseColumns;
    shape.hot_rows = config.store.hot_rows < 0 ? kNodes : config.store.hot_rows;
    tables = std::make_unique<ShardedTables>(shape, placement, kSeed, comm, comm, host, exec);
    step = tables->make_step();
    const int index = placement.compute_index(rank);
    const Offset walks = index < 0 ? 0 : (rank + 1) % (kWalks + 1);
    step->batch.start({kSeed, 0, 0, walks, config.sampler.walk_length});
    std::uint64_t draws = 0;
    const auto fill = [&](Span<RowId> rows) {
      for (RowId& row : rows)
        row = RowId(below(draw(kSeed, 1, draws++, std::uint32_t(rank), Draw::edge).low(), std::uint64_t(c.rows())));
      for (RowId& row : rows)
        if (c.asks_one_owner) row -= row % RowId(c.ranks);
    };
    fill(step->batch.nodes()), fill(step->batch.negatives());
    for (Offset i = 1; c.dense_rows > 0 && i < step->batch.nodes().size; i += 3)
      step->batch.nodes()[i] %= RowId(c.dense_rows);  // as the relations of triples
    if (walks > 0) step->batch.nodes()[4] = kNoRow;   // a walk that ended early
    const std::vector<Offset> ends =
        config.training.deterministic && walks > 0 ? std::vector<Offset>{walks / 2, walks} : std::vector<Offset>{};
    step->batch.deduplicate(tables->owners(), RowId(tables->head_rows()), ends, exec);
  }

  Config config;
  MemoryLedger ledger{Device{}}, host{Device{}, true};
  Placement placement;
  Exec exec;
  TablesShape shape;
  int rank;
  std::unique_ptr<ShardedTables> tables;
  std::unique_ptr<StepRows> step;
};

/// All centre vectors, on rank 0, gathered in two uneven blocks.
inline std::vector<float> gathered(ShardedTables& tables, int rank, Offset rows) {
  std::vector<float> values(std::size_t(rank == 0 ? rows * kDim : 0));
  for (const auto& [first, count] : {std::pair<Offset, Offset>{0, 40}, {40, rows - 40}})
    tables.gather_centres(first, {rank == 0 ? values.data() + first * kDim : nullptr, count, kDim, kDim});
  return values;
}

}  // namespace gs
