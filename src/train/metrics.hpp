// metrics.jsonl: one JSON object a line, appended as training goes.
#pragma once

#include <fstream>

#include "graphscale/train.hpp"

namespace gs {

class MetricsFile {
 public:
  explicit MetricsFile(const fs::path& path);  ///< truncates; throws output

  /// A line for what was trained since the last one.
  void write(const Trainer& trainer, const Trainer::Step& since, double seconds, double elapsed_s);
  void write_end(const TrainSummary& summary);

 private:
  void write_line(const std::string& line);  ///< flushed; throws output

  fs::path path_;
  std::ofstream out_;
};

}  // namespace gs
