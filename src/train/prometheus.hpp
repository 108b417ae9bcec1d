// Metrics as Prometheus reads them (text format 0.0.4).
#pragma once

#include "src/train/alerts.hpp"
#include "src/train/reading.hpp"

namespace gs {

/// Sums of a run's readings, over the parts of a model that is learnt in parts.
struct Totals {
  Offset steps = 0, walks = 0, pairs = 0;
  StoreCounters counters;
  std::vector<StageTime> stages;
  Offset fetches = 0;
  double fetching_s = 0;

  void add(const Reading& reading, Offset steps_since);
};

/// Before the first reading: what the run is. A metric without a value is left out.
std::string prometheus_text(const Config& config, const Reading* reading, const Totals& totals, const Alerts& alerts);

}  // namespace gs
