// That the plan of a rank is what it holds and moves.
#include <cmath>

#include "tests/support/folder.hpp"
#include "tests/support/graphs.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

struct Case {
  std::string name;
  int ranks = 1;
  std::function<void(Config&)> change = [](Config&) {};
};

/// `graph` for a model of `config`'s kind: of a knowledge graph's, arcs have a few relations in turn.
struct GraphOfKind {
  GraphOfKind(Csr graph, const Config& config) : csr(graph) {
    if (!is_knowledge_graph_model(config.model.kind)) return;
    constexpr RowId kRelations = 13;
    for (Offset arc = 0; arc < csr.num_arcs(); ++arc) relations.push_back(RowId(arc) % kRelations);
    csr.weights = {}, csr.directed = true;
    csr.relations = relations, csr.num_relations = kRelations;
  }
  std::vector<RowId> relations;
  Csr csr;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name << " on " << c.ranks; }

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return cat(info.param.name, "On", info.param.ranks);
}

/// What the entries say, a sum a purpose; without what is held only while rows are read back.
std::map<std::string, Offset> planned(const Plan& plan, Tier tier) {
  std::map<std::string, Offset> bytes;
  for (const PlanEntry& entry : plan.entries)
    if (entry.tier == tier && entry.bytes > 0 && entry.purpose != "store: rows read back")
      bytes[entry.purpose] += entry.bytes;
  return bytes;
}

std::map<std::string, Offset> held(const MemoryLedger& ledger) {
  std::map<std::string, Offset> bytes = ledger.held();
  std::erase_if(bytes, [](const auto& entry) { return entry.second == 0; });
  return bytes;
}

std::vector<Case> memory_cases() {
  std::vector<Case> cases;
  for (const int ranks : {1, 2, 3, 8}) {
    const auto add = [&](const std::string& name, std::function<void(Config&)> change) {
      cases.push_back({name, ranks, [change](Config& c) { c.exchange.method = "rows", change(c); }});
    };
    add("Cyclic", [](Config&) {});
    add("Partition", [](Config& c) { c.store.placement = "partition"; });
    add("Synchronous", [](Config& c) { c.training.staleness = 0; });
    add("Stale", [](Config& c) { c.training.staleness = 4; });
    add("Adam", [](Config& c) { c.training.optimizer = "adam", c.model.dtype = "fp16"; });
    add("Adagrad", [](Config& c) { c.training.optimizer = "adagrad", c.exchange.row_type = "bf16"; });
    add("Momentum", [](Config& c) { c.training.optimizer = "momentum", c.exchange.compression = "int8"; });
    add("Head", [](Config& c) { c.store.replicated_rows = 7; });
    add("Feedback", [](Config& c) { c.exchange.compression = "topk", c.exchange.feedback_rows = 20; });
    add("Allreduce", [](Config& c) { c.exchange.method = "allreduce"; });
    add("Deterministic", [](Config& c) { c.training.deterministic = true, c.training.optimizer = "momentum"; });
    add("ColdRows", [](Config& c) { c.store.hot_rows = 5; });
    add("Partitioned", [](Config& c) { c.sampler.topology = "partitioned"; });
    add("PartitionedParts", [](Config& c) {
      c.sampler.topology = "partitioned", c.store.placement = "partition", c.sampler.weighted = true;
    });
    add("Uva", [](Config& c) { c.sampler.topology = "uva"; });
    add("GlobalNegatives", [](Config& c) { c.sampler.negatives_from = "global"; });
    for (const std::string kind : {"line", "complex"}) {  // one table; with dense rows before the nodes
      const auto of = [&](const char* name, std::function<void(Config&)> change) {
        add(kind == "line" ? cat("OneTable", name) : cat("Triples", name), [kind, change](Config& c) {
          c.model.kind = kind, c.model.order = "first", c.model.reciprocal = true;
          c.sampler.triples_per_tile = 4;
          change(c);
        });
      };
      of("Cyclic", [](Config&) {});
      of("Partition", [](Config& c) { c.store.placement = "partition"; });
      of("Head", [](Config& c) { c.store.replicated_rows = 7, c.training.optimizer = "adagrad"; });
      of("ColdRows", [](Config& c) { c.store.hot_rows = 5, c.training.optimizer = "adam"; });
      of("Allreduce", [](Config& c) { c.exchange.method = "allreduce"; });
      of("Deterministic", [](Config& c) { c.training.deterministic = true; });
      of("Filtered", [](Config& c) { c.sampler.filter_negatives = true; });
      of("Feedback", [](Config& c) { c.exchange.compression = "topk", c.exchange.feedback_rows = 20; });
    }
  }
  cases.push_back({"Apart", 4, [](Config& c) { c.ranks.storage = "0,2", c.ranks.compute = "1,3"; }});
  cases.push_back({"OneComputes", 3, [](Config& c) { c.ranks.compute = "1", c.store.placement = "partition"; }});
  cases.push_back({"OneStores", 3, [](Config& c) { c.ranks.storage = "2", c.sampler.topology = "partitioned"; }});
  return cases;
}

