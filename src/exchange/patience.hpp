// Waiting for other ranks: by looking again and again until a deadline, and, for the few library calls that cannot be
// given up, by a watch that ends the process.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "graphscale/core.hpp"

namespace gs {

/// How long others are waited for, and the pauses between two looks for them. All waiting that ends at a deadline is
/// counted here: pause, look, ask over().
///
/// Only time in which the others could have been seen is waited. Between two looks that are much further apart than any
/// pause the process stood still (SIGSTOP, a debugger, a frozen container), which says nothing of the others: they are
/// looked for again before they are given up. Pauses are therefore short, by pause() or of pause_s(). For one thread at
/// a time.
class Patience {
 public:
  using Clock = double (*)();  ///< seconds, ascending

  explicit Patience(double timeout_s, Clock clock = now_s) : clock_(clock), timeout_s_(timeout_s) {}

  void restart() { waited_s_ = 0, looked_s_ = clock_(); }  ///< something came
  void extend(double by_s) { timeout_s_ += by_s; }
  double timeout_s() const { return timeout_s_; }

  double waited_s() {
    const double now = clock_(), since = now - std::exchange(looked_s_, now);
    return waited_s_ += since > kStoodStill_s ? kLongestPause_s : since;  // not 0: it ends where every look is slow
  }
  bool over() { return waited_s() >= timeout_s_; }

  /// call(), whose own time is waited however long it takes.
  template <class Call>
  auto spend_on(Call&& call) {
    waited_s();
    auto result = call();
    const double now = clock_();
    waited_s_ += now - std::exchange(looked_s_, now);
    return result;
  }

  /// Until the next look, for those who sleep in a wait of their own, in seconds and in poll()'s milliseconds (rounded
  /// up). 0: over.
  double pause_s() { return std::clamp(timeout_s_ - waited_s(), 0.0, kLongestPause_s); }
  int pause_ms() { return int(std::ceil(pause_s() * 1e3)); }

  /// For those who have nothing to sleep in. Yields at first (an exchange in memory takes microseconds), then sleeps an
  /// eighth of the time waited, at most 1 ms: late by 12 %, and cores stay free where ranks outnumber them.
  void pause() {
    const double waited = waited_s();
    if (waited < kYielding_s) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(waited / 8, kLongestSleep_s)));
    }
  }

 private:
  static constexpr double kYielding_s = 50e-6, kLongestSleep_s = 1e-3;
  static constexpr double kLongestPause_s = 0.1;  // 10 looks a second cost nothing
  static constexpr double kStoodStill_s = 1;      // far above a pause, for busy machines
  Clock clock_;
  double timeout_s_, waited_s_ = 0, looked_s_ = clock_();
};

/// Around a call that neither returns nor can be given up while another rank is missing: after `timeout_s` it logs
/// `sentence` and ends the process with Fault::comm.
class Watchdog {
 public:
  Watchdog(double timeout_s, std::string sentence)
      : thread_([this, timeout_s, sentence = std::move(sentence)] {
          std::unique_lock lock(mutex_);
          for (Patience patience(timeout_s); !done_;) {
            if (patience.over()) {
              log_error(sentence);
              std::_Exit(int(Fault::comm));
            }
            returned_.wait_for(lock, std::chrono::duration<double>(patience.pause_s()));
          }
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
