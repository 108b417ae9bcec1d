#include "src/train/metrics_server.hpp"

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <future>
#include <thread>

#if defined(GS_HTTP)
#include <httplib.h>
#endif

namespace gs {

void check_metrics_port(const MetricsConfig& config) {
  if (config.metrics_port > 0) MetricsServer(config.metrics_address, config.metrics_port);
}

std::string MetricsServer::url() const {
  const bool v6 = address_.find(':') != std::string::npos;
  return cat("http://", v6 ? "[" : "", address_, v6 ? "]" : "", ":", port_, "/metrics");
}

#if defined(GS_HTTP)

namespace {

constexpr int kThreads = 4, kQueued = 16, kPatience_s = 2;

/// Where more connections wait than kQueued, none is accepted: each holds a file of this process.
class BoundedQueue : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ < kQueued; });
    ++waiting_;
    pool_.enqueue([this, task = std::move(task)] {
      {
        const std::lock_guard begins(mutex_);
        --waiting_;
      }
      changed_.notify_one();
      task();
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  httplib::ThreadPool pool_{kThreads};
};

}  // namespace

struct MetricsServer::State {
  httplib::Server server;
  std::mutex mutex;
  std::string text;
  std::promise<void> end;
  std::future<void> ended = end.get_future();

  bool has_ended(std::chrono::milliseconds within) { return ended.wait_for(within) == std::future_status::ready; }
};

MetricsServer::MetricsServer(const std::string& address, int port)
    : address_(address), port_(port), state_(std::make_shared<State>()) {
  if (address.empty())
    throw Error(Fault::usage, "metrics.metrics_address is empty: an address is expected, such as 127.0.0.1");
  httplib::Server& server = state_->server;
  server.new_task_queue = [] { return new BoundedQueue; };
  server.set_read_timeout(kPatience_s), server.set_write_timeout(kPatience_s);
  server.set_keep_alive_timeout(1);  // s, until the first request begins
  server.set_keep_alive_max_count(1);
  server.set_payload_max_length(0);
  // httplib's own options let two processes share a port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  State* const state = state_.get();  // which owns the handler
  server.Get("/metrics", [state](const httplib::Request&, httplib::Response& response) {
    const std::lock_guard lock(state->mutex);
    response.set_content(state->text, "text/plain; version=0.0.4; charset=utf-8");
  });
  errno = 0;
  if (!server.bind_to_port(address, port)) {
    const char* const why = errno == 0 ? "no such address" : std::strerror(errno);
    throw Error(Fault::usage, cat("metrics.metrics_port ", port, ": cannot listen at ", address, " (", why,
                                  "): choose another port or metrics.metrics_address, or port 0 for none"));
  }
  std::thread([kept = state_] {
    kept->server.listen_after_bind();
    kept->end.set_value();
  }).detach();
  while (!server.is_running() && !state->has_ended(std::chrono::milliseconds(1))) {  // before that, stop() does nothing
  }
}

MetricsServer::~MetricsServer() {
  state_->server.stop();
  state_->has_ended(std::chrono::seconds(1));
}

void MetricsServer::publish(std::string text) {
  const std::lock_guard lock(state_->mutex);
  state_->text = std::move(text);
}

#else

struct MetricsServer::State {};

MetricsServer::MetricsServer(const std::string& address, int port) : address_(address), port_(port) {
  throw Error(Fault::usage, cat("metrics.metrics_port ", port, ": this build has no HTTP (rebuild with -DGS_HTTP=ON)"));
}
MetricsServer::~MetricsServer() = default;
void MetricsServer::publish(std::string) {}

#endif

}  // namespace gs
