// What training in place and on many ranks share: the loop of steps, the run's record, and vectors learnt in parts.
#pragma once

#include "src/train/checkpoints.hpp"
#include "src/train/validator.hpp"
#include "src/train/warm_start.hpp"

namespace gs {

/// What is done between two steps, before the end.
struct BetweenSteps {
  std::function<std::string()> validate;  ///< where eval.valid is to be ranked; may end the training; for progress
  std::function<void()> save;             ///< after each step; may write a checkpoint
};

/// Runs a training to its end or to a signal, with progress and metrics, and adds to `summary`, whose counts are always
/// up to date. stops_itself: it looks for signals itself.
void run_steps(Training& training, const Config& config, MetricsFile& metrics, bool stops_itself, TrainSummary& summary,
               const BetweenSteps& between);

/// Before anything is loaded onto devices or trained. Throws output.
void check_place(const Graph& graph, const Config& config, const fs::path& run, Existing existing);

bool is_complete(const RunState& state, const Config& config);  ///< there is nothing left to do for `config`

TrainSummary left_as_it_is(const fs::path& run, const RunState& state);  ///< of such a run; says so

/// Where a run stands in its part `part`, but for what Checkpoints adds.
RunState state_of(int part, const RunTotals& totals, const std::optional<Validator>& validator,
                  const Training& training);

void log_graph(const Graph& graph, const std::string& graph_path, const Config& config);
void log_device(const Config& config, Device device, int threads);
const char* unit_name(const Config& config);  ///< walks | tiles

/// body trains and saves. resumed: from where the run goes on, or null. An error leaves the run's folder with its
/// record, and what embeddings and checkpoints there are.
TrainSummary with_record(const Config& config, const fs::path& run, const RunState* resumed,
                         const std::function<void(MetricsFile&, TrainSummary&)>& body);

/// Where the vectors of a run's parts go: of one part to disk; of several side by side in memory, each part's scaled to
/// length 1, then to disk. A part that was not trained is zero.
class Outcome {
 public:
  Outcome(const Graph& graph, const Config& config, const fs::path& run, std::size_t parts);
  /// table: [dense rows + nodes, dim / parts] host memory. In place of what was kept of the part before.
  void keep(std::size_t part, Rows<const float> table);
  void restore(Rows<const float> finished);  ///< of a checkpoint
  bool is_kept() const;                      ///< of a run that goes on: what was kept is there
  Rows<const float> finished() const;        ///< [nodes, dim] of several parts; else none
  void finish();                             ///< after the last part

 private:
  const Graph& graph_;
  const fs::path& run_;
  int dim_, columns_;
  std::vector<float> joined_;  // [nodes, dim], of several parts
};

/// Training as the ranks of `world`; rank 0 writes `run`.
TrainSummary train_ranks(const Graph& graph, const std::string& graph_path, const Config& config, const World& world,
                         const fs::path& run, Existing existing);

}  // namespace gs