class PlanOfARank : public testing::TestWithParam<Case> {
 protected:
  PlanOfARank() {
    set_quiet(true);
    config_.training.step_walks = 40, config_.sampler.walks_per_node = 1;
    GetParam().change(config_);
  }
  ~PlanOfARank() override { set_quiet(false); }
  Config config_ = small_config(20);
};

TEST_P(PlanOfARank, IsWhatItHoldsForEveryPurpose) {
  const SmallGraph graph = random_graph(200, 900, true, 3);
  const GraphOfKind of_kind(graph.csr(), config_);

  run_on_ranks(GetParam().ranks, [&](Comm& comm) {
    RankTrainer trainer(of_kind.csr, config_, comm, Device{}, 1);
    EXPECT_EQ(held(trainer.ledger()), planned(trainer.plan(), Tier::device)) << "rank " << comm.rank();
    EXPECT_EQ(held(trainer.host_ledger()), planned(trainer.plan(), Tier::host)) << "rank " << comm.rank();
    while (!trainer.done()) trainer.step();
    EXPECT_EQ(held(trainer.ledger()), planned(trainer.plan(), Tier::device)) << "after training";
    std::vector<float> values(std::size_t(comm.rank() == 0 ? 200 * 20 : 0));
    trainer.gather(0, {comm.rank() == 0 ? values.data() : nullptr, 200, 20, 20});
    Offset before = 0;
    for (const auto& [purpose, bytes] : planned(trainer.plan(), Tier::device)) before += bytes;
    EXPECT_GE(trainer.peak_bytes(), before);
    EXPECT_LE(trainer.peak_bytes(), trainer.plan().total_bytes(Tier::device)) << "rows read back are planned for";
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, PlanOfARank, testing::ValuesIn(memory_cases()), name_of_case);

// ----------------------------------------------------------------------------------------------------------- traffic

class PlanOfTraffic : public testing::TestWithParam<Case> {
 protected:
  PlanOfTraffic() { set_quiet(true); }
  ~PlanOfTraffic() override { set_quiet(false); }

  /// Counters of all ranks over the whole run of training on graph_, and what was planned for rank 0 and a step.
  void train_and_plan(const Csr& of_arcs) {
    config_.exchange.method = "rows";
    config_.model.dim = 32;
    GetParam().change(config_);
    graph_ = std::make_unique<GraphOfKind>(of_arcs, config_);
    const Csr& graph = graph_->csr;
    const int ranks = GetParam().ranks;
    std::mutex mutex;
    run_on_ranks(ranks, [&](Comm& comm) {
      RankTrainer trainer(graph, config_, comm, Device{}, 1);
      while (!trainer.done()) trainer.step();
      const std::lock_guard lock(mutex);
      counters_ += trainer.counters();
      if (comm.rank() != 0) return;
      steps_ = double(trainer.steps_done());
      plan_ = trainer.plan();
    });
    placement_ = Placement::make(config_, graph, ranks);
  }

  void expect_counters(const StepCounts& counts, double tolerance) {
    const StepTraffic traffic = traffic_of(plan_, config_, counts);
    const double parts = steps_ * GetParam().ranks;
    const auto near = [&](double predicted, Offset counted, const char* what) {
      EXPECT_NEAR(predicted, double(counted) / parts, tolerance * double(counted) / parts) << what;
    };
    near(traffic.id_bytes, counters_.id_bytes, "ids");
    near(traffic.row_bytes, counters_.row_bytes, "rows");
    near(traffic.gradient_bytes, counters_.gradient_bytes, "gradients");
    near(traffic.head_bytes, counters_.head_bytes, "head");
    near(counts.requested_rows, counters_.requested_rows, "requested");
    near(counts.local.rows + counts.local.centres, counters_.local_rows, "local");
  }

  Config config_;
  std::unique_ptr<GraphOfKind> graph_;
  StoreCounters counters_;
  RankPlan plan_;
  Placement placement_ = Placement::cyclic(1, 1);
  double steps_ = 0;
};

constexpr double kTolerance = 0.1;

GeneratorOptions like_blogcatalog() {  // a fifth of its nodes, its mean degree and skew
  GeneratorOptions options;
  options.nodes = 1 << 11, options.edges = 60'000, options.seed = 5;
  return options;
}

TEST_P(PlanOfTraffic, OfSampledStepsIsNearTheCountersOfTheRun) {
  const BuiltGraph graph = generate(like_blogcatalog());
  config_.sampler.walks_per_node = 2, config_.training.step_walks = 256;

  train_and_plan(graph.csr());

  expect_counters(sampled_counts(config_, graph_->csr, placement_, plan_, 1), kTolerance);
}

TEST_P(PlanOfTraffic, OfBlocksIsNearTheCounters) {
  const BuiltGraph graph = generate(block_model(2000, 8000, 8, 0.9));
  config_.sampler.walks_per_node = 2, config_.training.step_walks = 250;

  train_and_plan(graph.csr());

  expect_counters(sampled_counts(config_, graph_->csr, placement_, plan_, 1), kTolerance);
}

/// Undirected edges whose ends are drawn as the degree model has it: the first x of n rows hold (x / n)^(1/3) of them.
SmallGraph graph_of_the_model(Offset nodes, Offset edges) {
  const auto end_of = [&](double unit) {
    return RowId(std::min(double(nodes - 1), double(nodes) * unit * unit * unit));
  };
  std::vector<Arc> arcs;
  for (Offset i = 0; i < edges; ++i) {
    const Philox4 random = draw(11, 0, std::uint64_t(i), 0, Draw::edge);
    const RowId from = end_of(double(unit_float(random.word[0]))), to = end_of(double(unit_float(random.word[1])));
    arcs.push_back({from, to}), arcs.push_back({to, from});
  }
  SmallGraph graph = graph_of(nodes, std::move(arcs));
  graph.directed = false;
  return graph;
}

TEST_P(PlanOfTraffic, OfTheDegreeModelIsNearTheCountersOfAGraphWithItsDegrees) {
  if (GetParam().name == "Partition") GTEST_SKIP() << "the model takes a partition for cyclic";
  const SmallGraph graph = graph_of_the_model(4000, 60'000);
  config_.sampler.walks_per_node = 2, config_.training.step_walks = 250;

  train_and_plan(graph.csr());

  const Csr& csr = graph_->csr;
  expect_counters(expected_counts(config_, {csr.num_nodes(), csr.num_arcs(), false, csr.num_relations}, plan_),
                  kTolerance);
}

const std::vector<Case> kTrafficCases = [] {
  std::vector<Case> cases;
  for (const int ranks : {2, 4, 8}) cases.push_back({"Cyclic", ranks});
  cases.push_back({"Partition", 4, [](Config& c) { c.store.placement = "partition"; }});
  cases.push_back({"Compressed", 4, [](Config& c) { c.exchange.compression = "int8", c.exchange.row_type = "fp16"; }});
  cases.push_back({"Head", 4, [](Config& c) { c.store.replicated_rows = 50, c.store.replicate_every = 2; }});
  cases.push_back({"GlobalNegatives", 4, [](Config& c) { c.sampler.negatives_from = "global"; }});
  cases.push_back({"Deterministic", 4, [](Config& c) { c.training.deterministic = true; }});
  cases.push_back(
      {"OneTable", 4, [](Config& c) { c.model.kind = "line", c.model.order = "first", c.training.step_walks = 200; }});
  cases.push_back({"Triples", 4, [](Config& c) { c.model.kind = "distmult", c.training.step_walks = 100; }});
  cases.push_back({"InBatch", 4, [](Config& c) { c.sampler.in_batch_share = c.sampler.uniform_share = 0.5; }});
  return cases;
}();
INSTANTIATE_TEST_SUITE_P(Ranks, PlanOfTraffic, testing::ValuesIn(kTrafficCases), name_of_case);

// ----------------------------------------------------------------------------------------------------------- refusal

TEST(RankTrainer, KeepsAllRowsHotOnTheCpuUnlessToldOtherwise) {
  const SmallGraph graph = random_graph(100, 400, false, 3);
  Config config = small_config();
  config.exchange.method = "rows";

  run_on_ranks(
      2, [&](Comm& comm) { EXPECT_EQ(RankTrainer(graph.csr(), config, comm, Device{}, 1).plan().shape.hot_rows, 50); });
  config.store.hot_rows = 3;
  run_on_ranks(
      2, [&](Comm& comm) { EXPECT_EQ(RankTrainer(graph.csr(), config, comm, Device{}, 1).plan().shape.hot_rows, 3); });
}

TEST(RankTrainer, ThatCannotFitIsRefusedBeforeItAllocates) {
  const SmallGraph graph = random_graph(100, 400, false, 3);
  Config config = small_config(2048);
  config.exchange.method = "rows";
  config.training.step_walks = 1 << 24;
  config.sampler.walk_length = 1024;

  const std::string what = sentence_of(Fault::memory, [&] {
    run_on_ranks(2, [&](Comm& comm) { RankTrainer(graph.csr(), config, comm, Device{}, 1); });
  });

  EXPECT_SAYS(what, "2 ranks of this machine need ");
  EXPECT_SAYS(what, "lower training.step_walks");
}

}  // namespace
}  // namespace gs
