#include "src/core/cgroup.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace gs {
namespace {

Offset number_in(const std::string& path) {  // a number, or "max"
  std::ifstream in(path);
  Offset value = 0;
  return in >> value ? value : kUnlimited;
}

/// The folders of a controller's groups that this process is in, of versions 1 and 2 (cgroups(7)), each once. In a
/// container the path may be the host's: what is not there then limits nothing, and the mounted root is the
/// container's.
std::vector<std::string> find_cgroups(const std::string& controller) {
  std::vector<std::string> found;
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // ID:CONTROLLERS:PATH; of version 2: 0::PATH
    const std::size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string list = "," + line.substr(controllers, path - controllers - 1) + ",";
    const bool is_v2 = line.rfind("0::", 0) == 0;
    if (!is_v2 && list.find("," + controller + ",") == std::string::npos) continue;
    const std::string root = is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
    for (std::filesystem::path place = line.substr(path); place.has_relative_path(); place = place.parent_path())
      found.push_back(root + place.string());
    found.push_back(root);
  }
  return found;
}

}  // namespace

Offset number_of(const std::string& path, const std::string& key, Offset otherwise) {
  std::ifstream in(path);
  std::string word, rest;
  for (Offset number = 0; in >> word >> number; std::getline(in, rest))
    if (word == key) return number;
  return otherwise;
}

HostMemory cgroup_memory() {
  static const std::vector<std::string> folders = find_cgroups("memory");
  struct Files {
    const char *limit, *usage, *idle_cache;  // the last is a key of memory.stat
  };
  constexpr Files kV2{"/memory.max", "/memory.current", "inactive_file"},
      kV1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};
  HostMemory memory{kUnlimited, kUnlimited};
  for (const std::string& folder : folders)
    for (const Files& files : {kV2, kV1}) {
      const Offset limit = number_in(folder + files.limit);
      if (limit >= kUnlimited / 2) continue;  // version 1 says so by a huge number
      // Cached file pages that nobody uses count as taken, but are dropped when memory is asked for.
      const Offset taken = number_in(folder + files.usage) - number_of(folder + "/memory.stat", files.idle_cache, 0);
      const Offset left = std::max<Offset>(0, limit - taken);
      if (left < memory.left) memory = {limit, left};
    }
  return memory;
}

double cgroup_processors() {
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& folder : find_cgroups("cpu")) {
    double quota = 0, period = 0;  // microseconds
    std::ifstream v2(folder + "/cpu.max");
    if (!(v2 >> quota >> period)) {
      quota = double(number_in(folder + "/cpu.cfs_quota_us"));  // -1: none
      period = double(number_in(folder + "/cpu.cfs_period_us"));
    }
    if (quota > 0 && period > 0 && quota < double(kUnlimited / 2)) least = std::min(least, quota / period);
  }
  return least;
}

}  // namespace gs
