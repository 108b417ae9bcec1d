// Watches a run: what it uses, what it is warned of, and what GET /metrics answers.
#pragma once

#include "src/train/metrics_server.hpp"
#include "src/train/prometheus.hpp"

namespace gs {

class Monitor {
 public:
  /// Listens where metrics.metrics_port is set. Throws usage, see MetricsServer.
  explicit Monitor(const Config& config);

  /// After every step. Looks at the machine once a second.
  void note(const Training& training, const Training::Step& step);

  /// For a line of metrics: what was trained in `seconds`. Publishes it.
  Reading read(Training& training, const Training::Step& since, double seconds, double elapsed_s);

 private:
  void look_at_machine(double now_s);
  void publish(const Reading* reading);

  const Config config_;
  Alerts alerts_;
  Totals totals_;
  Offset steps_ = 0;  // of the training so far
  std::optional<Card> card_;
  MachineUse machine_;
  double looked_s_ = -1e9;
  std::unique_ptr<MetricsServer> server_;
};

}  // namespace gs
