// What a run tells of itself: lines of metrics, and the page for Prometheus.
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/train/monitor.hpp"
#include "tests/support/built_graph.hpp"
#include "tests/support/graphs.hpp"
#include "tests/support/ingest_folder.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/scrape.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

using Json = nlohmann::json;

// -------------------------------------------------------------------------------------------------------- whole runs

class Monitored : public InFolder {
 protected:
  Monitored() {
    publish(folder_ / "store", generate(block_model(120, 1200, 4, 0.9)), "a test", 1);
    graph_ = Graph::open(folder_ / "store");
    config_.run.device = "cpu", config_.run.threads = 1;
    config_.training.step_walks = 48, config_.training.epochs = 3, config_.training.deterministic = true;
    config_.metrics.log_steps = 5;
    set_quiet(true);
  }
  ~Monitored() override { set_quiet(false); }

  /// The lines of a run on so many ranks that tell of steps.
  std::vector<Json> lines(int ranks) {
    if (ranks > 1) config_.run.ranks = ranks;
    train(graph_, "store", config_, folder_ / "run", Existing::refuse);
    std::ifstream in(folder_ / "run" / "metrics.jsonl");
    std::vector<Json> found;
    for (std::string line; std::getline(in, line);) found.push_back(Json::parse(line));
    EXPECT_EQ(found.back()["end"], "complete");
    std::erase_if(found, [](const Json& line) { return !line.contains("loss") || line.contains("end"); });
    return found;
  }

  static void expect_machine(const Json& line) {
    EXPECT_GT(line["memory"]["resident_bytes"], 1 << 20) << line;
    EXPECT_LT(line["memory"]["resident_bytes"], line["memory"]["host_limit_bytes"]) << line;
    EXPECT_TRUE(line.at("gpu").is_null()) << line;
    EXPECT_FALSE(line["memory"]["device"].empty()) << line;
    EXPECT_GT(line["learning_rate"], 0) << line;
    EXPECT_GT(line["pairs_per_s"], 0) << line;
  }

  static double walked_share(const Config& config, const Graph& graph) {  ///< of the arcs, in an epoch
    const double walks = double(graph.csr().num_nodes()) * config.sampler.walks_per_node;
    return walks * (config.sampler.walk_length - 1) / double(graph.csr().num_arcs());
  }

  Graph graph_;
  Config config_ = small_config(8);
};

TEST_F(Monitored, InPlaceALineHasTheMetricsThatAreThere) {
  const std::vector<Json> found = lines(1);

  ASSERT_EQ(found.size(), 6u) << "3 epochs of 10 steps";
  double coverage = 0;
  for (const Json& line : found) {
    expect_machine(line);
    EXPECT_GT(line["loss"], 0) << line;
    for (const char* stage : {"sample", "step"}) EXPECT_GT(line["stages"][stage]["busy_s"], 0) << line;
    for (const char* name : {"unique_share", "cache", "wire_bytes_per_s", "fetch_s", "gradient_norm"})
      EXPECT_TRUE(line.at(name).is_null()) << name << " of " << line;
    if (line["batch"].is_null()) continue;  // a slow moment: looking was left out
    EXPECT_EQ(line["batch"]["nodes"], 48 * 10);
    EXPECT_GT(line["batch"]["distinct_rows"], 60);
    EXPECT_LE(line["batch"]["distinct_rows"], 120);
    coverage = line["arc_coverage"];
    EXPECT_NEAR(
        coverage,
        (line["step"] == 5 || line["step"] == 15 || line["step"] == 25 ? 0.5 : 1) * walked_share(config_, graph_), 1e-9)
        << line;
  }
  EXPECT_GT(coverage, 0) << "looked at no step";
}

