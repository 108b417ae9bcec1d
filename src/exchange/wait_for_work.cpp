#include <chrono>
#include <future>

#include "graphscale/exchange.hpp"

namespace gs {

void wait_for_work(Comm& comm, const std::function<void()>& work) {
  std::future<void> done;
  if (work) done = std::async(std::launch::async, work);
  for (Offset going_on = 1; going_on;) {
    going_on = work && done.wait_for(std::chrono::seconds(1)) == std::future_status::timeout;
    comm.all_reduce(Span<Offset>(&going_on, 1));
  }
  if (work) done.get();
}

void wait_for_work(Comm& comm, int root, const std::function<void()>& work) {
  wait_for_work(comm, comm.rank() == root ? work : nullptr);
}

}  // namespace gs
