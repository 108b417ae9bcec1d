// The server of metrics: what it answers, to whom, and that no client costs training anything.
#include <thread>

#include "src/train/monitor.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/scrape.hpp"
#include "tests/support/trained.hpp"

namespace gs {
namespace {

TEST(MetricsServer, AnswersWithTheLastTextAndNothingElse) {
  const int port = free_port();
  MetricsServer server("127.0.0.1", port);
  EXPECT_EQ(server.url(), cat("http://127.0.0.1:", port, "/metrics"));
  server.publish("one\n");
  server.publish("two\n");

  const HttpAnswer answer = http_get(port, "/metrics");

  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "two\n");
  EXPECT_NE(answer.head.find("text/plain; version=0.0.4"), std::string::npos) << answer.head;
  for (const char* other : {"/", "/metrics/x", "/metricsx", "/../etc/passwd"})
    EXPECT_EQ(http_get(port, other).status, 404) << other;
}

TEST(MetricsServer, EndsWithItsOwner) {
  const int port = free_port();
  { const MetricsServer server("127.0.0.1", port); }

  EXPECT_EQ(http_get(port, "/metrics").status, 0);
  const MetricsServer again("127.0.0.1", port);
}

TEST(MetricsServer, TwoDoNotShareAPort) {
  const int port = free_port();
  const MetricsServer server("127.0.0.1", port);

  EXPECT_SAYS(sentence_of(Fault::usage, [&] { MetricsServer("127.0.0.1", port); }), "Address already in use");
}

TEST(MetricsServer, AnAddressOfAnotherMachineIsRefused) {
  EXPECT_SAYS(sentence_of(Fault::usage, [] { MetricsServer("203.0.113.7", free_port()); }),
              "cannot listen at 203.0.113.7");
}

TEST(MetricsServer, ClientsThatSayNothingDelayNeitherTheTextNorTheEnd) {
  const int port = free_port();
  std::vector<int> clients;
  double start_s;
  {
    MetricsServer server("127.0.0.1", port);
    for (int i = 0; i < 5; ++i) clients.push_back(connect_to(port));  // one more than the server has threads
    start_s = now_s();
    server.publish("text\n");
  }
  EXPECT_LT(now_s() - start_s, 30);  // they keep quiet for ever
  for (const int client : clients) ::close(client);
}

TEST(MetricsServer, HoldsFewConnectionsHoweverManyCome) {
  const int port = free_port();
  const MetricsServer server("127.0.0.1", port);
  const auto files = [] {
    const fs::directory_iterator open("/proc/self/fd");
    return int(std::distance(begin(open), end(open)));
  };
  const int before = files();
  std::vector<int> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(begin_to_connect(port));

  std::this_thread::sleep_for(std::chrono::milliseconds(300));

  EXPECT_LE(files() - before - int(clients.size()), 25);
  for (const int client : clients) ::close(client);
}

TEST(MetricsServer, AnAddressIsExpected) {
  EXPECT_SAYS(sentence_of(Fault::usage, [] { MetricsServer("", free_port()); }), "metrics.metrics_address is empty");
}

TEST(MonitorOfEveryNetwork, WarnsThatOthersCanRead) {
  Config config;
  config.metrics.metrics_port = free_port(), config.metrics.metrics_address = "0.0.0.0";
  testing::internal::CaptureStderr();
  { const Monitor monitor(config); }
  const std::string log = testing::internal::GetCapturedStderr();

  EXPECT_SAYS(log, cat("metrics: http://0.0.0.0:", config.metrics.metrics_port, "/metrics\n"));
  EXPECT_SAYS(log, "warning: metrics.metrics_address 0.0.0.0 is not a loopback address");
}

}  // namespace
}  // namespace gs