TEST_F(Monitored, OnThreeRanksALineHasThemAll) {
  config_.training.deterministic = false;
  const std::vector<Json> found = lines(3);

  ASSERT_EQ(found.size(), 6u);
  for (const Json& line : found) {
    expect_machine(line);
    double busy = 0;
    for (const char* stage : {"sample", "fetch", "compute", "push"}) {
      busy += line["stages"][stage]["busy_s"].get<double>();
      EXPECT_GE(line["stages"][stage]["waiting_s"], 0) << line;
    }
    EXPECT_GT(busy, 0) << line;
    EXPECT_GT(line["unique_share"], 0) << line;
    EXPECT_LT(line["unique_share"], 1) << line;
    const Json& cache = line["cache"];
    EXPECT_EQ(cache["head"], 0) << line;
    EXPECT_NEAR(cache["head"].get<double>() + cache["hot"].get<double>() + cache["cold"].get<double>(), 1, 0.2) << line;
    EXPECT_GT(cache["remote"], 0) << line;
    EXPECT_LT(cache["remote"], 1) << line;
    for (const char* kind : {"ids", "rows", "gradients"}) EXPECT_GT(line["wire_bytes_per_s"][kind], 0) << line;
    EXPECT_EQ(line["wire_bytes_per_s"]["head"], 0) << line;
    const Json& fetch = line["fetch_s"];
    EXPECT_GT(fetch["p50"], 0) << line;
    EXPECT_LE(fetch["p50"], fetch["p90"]) << line;
    EXPECT_LE(fetch["p90"], fetch["p99"]) << line;
    EXPECT_LE(fetch["p99"], fetch["max"]) << line;
    EXPECT_EQ(line["batch"]["nodes"], 16 * 10) << "of a rank: " << line;
    EXPECT_GT(line["gradient_norm"]["mean"], 0) << line;
    EXPECT_GE(line["gradient_norm"]["max"], line["gradient_norm"]["mean"]) << line;
  }
  EXPECT_NEAR(found.back()["arc_coverage"], walked_share(config_, graph_), 1e-9);
}

TEST_F(Monitored, CacheSharesAreOfTheTierThatHoldsTheRows) {
  config_.training.deterministic = false;
  config_.store.hot_rows = 10, config_.store.replicated_rows = 20;

  double head = 0, cold = 0, wire = 0;
  for (const Json& line : lines(2))
    head += line["cache"]["head"].get<double>(), cold += line["cache"]["cold"].get<double>(),
        wire += line["wire_bytes_per_s"]["head"].get<double>();

  EXPECT_GT(head, 0);
  EXPECT_GT(cold, 0);
  EXPECT_GT(wire, 0);
}

TEST_F(Monitored, ALoopThatStandsStillIsWarnedOfOnce) {
  config_.training.epochs = 8, config_.sampler.walks_per_node = 100;  // so many that epochs differ by less than 0.1 %
  config_.training.learning_rate = 1e-8, config_.training.final_learning_rate = 1e-9;
  testing::internal::CaptureStderr();
  lines(1);
  const std::string log = testing::internal::GetCapturedStderr();

  const std::size_t at = log.find("warning: loss: flat for 3 epochs");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find("loss: flat", at + 20), std::string::npos) << log;
}

TEST_F(Monitored, FlatEpochs0IsNeverWarnedOf) {
  config_.training.epochs = 8, config_.sampler.walks_per_node = 100, config_.metrics.flat_epochs = 0;
  config_.training.learning_rate = 1e-8, config_.training.final_learning_rate = 1e-9;
  testing::internal::CaptureStderr();
  lines(1);

  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Monitored, NothingListensWithoutAPort) {
  std::atomic<bool> done = false;
  std::size_t most = 0;
  std::thread watcher([&] {
    while (!done) most = std::max(most, listening(::getpid()).size());
  });
  config_.training.epochs = 30;

  lines(1);
  done = true;
  watcher.join();

  EXPECT_EQ(most, 0u);
}

