// What a run is warned of: memory, a flat loss, an idle card, hubs.
#include "src/train/hubs.hpp"
#include "src/train/monitor.hpp"
#include "tests/support/graphs.hpp"
#include "tests/support/ingest_folder.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

// ------------------------------------------------------------------------------------------------------------- alerts

TEST(Alert, OfMemoryComesOnceUntilItClears) {
  Alerts alerts(3);

  EXPECT_EQ(alerts.host_memory(84, 100), "");
  EXPECT_SAYS(alerts.host_memory(86, 100), "host memory: 86 % is in use");
  EXPECT_TRUE(alerts.is_on(Alerts::kHostMemory));
  EXPECT_EQ(alerts.host_memory(95, 100), "");
  EXPECT_EQ(alerts.host_memory(83, 100), "");
  EXPECT_EQ(alerts.host_memory(86, 100), "") << "it was not over";
  EXPECT_EQ(alerts.host_memory(79, 100), "");
  EXPECT_FALSE(alerts.is_on(Alerts::kHostMemory));
  EXPECT_NE(alerts.host_memory(86, 100), "");
  EXPECT_SAYS(alerts.device_memory(90, 100), "GPU memory: 90 % is in use");
}

/// The epochs, from 0, after which a warning came.
std::vector<int> flat_after(Alerts& alerts, const std::vector<double>& means) {
  std::vector<int> warned;
  for (std::size_t epoch = 0; epoch <= means.size(); ++epoch)
    for (int step = 0; step < 2; ++step) {
      const double mean = epoch < means.size() ? means[epoch] : 0;
      if (!alerts.step(int(epoch), 100, 100 * mean).empty()) warned.push_back(int(epoch) - 1);
    }
  return warned;
}

TEST(Alert, OfAFlatLossNeedsSoManyEpochsMore) {
  Alerts two(2), three(3), never(0);
  const std::vector<double> still(4, 0.7);

  EXPECT_EQ(flat_after(two, still), std::vector<int>{2});
  EXPECT_EQ(flat_after(three, still), std::vector<int>{3});
  EXPECT_EQ(flat_after(never, still), std::vector<int>{});
}

TEST(Alert, OfAFlatLossIsOverWithAChange) {
  Alerts alerts(2), falling(2);

  EXPECT_EQ(flat_after(alerts, {0.7, 0.7002, 0.7001, 0.7, 0.6, 0.6, 0.6, 0.6}), (std::vector<int>{2, 7}));
  Alerts noisy(2);
  EXPECT_EQ(flat_after(noisy, {0.7, 0.7, 0.7, 0.702, 0.7, 0.7, 0.7, 0.703, 0.703, 0.703}), std::vector<int>{2})
      << "it did not clear";
  EXPECT_EQ(flat_after(falling, {0.7, 0.699, 0.698, 0.697, 0.696}), std::vector<int>{}) << "0.14 % an epoch";
}

TEST(Alert, OfAnIdleCardIsOfAWholeMinute) {
  Alerts alerts(3);
  double now = 0;
  const auto minute = [&](double share) {
    std::string said;
    for (int second = 0; second <= 60; ++second) said += alerts.card(share, now += 1);
    return said;
  };

  EXPECT_EQ(minute(0.6), "");
  EXPECT_SAYS(minute(0.2), "GPU: busy 2");
  EXPECT_EQ(minute(0.2), "");
  EXPECT_EQ(minute(0.9), "");
  EXPECT_FALSE(alerts.is_on(Alerts::kIdleCard));
  EXPECT_NE(minute(0.1), "");
}

// --------------------------------------------------------------------------------------------------------------- hubs

TEST(HubsOf, AnUndirectedStarHasOneWithHalfOfTheArcs) {
  const SmallGraph star = graph_of(4, {{0, 1}, {0, 2}, {0, 3}, {1, 0}, {2, 0}, {3, 0}});
  Csr csr = star.csr();
  csr.directed = false;

  const Hubs hubs = hubs_of(csr);

  EXPECT_EQ(hubs.largest, 0u);
  EXPECT_EQ(hubs.degree, 3);
  EXPECT_EQ(hubs.largest_share, 0.5);
  EXPECT_EQ(hubs.top_share, 0.5);
}

TEST(HubsOf, ADirectedGraphCountsArcsThatArrive) {
  const SmallGraph graph = graph_of(5, {{0, 3}, {1, 3}, {2, 3}, {4, 3}, {3, 0}, {0, 1}});

  const Hubs hubs = hubs_of(graph.csr());

  EXPECT_EQ(hubs.largest, 3u);
  EXPECT_EQ(hubs.degree, 5);
}

TEST(HubsOf, ALoopIsOneArc) {
  const SmallGraph graph = graph_of(2, {{0, 0}, {0, 1}});

  const Hubs hubs = hubs_of(graph.csr());

  EXPECT_EQ(hubs.degree, 2);
  EXPECT_EQ(hubs.largest_share, 1);
}

class HubsLog : public IngestFolder {};

TEST_F(HubsLog, NamesTheLargestAndWarnsOfADominantOne) {
  publish(folder_ / "star", read("hub a\nhub b\nhub c\n"), "a test", 1);
  publish(
      folder_ / "ring",
      [] {
        GeneratorOptions options;
        options.kind = "ring", options.nodes = 100;
        return generate(options);
      }(),
      "a test", 1);

  EXPECT_SAYS(heard([&] { log_hubs(Graph::open(folder_ / "star")); }), "warning: node hub holds 50 % of the arcs");
  publish(folder_ / "out", read("hub a\nhub b\nhub c\n", directed()), "a test", 1);
  EXPECT_SAYS(heard([&] { log_hubs(Graph::open(folder_ / "out")); }), "warning: node hub holds 100 % of the arcs");
  const std::string even = heard([&] { log_hubs(Graph::open(folder_ / "ring")); });
  EXPECT_SAYS(even, "hubs: largest degree 2 (node ");
  EXPECT_SAYS(even, "1 % of arcs");
  EXPECT_FALSE(says(even, "warning"));
}

TEST(CardUse, IsNothingOnTheCpu) { EXPECT_FALSE(Card(Device{}).use().has_value()); }

}  // namespace
}  // namespace gs
