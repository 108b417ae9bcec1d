// What a line of metrics.jsonl and an answer to GET /metrics say of a run.
#pragma once

#include "graphscale/train.hpp"

#include "src/train/machine.hpp"

namespace gs {

/// Of the time since the last reading where nothing else is said. What is not there was not measured.
struct Reading {
  Offset step = 0, walks = 0;  ///< since the start
  int epoch = 0;
  Training::Step since;  ///< of exchanged training with all ranks' counters
  double seconds = 0, elapsed_s = 0;
  std::vector<StageTime> stages;

  std::optional<double> unique_share;  ///< unique rows / requested rows
  struct Cache {
    double head = 0, hot = 0, cold = 0, remote = 0;
  };
  std::optional<Cache> cache;  ///< shares of the unique rows, by where they were read
  struct Fetch {
    Offset count = 0;
    double sum_s = 0, p50_s = 0, p90_s = 0, p99_s = 0, max_s = 0;
  };
  std::optional<Fetch> fetch;
  struct Batch {
    double nodes = 0, distinct_rows = 0;
  };
  std::optional<Batch> batch;          ///< mean of those looked at
  std::optional<double> arc_coverage;  ///< arcs drawn in the epoch so far / arcs of the graph
  struct GradientNorm {
    double mean = 0, max = 0;
  };
  std::optional<GradientNorm> gradient_norm;  ///< L2, of a row's summed gradient before any clipping

  Offset peak_bytes = 0;
  std::map<std::string, Offset> device_bytes, host_bytes;
  MachineUse machine;
};

inline constexpr std::pair<const char*, double Reading::Cache::*> kCacheTiers[] = {{"head", &Reading::Cache::head},
                                                                                   {"hot", &Reading::Cache::hot},
                                                                                   {"cold", &Reading::Cache::cold},
                                                                                   {"remote", &Reading::Cache::remote}};
/// What ranks send, by kind.
inline constexpr std::pair<const char*, Offset StoreCounters::*> kWireKinds[] = {
    {"ids", &StoreCounters::id_bytes},
    {"rows", &StoreCounters::row_bytes},
    {"gradients", &StoreCounters::gradient_bytes},
    {"head", &StoreCounters::head_bytes}};

/// Without the machine.
Reading read(const Training& training, const Training::Step& since, const Measures& measures, double seconds,
             double elapsed_s);

/// The smallest value that at least `share` of them do not exceed. values: not empty; changes their order.
double quantile(std::vector<double>& values, double share);

}  // namespace gs
