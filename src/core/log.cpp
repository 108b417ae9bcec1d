#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>

#include "graphscale/core.hpp"

namespace gs {
namespace {

constexpr double kTerminalPeriod_s = 0.5, kPipePeriod_s = 10;
std::atomic<bool> quiet{false};

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> log = [] {
    auto made = std::make_shared<spdlog::logger>("graphscale", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%H:%M:%S %v");
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *log;
}

std::string in_units(double value, double step, const char* const* units, int count) {
  int unit = 0;
  while (std::abs(value) >= step && unit + 1 < count) value /= step, ++unit;
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 && value == std::floor(value) ? "%.0f%s" : "%.1f%s", value, units[unit]);
  return text;
}

}  // namespace

void set_quiet(bool value) { quiet = value; }
void log_info(const std::string& line) {
  if (!quiet) logger().info("{}", line);
}
void log_warn(const std::string& line) { logger().warn("warning: {}", line); }
void log_error(const std::string& line) { logger().error("error: {}", line); }

std::string human_bytes(double bytes) {
  static const char* const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  return in_units(bytes, 1024, units, 6);
}

std::string human_count(double count) {
  static const char* const units[] = {"", " k", " M", " G", " T"};
  return in_units(count, 1000, units, 5);
}

std::string human_seconds(double seconds) {
  char text[64];
  if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%d min %02d s", int(seconds) / 60, int(seconds) % 60);
  } else {
    std::snprintf(text, sizeof text, "%d h %02d min", int(seconds / 3600), int(seconds / 60) % 60);
  }
  return text;
}

std::string with_commas(Offset count) {
  std::string digits = std::to_string(count);
  for (int at = int(digits.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3) digits.insert(std::size_t(at), ",");
  return digits;
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Progress::State {
  std::string phase, unit;
  Offset total, done = 0, done_before = 0;
  double start_s = now_s(), printed_s = now_s();
  bool terminal = isatty(STDERR_FILENO) != 0;
  std::mutex mutex;

  void print(const std::string& note, bool last) {
    const double spent_s = std::max(now_s() - start_s, 1e-9), rate = double(done - done_before) / spent_s;
    std::string line = phase + ": ";
    if (total > 0) line += cat(int(100 * std::min(1.0, double(done) / double(total))), " % ");
    line += cat("(", with_commas(done), " ", unit, "), ",
                unit == "bytes" ? human_bytes(rate) : human_count(rate) + " " + unit, "/s");
    if (!note.empty()) line += ", " + note;
    if (last) {
      line += ", took " + human_seconds(spent_s);
    } else if (total > 0 && done > done_before) {
      line += ", ETA " + human_seconds(double(total - done) / rate);
    }
    if (terminal && !last) {
      std::fprintf(stderr, "\r\033[K%s", line.c_str());
    } else {
      if (terminal) std::fputs("\r\033[K", stderr);
      log_info(line);
    }
  }
};

Progress::Progress(std::string phase, std::string unit, Offset total) : state_(new State) {
  state_->phase = std::move(phase), state_->unit = std::move(unit), state_->total = total;
}

Progress::~Progress() {
  if (state_->terminal && !quiet && std::uncaught_exceptions() > 0) std::fputs("\r\033[K", stderr);
}

void Progress::start_at(Offset done) {
  const std::lock_guard lock(state_->mutex);
  state_->done = state_->done_before = done;
}

void Progress::set_total(Offset total) {
  const std::lock_guard lock(state_->mutex);
  state_->total = total;
}

void Progress::advance(Offset done, const std::string& note) {
  const std::lock_guard lock(state_->mutex);
  state_->done += done;
  const double now = now_s();
  if (quiet || now - state_->printed_s < (state_->terminal ? kTerminalPeriod_s : kPipePeriod_s)) return;
  state_->printed_s = now;
  state_->print(note, false);
}

void Progress::finish(const std::string& note) {
  const std::lock_guard lock(state_->mutex);
  if (!quiet) state_->print(note, true);
}

namespace {
std::atomic<int> stop_signals{0};  // set on any thread, read on others
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may touch no other");
void count_stop_signal(int signal) {
  if (++stop_signals > 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}
}  // namespace

void catch_stop_signals() {
  stop_signals = 0;
  std::signal(SIGINT, count_stop_signal);
  std::signal(SIGTERM, count_stop_signal);
  std::signal(SIGUSR1, count_stop_signal);  // what mpirun passes on at once, and Slurm sends before a time limit
}

bool stop_requested() { return stop_signals > 0; }

}  // namespace gs
