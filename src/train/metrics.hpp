// metrics.jsonl: one JSON object a line, appended as training goes.
#pragma once

#include <fstream>

#include "graphscale/eval.hpp"
#include "graphscale/train.hpp"

namespace gs {

class MetricsFile {
 public:
  /// Begins anew, or goes on behind a line that says where the run was resumed. Throws output.
  explicit MetricsFile(const fs::path& path, const RunState* resumed = nullptr);

  /// A line for what was trained since the last one. A line that cannot be written costs no training: it is warned of,
  /// and is the last.
  void write(const Training& training, const Training::Step& since, double seconds, double elapsed_s);

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
  std::ofstream out_;
};

}  // namespace gs
