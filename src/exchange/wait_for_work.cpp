#include <chrono>
#include <future>

#include "graphscale/exchange.hpp"

namespace gs {

void wait_for_work(Comm& comm, int root, const std::function<void()>& work) {
  std::future<void> done;
  if (comm.rank() == root) done = std::async(std::launch::async, work);
  for (Offset going_on = 1; going_on;) {
    if (comm.rank() == root) going_on = done.wait_for(std::chrono::seconds(1)) == std::future_status::timeout;
    comm.broadcast(&going_on, sizeof going_on, root);
  }
  if (comm.rank() == root) done.get();
}

}  // namespace gs
