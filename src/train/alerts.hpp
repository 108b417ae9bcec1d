// What a run is warned of.
#pragma once

#include <array>

#include "src/train/machine.hpp"

namespace gs {

/// Each warning comes once until its cause is over.
class Alerts {
 public:
  enum Kind { kHostMemory, kDeviceMemory, kFlatLoss, kIdleCard };
  static constexpr std::array<const char*, 4> kNames = {"host_memory", "device_memory", "flat_loss", "idle_gpu"};

  explicit Alerts(int flat_epochs) : flat_epochs_(flat_epochs) {}

  // Each returns the new warning, or an empty text.
  std::string host_memory(Offset held, Offset limit);
  std::string device_memory(Offset held, Offset limit);
  std::string card(double busy_share, double now_s);  ///< since the call before
  std::string step(int epoch, Offset pairs, double loss);

  bool is_on(Kind kind) const { return on_[std::size_t(kind)]; }

 private:
  std::string memory(Kind kind, const char* name, const char* remedy, Offset held, Offset limit);
  std::string end_epoch();
  bool turn(Kind kind, bool on);

  int flat_epochs_;
  std::array<bool, kNames.size()> on_{};
  int epoch_ = 0, flat_ = 0, moved_ = 0;  // epochs since the mean changed; since it left where it was flat
  Offset pairs_ = 0;
  double loss_ = 0, mean_ = 0, flat_mean_ = 0;  // of this epoch; of the one before (0: none), of the last warning
  double since_s_ = -1, last_s_ = 0, busy_s_ = 0;
};

}  // namespace gs
