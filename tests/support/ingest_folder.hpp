// Inputs as text, read in one call.
#pragma once

#include "tests/support/folder.hpp"
#include "tests/support/slow_graph.hpp"

namespace gs {

/// A fixture that writes texts to files of its own folder and ingests them.
class IngestFolder : public InFolder {
 protected:
  BuiltGraph read(std::string_view bytes, const IngestOptions& options = {}, const std::string& name = "edges.txt") {
    return ingest({make(name, bytes)}, options, counts_);
  }

  /// What standard error gets while `act` runs.
  template <class Act>
  static std::string heard(Act&& act) {
    testing::internal::CaptureStderr();
    act();
    return testing::internal::GetCapturedStderr();
  }

  IngestCounts counts_;
};

inline IngestOptions directed() {
  IngestOptions options;
  options.directed = true;
  return options;
}

inline IngestOptions weighted() {
  IngestOptions options;
  options.weighted = true;
  return options;
}

}  // namespace gs
