// Names that an input uses and the embeddings do not have: left out, but never silently.
#pragma once

#include <set>

#include "graphscale/files.hpp"

namespace gs {

class UnknownNames {
 public:
  void add(std::string_view name) { names_.emplace(name); }
  Offset count() const { return Offset(names_.size()); }

  /// One warning with the number and the first few, or nothing. missing: "a row in the embeddings"
  void warn(const fs::path& path, const char* missing) const {
    constexpr int kShown = 5;
    if (names_.empty()) return;
    std::string shown;
    int left = kShown;
    for (auto name = names_.begin(); name != names_.end() && left > 0; ++name, --left) shown += cat(" ", *name);
    log_warn(cat(path.string(), ": ", with_commas(count()), count() == 1 ? " node" : " nodes", " without ", missing,
                 count() == 1 ? " is" : " are", " left out:", shown, count() > kShown ? " ..." : ""));
  }

 private:
  std::set<std::string> names_;
};

}  // namespace gs
