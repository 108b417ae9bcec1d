#include "src/train/monitor.hpp"

namespace gs {
namespace {

constexpr double kMachinePeriod_s = 1;

void warn(const std::string& line) {
  if (!line.empty()) log_warn(line);
}

}  // namespace

Monitor::Monitor(const Config& config) : config_(config), alerts_(config.metrics.flat_epochs) {
  const MetricsConfig& metrics = config.metrics;
  if (metrics.metrics_port == 0) return;
  server_ = std::make_unique<MetricsServer>(metrics.metrics_address, metrics.metrics_port);
  log_info(cat("metrics: ", server_->url()));
  if (!is_loopback(metrics.metrics_address))
    log_warn(cat("metrics.metrics_address ", metrics.metrics_address, " is not a loopback address: whoever reaches ",
                 "port ", metrics.metrics_port, " of this machine can read the metrics"));
  publish(nullptr);
}

void Monitor::note(const Training& training, const Training::Step& step) {
  ++steps_;
  warn(alerts_.step(training.epoch(), step.pairs, step.loss));
  if (const double now = now_s(); now - looked_s_ >= kMachinePeriod_s) look_at_machine(now);
}

void Monitor::look_at_machine(double now_s) {
  looked_s_ = now_s;
  const HostMemory host = host_memory();
  machine_.resident_bytes = resident_bytes();
  machine_.host_limit_bytes = host.limit, machine_.host_used_bytes = host.limit - host.left;
  warn(alerts_.host_memory(machine_.host_used_bytes, machine_.host_limit_bytes));
  if (!card_) return;
  machine_.card = card_->use();
  if (!machine_.card) return;
  if (machine_.card->used_bytes) warn(alerts_.device_memory(*machine_.card->used_bytes, *machine_.card->total_bytes));
  if (machine_.card->busy_share) warn(alerts_.card(*machine_.card->busy_share, now_s));
}

Reading Monitor::read(Training& training, const Training::Step& since, double seconds, double elapsed_s) {
  const Measures measures = training.take_measures();
  if (!card_) {
    card_.emplace(measures.device);
    look_at_machine(now_s());
  }
  Reading reading = gs::read(training, since, measures, seconds, elapsed_s);
  reading.machine = machine_;
  totals_.add(reading, std::exchange(steps_, 0));
  publish(&reading);
  return reading;
}

void Monitor::publish(const Reading* reading) {
  if (server_) server_->publish(prometheus_text(config_, reading, totals_, alerts_));
}

}  // namespace gs
