#include "src/train/prometheus.hpp"

#include <charconv>
#include <cmath>

namespace gs {
namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? "\\n" : c == '\\' || c == '"' ? std::string{'\\', c} : std::string{c};
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

class Page {
 public:
  /// The samples that follow are of this metric.
  void metric(const std::string& name, const char* type, const char* help) {
    name_ = "graphscale_" + name;
    text_ += cat("# HELP ", name_, " ", help, "\n# TYPE ", name_, " ", type, "\n");
  }
  void sample(double value, const Labels& labels = {}, const char* suffix = "") {
    text_ += name_ + suffix;
    for (std::size_t i = 0; i < labels.size(); ++i)
      text_ += cat(i ? "," : "{", labels[i].first, "=\"", escaped(labels[i].second), "\"");
    text_ += cat(labels.empty() ? " " : "} ", number(value), "\n");
  }

  void counter(const std::string& name, const char* help, double value) {
    metric(name + "_total", "counter", help);
    sample(value);
  }
  void gauge(const std::string& name, const char* help, double value) {
    metric(name, "gauge", help);
    sample(value);
  }
  template <class Value>
  void gauge(const std::string& name, const char* help, const std::optional<Value>& value) {
    if (value) gauge(name, help, double(*value));
  }

  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

void add_progress(Page& page, const Reading& reading, const Totals& totals) {
  page.counter("steps", "Steps done.", double(totals.steps));
  page.counter("walks", "Walks, or tiles of edges or triples, trained.", double(totals.walks));
  page.counter("pairs", "Positive pairs trained; exchanged: as far as reported by the ranks.", double(totals.pairs));
  page.gauge("epoch", "The epoch that is trained, from 0.", reading.epoch);
  page.gauge("elapsed_seconds", "Time in the training loop, without validations.", reading.elapsed_s);
  page.gauge("pairs_per_second", "Pairs trained per second since the last reading.",
             double(reading.since.pairs) / reading.seconds);
  if (reading.since.pairs > 0)
    page.gauge("loss", "Mean loss of a pair since the last reading.", reading.since.loss_a_pair());
  page.gauge("learning_rate", "Learning rate of the last step.", reading.since.learning_rate);
  if (reading.batch) {
    page.gauge("batch_nodes", "Nodes sampled for a batch.", reading.batch->nodes);
    page.gauge("batch_distinct_rows", "Distinct rows of a batch, negatives among them.", reading.batch->distinct_rows);
  }
  page.gauge("arc_coverage_ratio", "Arcs drawn in the epoch so far over arcs of the graph.", reading.arc_coverage);
  if (!reading.gradient_norm) return;
  page.metric("gradient_norm", "gauge", "L2 norm of a row's summed gradient.");
  page.sample(reading.gradient_norm->mean, {{"statistic", "mean"}});
  page.sample(reading.gradient_norm->max, {{"statistic", "max"}});
}

void add_stages(Page& page, const Totals& totals) {
  page.metric("stage_busy_seconds_total", "counter", "Time that a stage worked.");
  for (const StageTime& stage : totals.stages) page.sample(stage.busy_s, {{"stage", stage.name}});
  page.metric("stage_waiting_seconds_total", "counter", "Time that a stage waited for another.");
  for (const StageTime& stage : totals.stages) page.sample(stage.waiting_s, {{"stage", stage.name}});
}

void add_exchange(Page& page, const Reading& reading, const Totals& totals) {
  if (totals.counters.requested_rows == 0) return;
  constexpr std::string_view kRows = "_rows";
  page.metric("exchange_rows_total", "counter", "Rows of all ranks, by what became of them.");
  for (const auto& [name, counter] : kStoreCounters)
    if (const std::string_view kind = name; kind.ends_with(kRows))
      page.sample(double(totals.counters.*counter),
                  {{"kind", std::string(kind.substr(0, kind.size() - kRows.size()))}});
  page.metric("wire_bytes_total", "counter", "Bytes that ranks sent to others.");
  for (const auto& [kind, counter] : kWireKinds) page.sample(double(totals.counters.*counter), {{"kind", kind}});
  page.metric("wire_bytes_per_second", "gauge", "Bytes that ranks sent per second since the last reading.");
  for (const auto& [kind, counter] : kWireKinds)
    page.sample(double(reading.since.counters.*counter) / reading.seconds, {{"kind", kind}});
  page.counter("received_bytes", "Bytes that ranks received from others.", double(totals.counters.received_bytes));
  page.gauge("unique_rows_ratio", "Unique rows over requested rows.", reading.unique_share);
  if (reading.cache) {
    page.metric("cache_hit_ratio", "gauge", "Unique rows by where they were read; remote: those of another rank.");
    for (const auto& [tier, share] : kCacheTiers) page.sample((*reading.cache).*share, {{"tier", tier}});
  }
  if (!reading.fetch) return;
  page.metric("fetch_seconds", "summary", "Time of a fetch; quantiles of the last reading's.");
  page.sample(reading.fetch->p50_s, {{"quantile", "0.5"}});
  page.sample(reading.fetch->p90_s, {{"quantile", "0.9"}});
  page.sample(reading.fetch->p99_s, {{"quantile", "0.99"}});
  page.sample(totals.fetching_s, {}, "_sum");
  page.sample(double(totals.fetches), {}, "_count");
  page.gauge("fetch_max_seconds", "The longest fetch of the last reading.", reading.fetch->max_s);
}

void add_memory(Page& page, const Reading& reading) {
  page.metric("memory_bytes", "gauge", "Memory held, by where it lies and for what.");
  for (const auto& [where, held] : {std::pair("device", &reading.device_bytes), {"host", &reading.host_bytes}})
    for (const auto& [purpose, bytes] : *held) page.sample(double(bytes), {{"where", where}, {"purpose", purpose}});
  page.gauge("memory_peak_bytes", "Most memory of the device held at once.", double(reading.peak_bytes));
  page.gauge("process_resident_bytes", "Memory of the process, with mapped files.",
             double(reading.machine.resident_bytes));
  page.gauge("host_memory_used_bytes", "Memory in use by anyone, without what can be dropped.",
             double(reading.machine.host_used_bytes));
  page.gauge("host_memory_limit_bytes", "Memory of the machine, or what the cgroup allows.",
             double(reading.machine.host_limit_bytes));
  if (!reading.machine.card) return;
  page.gauge("gpu_busy_ratio", "Share of time in which the GPU ran a kernel.", reading.machine.card->busy_share);
  page.gauge("gpu_memory_used_bytes", "Memory of the GPU in use, by anyone.", reading.machine.card->used_bytes);
  page.gauge("gpu_memory_total_bytes", "Memory of the GPU.", reading.machine.card->total_bytes);
}

}  // namespace

void Totals::add(const Reading& reading, Offset steps_since) {
  steps += steps_since, walks += reading.since.walks, pairs += reading.since.pairs;
  counters += reading.since.counters;
  if (stages.empty()) {
    stages = reading.stages;
  } else {
    for (std::size_t i = 0; i < stages.size(); ++i)
      stages[i].busy_s += reading.stages[i].busy_s, stages[i].waiting_s += reading.stages[i].waiting_s;
  }
  if (reading.fetch) fetches += reading.fetch->count, fetching_s += reading.fetch->sum_s;
}

std::string prometheus_text(const Config& config, const Reading* reading, const Totals& totals, const Alerts& alerts) {
  Page page;
  page.metric("info", "gauge", "1; the labels say what runs.");
  page.sample(1, {{"version", kVersion}, {"model", config.model.kind}, {"dim", cat(config.model.dim)}});
  page.metric("alert", "gauge", "1 while the run is warned of it.");
  for (std::size_t i = 0; i < Alerts::kNames.size(); ++i)
    page.sample(alerts.is_on(Alerts::Kind(i)), {{"name", Alerts::kNames[i]}});
  if (reading) {
    add_progress(page, *reading, totals);
    add_stages(page, totals);
    add_exchange(page, *reading, totals);
    add_memory(page, *reading);
  }
  return page.take();
}

}  // namespace gs
