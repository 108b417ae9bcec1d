// A queue between two stages, each a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>

#include "graphscale/core.hpp"

namespace gs {

/// Items in the order they came. Bounded by there being few items.
template <class T>
class Handover {
 public:
  void push(T item) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(item);
    }
    came_.notify_one();
  }

  /// The next item, waited for; none where the queue was closed. waiting_s: adds the time waited, for
  /// others to read meanwhile.
  bool pop(T& item, double& waiting_s) {
    const double start_s = now_s();
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return closed_ || !items_.empty(); });
    std::atomic_ref(waiting_s).fetch_add(now_s() - start_s);
    if (closed_) return false;
    item = items_.front();
    items_.pop_front();
    return true;
  }

  /// Nothing more comes or goes: whoever waits is let go.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    came_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace gs
