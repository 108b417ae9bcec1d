#include "src/train/reading.hpp"

#include <algorithm>
#include <cmath>

namespace gs {
namespace {

/// Arcs that units of so many nodes were drawn by.
double arcs_of(const Config& config, double units, double nodes) {
  switch (tile_kind(config)) {
    case kernels::TileKind::walk:
      return nodes - units;
    case kernels::TileKind::triples:
      return nodes / triple_width(config);
    default:
      return nodes / 2;
  }
}

/// Of the units of the epoch so far, if all are as those that were looked at.
double arc_coverage(const Training& training, const Measures& measures) {
  const double units_per_epoch = double(training.walks_done()) / training.epochs_done();
  const double units = units_per_epoch * (training.epochs_done() - training.epoch());
  const double arcs_a_unit =
      arcs_of(training.config(), double(measures.units), double(measures.nodes)) / double(measures.units);
  return units * arcs_a_unit / double(training.graph_arcs());
}

}  // namespace

double quantile(std::vector<double>& values, double share) {
  const auto rank = std::max<std::ptrdiff_t>(1, std::ptrdiff_t(std::ceil(share * double(values.size()))));
  const auto at = values.begin() + std::min<std::ptrdiff_t>(rank, std::ptrdiff_t(values.size())) - 1;
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

Reading read(const Training& training, const Training::Step& since, const Measures& measures, double seconds,
             double elapsed_s) {
  Reading reading;
  reading.step = training.steps_done(), reading.walks = training.walks_done(), reading.epoch = training.epoch();
  reading.since = since, reading.seconds = seconds, reading.elapsed_s = elapsed_s;
  reading.stages = measures.stages;
  const StoreCounters& counters = since.counters;
  if (const double unique = double(counters.unique_rows); unique > 0) {
    reading.unique_share = unique / double(counters.requested_rows);
    reading.cache = Reading::Cache{double(counters.head_rows) / unique, double(counters.hot_rows) / unique,
                                   double(counters.cold_rows) / unique, double(counters.remote_rows) / unique};
  }
  if (measures.fetches > 0) {
    std::vector<double> latest = measures.fetch_s;
    reading.fetch = Reading::Fetch{measures.fetches,      measures.fetching_s,    quantile(latest, 0.5),
                                   quantile(latest, 0.9), quantile(latest, 0.99), measures.longest_fetch_s};
  }
  if (measures.batches > 0) {
    const double batches = double(measures.batches);
    reading.batch = Reading::Batch{double(measures.nodes) / batches, double(measures.distinct_rows) / batches};
    reading.arc_coverage = arc_coverage(training, measures);
  }
  if (const kernels::UpdateTotals& updates = measures.updates; updates.rows > 0)
    reading.gradient_norm = Reading::GradientNorm{updates.gradient_norms / double(updates.rows), updates.largest_norm};
  reading.peak_bytes = training.peak_bytes();
  reading.device_bytes = measures.device_bytes, reading.host_bytes = measures.host_bytes;
  return reading;
}

}  // namespace gs
