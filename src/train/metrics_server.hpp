// GET /metrics over HTTP.
#pragma once

#include "graphscale/config.hpp"

namespace gs {

/// Answers with the text that was published last, from threads of its own; any other path is 404. Clients that are slow
/// or stay connected delay neither publish nor, by more than a second, the end.
class MetricsServer {
 public:
  /// Listens when it returns. Throws usage where it cannot: the port is taken, no such address of this machine, no HTTP
  /// in this build.
  MetricsServer(const std::string& address, int port);
  ~MetricsServer();

  void publish(std::string text);
  std::string url() const;

 private:
  struct State;
  std::string address_;
  int port_;
  std::shared_ptr<State> state_;
};

/// Throws what MetricsServer does where metrics.metrics_port is set: for a check before a long load.
void check_metrics_port(const MetricsConfig& config);

}  // namespace gs
