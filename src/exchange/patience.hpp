// Waiting for other ranks: by looking again and again until a deadline, and, for the few library calls that cannot be
// given up, by a watch that ends the process.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <thread>

#include "graphscale/core.hpp"

namespace gs {

/// The pauses between two looks, and when to stop looking. Yields at first (an exchange in memory takes microseconds),
/// then sleeps an eighth of the time waited, at most 1 ms: late by 12 %, and cores stay free where ranks outnumber
/// them.
class Patience {
 public:
  explicit Patience(double timeout_s) : timeout_s_(timeout_s) {}
  void restart() { since_s_ = now_s(); }  ///< something came
  double waited_s() const { return now_s() - since_s_; }
  bool over() const { return waited_s() > timeout_s_; }
  double timeout_s() const { return timeout_s_; }

  void pause() const {
    const double waited = waited_s();
    if (waited < kYielding_s) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(waited / 8, kLongestPause_s)));
    }
  }

 private:
  static constexpr double kYielding_s = 50e-6, kLongestPause_s = 1e-3;
  double timeout_s_, since_s_ = now_s();
};

/// Around a call that neither returns nor can be given up while another rank is missing: after `timeout_s` it logs
/// `sentence` and ends the process with Fault::comm.
class Watchdog {
 public:
  Watchdog(double timeout_s, std::string sentence)
      : thread_([this, timeout_s, sentence = std::move(sentence)] {
          std::unique_lock lock(mutex_);
          if (returned_.wait_for(lock, std::chrono::duration<double>(timeout_s), [this] { return done_; })) return;
          log_error(sentence);
          std::_Exit(int(Fault::comm));
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    returned_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable returned_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace gs
