#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "graphscale/core.hpp"

#include "src/core/cgroup.hpp"
#include "src/core/device.hpp"

namespace gs {
namespace {

constexpr Offset kHugePage = 2 << 20, kLine = 64;

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
  return std::min({available_memory(), cgroup_memory().left, address_space_left()});
}

Offset resident_bytes() { return pages_of_process(1) * sysconf(_SC_PAGESIZE); }

HostMemory host_memory() {
  const Offset kib = number_of("/proc/meminfo", "MemTotal:", -1);
  const HostMemory machine{kib < 0 ? kUnlimited : kib * 1024, available_memory()}, cgroup = cgroup_memory();
  return cgroup.left < machine.left ? cgroup : machine;
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