TEST_F(Monitored, ATakenPortIsRefusedBeforeAnythingIsWritten) {
  config_.metrics.metrics_port = free_port();
  const Socket other = listen_at("127.0.0.1", config_.metrics.metrics_port);

  const std::string refusal =
      sentence_of(Fault::usage, [&] { train(graph_, "store", config_, folder_ / "run", Existing::refuse); });

  EXPECT_SAYS(refusal,
              cat("metrics.metrics_port ", config_.metrics.metrics_port, ": cannot listen at 127.0.0.1 (Addr"));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

// ----------------------------------------------------------------------------------------------------------- the page

/// Trains `trainer` to its end and reads it once.
std::map<std::string, double> page_of(Training& trainer, const Config& config) {
  Alerts alerts(0);
  Totals totals;
  Training::Step since;
  while (!trainer.done()) {
    const Training::Step step = trainer.step();
    since.walks += step.walks, since.pairs += step.pairs, since.loss += step.loss;
    since.counters += step.counters, since.learning_rate = step.learning_rate;
  }
  Reading reading = read(trainer, since, trainer.take_measures(), 2, 3);
  reading.machine = {1000, 1500, 2000, CardUse{0.25, 30, 40}};
  totals.add(reading, trainer.steps_done());
  return samples_of(prometheus_text(config, &reading, totals, alerts));
}

TEST(Page, HasEveryMetricOfTrainingInPlace) {
  const BuiltGraph graph = generate(block_model(120, 1200, 4, 0.9));
  Config config = small_config(8);
  config.training.step_walks = 48;
  Trainer trainer(graph.csr(), config, Device{}, 1);

  std::map<std::string, double> page = page_of(trainer, config);

  EXPECT_EQ(page["graphscale_info{version=\"0.1.0\",model=\"deepwalk\",dim=\"8\"}"], 1);
  EXPECT_EQ(page["graphscale_steps_total"], 10);
  EXPECT_EQ(page["graphscale_walks_total"], 480);
  EXPECT_EQ(page["graphscale_pairs_per_second"], page["graphscale_pairs_total"] / 2);
  EXPECT_EQ(page["graphscale_elapsed_seconds"], 3);
  EXPECT_GT(page["graphscale_loss"], 0);
  EXPECT_GT(page["graphscale_stage_busy_seconds_total{stage=\"step\"}"], 0);
  EXPECT_EQ(page["graphscale_batch_nodes"], 480);
  EXPECT_GT(page["graphscale_arc_coverage_ratio"], 0);
  EXPECT_GT(page["graphscale_memory_bytes{where=\"device\",purpose=\"step: walks\"}"], 0);
  EXPECT_GT(page["graphscale_memory_peak_bytes"], 0);
  EXPECT_EQ(page["graphscale_process_resident_bytes"], 1000);
  EXPECT_EQ(page["graphscale_host_memory_used_bytes"], 1500);
  EXPECT_EQ(page["graphscale_host_memory_limit_bytes"], 2000);
  EXPECT_EQ(page["graphscale_gpu_busy_ratio"], 0.25);
  EXPECT_EQ(page["graphscale_gpu_memory_used_bytes"], 30);
  EXPECT_EQ(page["graphscale_gpu_memory_total_bytes"], 40);
  for (const auto& [name, value] : page)
    EXPECT_FALSE(name.starts_with("graphscale_fetch") || name.starts_with("graphscale_wire")) << name;
}

TEST(Page, HasEveryMetricOfThreeRanks) {
  const BuiltGraph graph = generate(block_model(120, 1200, 4, 0.9));
  Config config = small_config(8);
  config.exchange.method = "rows", config.training.step_walks = 48;
  run_on_ranks(3, [&](Comm& comm) {
    RankTrainer trainer(graph.csr(), config, comm, Device{}, 1);
    std::map<std::string, double> page = page_of(trainer, config);

    EXPECT_EQ(page["graphscale_walks_total"], 480);
    for (const char* stage : {"sample", "fetch", "compute", "push"}) {
      EXPECT_GT(page[cat("graphscale_stage_busy_seconds_total{stage=\"", stage, "\"}")], 0);
      EXPECT_GT(page[cat("graphscale_stage_waiting_seconds_total{stage=\"", stage, "\"}")], 0);
    }
    EXPECT_EQ(page["graphscale_exchange_rows_total{kind=\"unique\"}"],
              page["graphscale_exchange_rows_total{kind=\"local\"}"] +
                  page["graphscale_exchange_rows_total{kind=\"remote\"}"]);
    for (const char* kind : {"ids", "rows", "gradients"}) {
      const double bytes = page[cat("graphscale_wire_bytes_total{kind=\"", kind, "\"}")];
      EXPECT_GT(bytes, 0);
      EXPECT_EQ(page[cat("graphscale_wire_bytes_per_second{kind=\"", kind, "\"}")], bytes / 2);
    }
    EXPECT_GT(page["graphscale_received_bytes_total"], 0);
    EXPECT_GT(page["graphscale_unique_rows_ratio"], 0);
    EXPECT_EQ(page["graphscale_cache_hit_ratio{tier=\"hot\"}"], 1);
    EXPECT_GT(page["graphscale_cache_hit_ratio{tier=\"remote\"}"], 0);
    EXPECT_EQ(page["graphscale_fetch_seconds_count"], 10);
    EXPECT_GT(page["graphscale_fetch_seconds{quantile=\"0.99\"}"], 0);
    EXPECT_GE(page["graphscale_fetch_max_seconds"], page["graphscale_fetch_seconds{quantile=\"0.99\"}"]);
    EXPECT_GT(page["graphscale_gradient_norm{statistic=\"mean\"}"], 0);
    EXPECT_GT(page["graphscale_gradient_norm{statistic=\"max\"}"],
              page["graphscale_gradient_norm{statistic=\"mean\"}"]);
  });
}

TEST(Page, BeforeTheFirstLineSaysWhatRuns) {
  const std::map<std::string, double> page = samples_of(prometheus_text(Config{}, nullptr, {}, Alerts(3)));

  EXPECT_TRUE(page.contains("graphscale_info{version=\"0.1.0\",model=\"deepwalk\",dim=\"128\"}"));
  EXPECT_EQ(page.at("graphscale_alert{name=\"flat_loss\"}"), 0);
}

TEST(ArcCoverage, OfTriplesIsOneAtAnEpochsEnd) {
  const BuiltGraph graph = [] {
    EdgeList edges;
    BuiltGraph names;
    for (RowId i = 0; i < 60; ++i) {
      edges.from.push_back(i % 20), edges.to.push_back((7 * i + 1) % 20), edges.relation.push_back(i / 20);
    }
    names.name_bounds = {0};
    const auto name = [](std::vector<char>& bytes, std::vector<Offset>& bounds, RowId i) {
      for (const char c : std::to_string(i)) bytes.push_back(c);
      bounds.push_back(Offset(bytes.size()));
    };
    for (RowId i = 0; i < 20; ++i) name(names.name_bytes, names.name_bounds, i);
    names.relation_bounds = {0};
    for (RowId i = 0; i < 3; ++i) name(names.relation_bytes, names.relation_bounds, i);
    IngestOptions options;
    options.directed = true;
    IngestCounts counts;
    return build_graph(std::move(edges), std::move(names), options, counts);
  }();
  Config config = default_config("distmult");
  config.model.dim = 8, config.training.epochs = 1;
  Trainer trainer(graph.csr(), config, Device{}, 1);

  EXPECT_NEAR(page_of(trainer, config)["graphscale_arc_coverage_ratio"], 1, 1e-9);
}

TEST(Quantile, IsTheNearestRank) {
  std::vector<double> values{5, 1, 4, 2, 3};

  EXPECT_EQ(quantile(values, 0.5), 3);
  EXPECT_EQ(quantile(values, 0.9), 5);
  EXPECT_EQ(quantile(values, 0), 1);
  std::vector<double> one{7};
  EXPECT_EQ(quantile(one, 0.99), 7);
}

}  // namespace
}  // namespace gs
