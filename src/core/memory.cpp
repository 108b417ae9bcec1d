#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "graphscale/core.hpp"

#include "src/core/device.hpp"

namespace gs {
namespace {

constexpr Offset kHugePage = 2 << 20, kLine = 64;
constexpr Offset kUnlimited = std::numeric_limits<Offset>::max();

Offset number_in(const std::string& path) {  // a cgroup file: a number, or "max"
  std::ifstream in(path);
  Offset value = 0;
  return in >> value ? value : kUnlimited;
}

/// The number behind `key` in a file of lines `key number [unit]`.
Offset number_of(const std::string& path, const std::string& key, Offset otherwise) {
  std::ifstream in(path);
  std::string word, rest;
  for (Offset number = 0; in >> word >> number; std::getline(in, rest))
    if (word == key) return number;
  return otherwise;
}

Offset available_memory() {
  const Offset kib = number_of("/proc/meminfo", "MemAvailable:", -1);
  return kib < 0 ? kUnlimited : kib * 1024;
}

Offset pages_of_process(int column) {
  std::ifstream in("/proc/self/statm");
  Offset pages = 0;
  for (int i = 0; i <= column; ++i) in >> pages;
  return pages;
}

Offset address_space_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return std::max<Offset>(0, Offset(limit.rlim_cur) - pages_of_process(0) * sysconf(_SC_PAGESIZE));
}

Offset cgroup_limit() {
  const Offset limit = number_in("/sys/fs/cgroup/memory.max");
  return limit != kUnlimited ? limit : number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
}

/// What a cgroup still grants. Cached file pages that nobody uses count as taken, but are dropped when memory is asked
/// for.
Offset cgroup_left() {
  const std::string v1 = "/sys/fs/cgroup/memory/";
  Offset limit = number_in("/sys/fs/cgroup/memory.max"), taken = 0;
  if (limit != kUnlimited) {
    taken = number_in("/sys/fs/cgroup/memory.current") - number_of("/sys/fs/cgroup/memory.stat", "inactive_file", 0);
  } else {
    limit = number_in(v1 + "memory.limit_in_bytes");
    if (limit >= kUnlimited / 2) return kUnlimited;
    taken = number_in(v1 + "memory.usage_in_bytes") - number_of(v1 + "memory.stat", "total_inactive_file", 0);
  }
  return std::max<Offset>(0, limit - taken);
}

void* allocate_host(Offset bytes) {
  if (bytes < 2 * kHugePage) {
    void* memory = std::aligned_alloc(std::size_t(kLine), std::size_t((bytes + kLine - 1) / kLine * kLine));
    if (memory) std::memset(memory, 0, std::size_t(bytes));
    return memory;
  }
  void* memory = mmap(nullptr, std::size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, std::size_t(bytes), MADV_HUGEPAGE);  // advice: a refusal changes speed only
  return memory;
}

void release_host(void* memory, Offset bytes) noexcept {
  if (bytes < 2 * kHugePage) {
    std::free(memory);
  } else {
    munmap(memory, std::size_t(bytes));
  }
}

}  // namespace

Offset available_bytes(Device device) {
  if (device.is_cuda()) return cuda_available_bytes(device.index);
  return std::min({available_memory(), cgroup_left(), address_space_left()});
}

Offset resident_bytes() { return pages_of_process(1) * sysconf(_SC_PAGESIZE); }

Offset host_limit_bytes() {
  const Offset kib = number_of("/proc/meminfo", "MemTotal:", -1);
  return std::min(kib < 0 ? kUnlimited : kib * 1024, cgroup_limit());
}

void* MemoryLedger::allocate(Offset bytes, const std::string& purpose) {
  GS_EXPECT(bytes >= 0, purpose, ": ", bytes, " bytes asked for");
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  // Linux grants what it does not have and kills later: what cannot fit is refused here.
  if (device_.is_cuda() && !mapped_) {
    memory = cuda_allocate(device_.index, bytes);
  } else if (bytes <= available_bytes({})) {
    memory = mapped_ ? cuda_allocate_mapped(device_.index, bytes) : allocate_host(bytes);
  }
  const std::lock_guard lock(mutex_);
  if (!memory)
    throw Error(Fault::memory, cat(purpose, ": ", human_bytes(double(bytes)), " do not fit ",
                                   mapped_ ? "in pinned host memory" : "on " + to_string(device_),
                                   " (free: ", human_bytes(double(available_bytes(mapped_ ? Device{} : device_))),
                                   "; held: ", largest_entries(3),
                                   "); lower model.dim or training.step_walks, or use a machine with more memory"));
  held_[purpose] += bytes;
  total_ += bytes;
  peak_ = std::max(peak_, total_);
  return memory;
}

void MemoryLedger::release(void* memory, Offset bytes, const std::string& purpose) noexcept {
  if (!memory) return;
  if (mapped_) {
    cuda_release_mapped(memory);
  } else if (device_.is_cuda()) {
    cuda_release(memory);
  } else {
    release_host(memory, bytes);
  }
  const std::lock_guard lock(mutex_);
  held_[purpose] -= bytes;
  total_ -= bytes;
}

Offset MemoryLedger::held_bytes(const std::string& purpose) const {
  const std::lock_guard lock(mutex_);
  const auto entry = held_.find(purpose);
  return entry == held_.end() ? 0 : entry->second;
}

std::map<std::string, Offset> MemoryLedger::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

std::string MemoryLedger::largest_entries(int count) const {
  std::vector<std::pair<Offset, std::string>> sorted;
  for (const auto& [purpose, bytes] : held_)
    if (bytes > 0) sorted.emplace_back(bytes, purpose);
  std::sort(sorted.rbegin(), sorted.rend());
  std::string text;
  for (int i = 0; i < std::min(count, int(sorted.size())); ++i)
    text += cat(i ? ", " : "", sorted[std::size_t(i)].second, " ", human_bytes(double(sorted[std::size_t(i)].first)));
  return text.empty() ? "nothing" : text;
}

}  // namespace gs
