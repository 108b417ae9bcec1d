// metrics.jsonl: one JSON object a line, appended as training goes.
#pragma once

#include <fstream>

#include "graphscale/eval.hpp"

#include "src/train/monitor.hpp"

namespace gs {

class MetricsFile {
 public:
  /// Begins anew, or goes on behind a line that says where the run was resumed. Throws output.
  MetricsFile(const fs::path& path, Monitor& monitor, const RunState* resumed = nullptr);

  void note(const Training& training, const Training::Step& step) { monitor_.note(training, step); }

  /// A line for what was trained since the last one. A line that cannot be written costs no training: it is warned of,
  /// and is the last.
  void write(Training& training, const Training::Step& since, double seconds, double elapsed_s);

  void write_checkpoint(const CheckpointWriter::Result& result);

  void write_validation(const Training& training, const RankScores& scores, bool is_best, double seconds);

  /// The last line of a run whose embeddings are saved; of exchanged training with rank 0's stages. Throws output where
  /// a line is missing.
  void write_end(const TrainSummary& summary, const RankTrainer* rank = nullptr);
  void write_failure(const std::string& reason);  ///< the last line of any other

 private:
  void write_last(const std::string& line);
  void write_line(const std::string& line);

  fs::path path_;
  Monitor& monitor_;
  std::ofstream out_;
};

}  // namespace gs
