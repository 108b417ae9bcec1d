// `train --metrics-port`: what a scraper sees while the program trains.
#include "tests/support/launched.hpp"
#include "tests/support/program.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/scrape.hpp"

namespace gs {
namespace {

class MetricsPort : public WithProgram {
 protected:
  MetricsPort() { succeed("graph generate sbm --nodes 200 --edges 2000 --out s"); }

  std::string endless(const std::string& options) const {
    return cat("'", GS_BINARY, "' train --graph s --out r --device cpu --dim 8 --threads 1 --epochs 1000000 ",
               "--log-steps 2 ", options);
  }
  std::string log() const { return bytes_of(folder_ / ".train.err"); }

  const int port_ = free_port();
};

TEST_F(MetricsPort, IsScrapedWhileTraining) {
  for (const char* ranks : {"", "--ranks 3"}) {
    Launched program(folder_, "train", endless(cat("--overwrite --metrics-port ", port_, " ", ranks)));
    std::string page;
    ASSERT_TRUE(comes_true([&] {
      page = http_get(port_, "/metrics").body;
      return says(page, "graphscale_steps_total");
    })) << log();

    const double steps = samples_of(page).at("graphscale_steps_total");
    EXPECT_TRUE(
        comes_true([&] { return samples_of(http_get(port_, "/metrics").body).at("graphscale_steps_total") > steps; }));
    EXPECT_EQ(says(page, "graphscale_fetch_seconds_count"), *ranks != '\0') << page;
    EXPECT_EQ(http_get(port_, "/").status, 404);
    EXPECT_EQ(count_of(log(), cat("metrics: http://127.0.0.1:", port_, "/metrics")), 1) << log();
    program.send(SIGTERM);
    EXPECT_EQ(program.wait(), 0) << log();
    EXPECT_EQ(http_get(port_, "/metrics").status, 0);
  }
}

TEST_F(MetricsPort, ClientsThatHangDelayNoStep) {
  Launched program(folder_, "train", endless(cat("--metrics-port ", port_)));
  ASSERT_TRUE(comes_true([&] { return says(bytes_of(folder_ / "r" / "metrics.jsonl"), "\"step\":"); })) << log();
  std::vector<int> clients;
  for (int i = 0; i < 30; ++i) clients.push_back(connect_to(port_));
  const auto before = fs::file_size(folder_ / "r" / "metrics.jsonl");

  EXPECT_TRUE(comes_true([&] { return fs::file_size(folder_ / "r" / "metrics.jsonl") > before + 10000; }, 10));

  program.send(SIGTERM);
  EXPECT_EQ(program.wait(), 0) << log();
  for (const int client : clients) ::close(client);
}

TEST_F(MetricsPort, TakenIsRefusedInOneLine) {
  const Socket other = listen_at("127.0.0.1", port_);

  EXPECT_SAYS(refusal(2, cat("train --graph s --out r --device cpu --metrics-port ", port_)), "Address already in use");
  EXPECT_SAYS(refusal(2, cat("train --graph s --out r --device cpu --ranks 2 --metrics-port ", port_)),
              cat("metrics.metrics_port ", port_));
  EXPECT_FALSE(fs::exists(folder_ / "r"));
}

TEST_F(MetricsPort, WithoutItNothingListens) {
  Launched program(folder_, "train", endless(""));
  ASSERT_TRUE(comes_true([&] { return says(bytes_of(folder_ / "r" / "metrics.jsonl"), "\"step\":"); })) << log();

  EXPECT_EQ(listening(program.id()), std::vector<std::string>{});

  program.send(SIGTERM);
  EXPECT_EQ(program.wait(), 0);
}

}  // namespace
}  // namespace gs
