#include <sched.h>

#include <algorithm>
#include <cmath>
#include <system_error>
#include <thread>

#include "src/core/cgroup.hpp"

namespace gs {

void on_threads(int threads, const std::function<void(int)>& body) {
  std::exception_ptr first_failure;
  std::mutex mutex;
  const auto guarded = [&](int thread) {
    try {
      body(thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first_failure) first_failure = std::current_exception();
    }
  };

  // None begins before all are there: some bodies wait for each other.
  enum Gate { closed, open, given_up };
  std::atomic<Gate> gate{closed};
  std::vector<std::thread> others;
  others.reserve(std::size_t(std::max(1, threads)));
  try {
    for (int thread = 1; thread < threads; ++thread)
      others.emplace_back([&, thread] {
        gate.wait(closed);
        if (gate == open) guarded(thread);
      });
    gate = open;
  } catch (const std::system_error& error) {
    first_failure = std::make_exception_ptr(
        Error(Fault::memory, cat("thread ", others.size() + 1, " of ", threads, " cannot be started: ", error.what(),
                                 "; use fewer threads or ranks, or raise the limit of processes or memory")));
    gate = given_up;
  }
  gate.notify_all();
  if (gate == open) guarded(0);
  for (std::thread& other : others) other.join();
  if (first_failure) std::rethrow_exception(first_failure);
}

void parallel_for(int threads, Offset count, Offset grain, const std::function<void(Offset, Offset, int)>& body) {
  const Offset pieces = (count + grain - 1) / grain;
  if (pieces <= 1 || threads <= 1) {
    if (count > 0) body(0, count, 0);
    return;
  }
  std::atomic<Offset> next{0};
  on_threads(int(std::min<Offset>(threads, pieces)), [&](int thread) {
    try {
      for (Offset piece = next++; piece < pieces; piece = next++)
        body(piece * grain, std::min(count, (piece + 1) * grain), thread);
    } catch (...) {
      next = pieces;  // the others stop at their next piece
      throw;
    }
  });
}

int hardware_threads() {
  static const double quota = std::ceil(cgroup_processors());
  cpu_set_t allowed;
  const bool is_known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const int processors = is_known ? CPU_COUNT(&allowed) : int(std::thread::hardware_concurrency());
  return int(std::max(1.0, std::min(double(processors), quota)));
}

}  // namespace gs
