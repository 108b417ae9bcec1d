// What training in place and on many ranks share: the loop of steps, the run's record, and vectors learnt in parts.
#pragma once

#include "src/train/metrics.hpp"
#include "src/train/run_folder.hpp"

namespace gs {

/// Runs a training to its end or to a signal, with progress and metrics, and adds to `summary`. stops_itself: it looks
/// for signals itself.
void run_steps(Training& training, const Config& config, MetricsFile& metrics, bool stops_itself,
               TrainSummary& summary);

/// Before anything is loaded onto devices or trained. Throws output.
void check_place(const Graph& graph, const Config& config, const fs::path& run, bool overwrite);

void log_graph(const Graph& graph, const std::string& graph_path, const Config& config);
void log_device(const Config& config, Device device, int threads);
const char* unit_name(const Config& config);  ///< walks | tiles

/// body(metrics) trains and saves. An error leaves the run's folder with its record, and embeddings of an earlier run.
TrainSummary with_record(const Config& config, const fs::path& run,
                         const std::function<TrainSummary(MetricsFile&)>& body);

/// The vectors of several parts side by side, each part's scaled to length 1; a part that was not trained is zero.
class SideBySide {
 public:
  SideBySide(Offset nodes, int dim, std::size_t parts);
  Rows<float> part(std::size_t index);  ///< [nodes, dim / parts], to be filled
  void normalize(std::size_t index);
  Rows<const float> rows() const { return {values_.data(), nodes_, dim_, dim_}; }

 private:
  Offset nodes_;
  int dim_, columns_;
  std::vector<float> values_;
};

/// Training as the ranks of `world`; rank 0 writes `run`.
TrainSummary train_ranks(const Graph& graph, const std::string& graph_path, const Config& config, const World& world,
                         const fs::path& run, bool overwrite);

}  // namespace gs
