// Repeats a piece of work until its rate is known, and says how much of the machine it had meanwhile.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "graphscale/core.hpp"

namespace gs::bench {

/// What one repetition did. Bytes and FLOP are those that the algorithm needs, not those that a cache or a compiler
/// adds.
struct Work {
  double units = 0;  ///< pairs, steps, draws, rows
  double bytes = 0;  ///< read and written
  double flop = 0;

  Work& operator+=(const Work& other) {
    units += other.units, bytes += other.bytes, flop += other.flop;
    return *this;
  }
};

/// One repetition: `prepare` is not timed; `run` is, to the end of what it queued; `work` is asked afterwards.
struct Repetition {
  std::function<void()> prepare = [] {};
  std::function<void()> run;
  std::function<Work()> work;
};

/// The rate of a repetition: the median over all of them, and what they were in sum.
struct Rate {
  int repeats = 0;
  double units_per_s = 0, slowest = 0, fastest = 0;  ///< units_per_s: the median
  Work total;
  double seconds = 0, cpu_seconds = 0;  ///< cpu: of this process

  void set_rounds(std::vector<double> rates) {
    std::sort(rates.begin(), rates.end());
    repeats = int(rates.size());
    units_per_s = rates[rates.size() / 2], slowest = rates.front(), fastest = rates.back();
  }
  double spread() const { return (fastest - slowest) / units_per_s; }
  double bytes_per_unit() const { return total.bytes / total.units; }
  double flop_per_unit() const { return total.flop / total.units; }
  double bytes_per_s() const { return units_per_s * bytes_per_unit(); }
  double flop_per_s() const { return units_per_s * flop_per_unit(); }
  double units_per_cpu_s() const { return total.units / cpu_seconds; }
  /// Share of the threads' time that they had a processor: well below 1 where the machine is busy or they wait.
  double load(int threads) const { return cpu_seconds / (seconds * threads); }
};

inline double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The rates of several repetitions that take turns, so that a machine that is faster or slower for a while is so for
/// all of them: one round to warm up, then at least five, until each has had about `seconds`.
inline std::vector<Rate> measure_in_turn(const std::vector<Repetition>& repetitions, double seconds, const Exec& exec) {
  constexpr int kLeast = 5;
  std::vector<Rate> rates(repetitions.size());
  std::vector<std::vector<double>> of_rounds(repetitions.size());
  double spent_s = 0;
  for (int round = -1; round < kLeast || spent_s < seconds * double(rates.size()); ++round)
    for (std::size_t k = 0; k < rates.size(); ++k) {
      repetitions[k].prepare();
      wait(exec);
      const double start_s = now_s(), start_cpu_s = cpu_seconds();
      repetitions[k].run();
      wait(exec);
      const double wall_s = now_s() - start_s, cpu_s = cpu_seconds() - start_cpu_s;
      const Work work = repetitions[k].work();
      if (round < 0) continue;
      of_rounds[k].push_back(work.units / wall_s);
      rates[k].total += work;
      rates[k].seconds += wall_s, rates[k].cpu_seconds += cpu_s;
      spent_s += wall_s;
    }
  for (std::size_t k = 0; k < rates.size(); ++k) rates[k].set_rounds(of_rounds[k]);
  return rates;
}

inline Rate measure(const Repetition& repetition, double seconds, const Exec& exec) {
  return measure_in_turn({repetition}, seconds, exec)[0];
}

}  // namespace gs::bench
