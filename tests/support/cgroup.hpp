// A control group with a limit, below this process's own.
#pragma once

#include <unistd.h>

#include <fstream>

#include "graphscale/files.hpp"

namespace gs {

class SmallCgroup {
 public:
  /// files: where the limit is written, of versions 1 and 2.
  SmallCgroup(const std::string& controller, std::pair<const char*, const char*> files, const std::string& limit) {
    std::ifstream in("/proc/self/cgroup");
    for (std::string line; folder_.empty() && std::getline(in, line);) {
      const bool is_v2 = line.rfind("0::", 0) == 0;
      if (!is_v2 && line.find(":" + controller + ":") == line.npos) continue;
      folder_ =
          cat("/sys/fs/cgroup/", is_v2 ? "" : controller, line.substr(line.rfind(':') + 1), "/graphscale-", ::getpid());
      std::error_code failure;
      fs::create_directory(folder_, failure);
      std::ofstream out(folder_ / (is_v2 ? files.second : files.first), std::ios::in);  // none is made
      out << limit << std::flush;
      if (!out) remove();
    }
  }
  SmallCgroup(const SmallCgroup&) = delete;
  ~SmallCgroup() { remove(); }

  bool is_there() const { return !folder_.empty(); }
  std::string enter() const { return cat("echo $$ > '", (folder_ / "cgroup.procs").string(), "' &&"); }  ///< shell

 private:
  void remove() {
    std::error_code failure;
    if (!folder_.empty()) fs::remove(folder_, failure);
    folder_.clear();
  }

  fs::path folder_;
};

}  // namespace gs
