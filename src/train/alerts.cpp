#include "src/train/alerts.hpp"

#include <cmath>

namespace gs {
namespace {

constexpr double kMuchMemory = 0.85, kEnoughMemory = 0.8;  // apart, so that a share near one does not warn again
constexpr double kFlat = 1e-3, kMoving = 5e-3;             // relative change of an epoch's mean loss
constexpr double kBusy = 0.5, kBusyPeriod_s = 60;

long percent(double share) { return std::lround(100 * share); }

}  // namespace

/// Whether it was turned on now.
bool Alerts::turn(Kind kind, bool on) { return !std::exchange(on_[std::size_t(kind)], on) && on; }

std::string Alerts::memory(Kind kind, const char* name, const char* remedy, Offset held, Offset limit) {
  const double share = double(held) / double(limit);
  if (!turn(kind, share > (is_on(kind) ? kEnoughMemory : kMuchMemory))) return "";
  return cat(name, ": ", percent(share), " % is in use, ", human_bytes(double(held)), " of ",
             human_bytes(double(limit)), "; ", remedy);
}

std::string Alerts::host_memory(Offset held, Offset limit) {
  return memory(kHostMemory, "host memory", "beyond that the system ends the run: lower model.dim or use more ranks",
                held, limit);
}

std::string Alerts::device_memory(Offset held, Offset limit) {
  return memory(kDeviceMemory, "GPU memory", "lower store.device_share, model.dim or training.step_walks", held, limit);
}

std::string Alerts::card(double busy_share, double now_s) {
  if (since_s_ < 0) {
    since_s_ = last_s_ = now_s;
    return "";
  }
  busy_s_ += busy_share * (now_s - last_s_);
  last_s_ = now_s;
  if (now_s - since_s_ < kBusyPeriod_s) return "";
  const double share = busy_s_ / (now_s - since_s_);
  since_s_ = now_s, busy_s_ = 0;
  if (!turn(kIdleCard, share < kBusy)) return "";
  return cat("GPU: busy ", percent(share), " % of the last minute; the stages in metrics.jsonl say what it waits for, ",
             "a larger training.step_walks gives it more to do at once");
}

std::string Alerts::step(int epoch, Offset pairs, double loss) {
  std::string warning;
  if (epoch != epoch_) {
    warning = end_epoch();
    epoch_ = epoch, pairs_ = 0, loss_ = 0;
  }
  pairs_ += pairs, loss_ += loss;
  return warning;
}

std::string Alerts::end_epoch() {
  if (flat_epochs_ == 0 || pairs_ == 0) return "";
  const double mean = loss_ / double(pairs_), before = std::exchange(mean_, mean);
  if (is_on(kFlatLoss)) {  // over once it stays elsewhere: one noisy epoch of many is no change
    moved_ = std::abs(mean - flat_mean_) > kMoving * flat_mean_ ? moved_ + 1 : 0;
    if (moved_ >= flat_epochs_) turn(kFlatLoss, false), flat_ = 0;
    return "";
  }
  flat_ = before > 0 && std::abs(mean - before) < kFlat * before ? flat_ + 1 : 0;
  if (flat_ < flat_epochs_) return "";
  turn(kFlatLoss, true), flat_mean_ = mean, moved_ = 0;
  return cat("loss: flat for ", flat_, flat_ == 1 ? " epoch" : " epochs", ", at ", mean, " in epoch ", epoch_,
             "; training has converged, or learns nothing (see eval.patience, training.learning_rate)");
}

}  // namespace gs
