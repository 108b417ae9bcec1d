// How much of the machine a run uses: its memory, and the card it trains on as NVML sees it.
#pragma once

#include <optional>

#include "graphscale/core.hpp"

namespace gs {

/// Of the whole card, whoever uses it. What the card does not tell is left out.
struct CardUse {
  std::optional<double> busy_share;  ///< of NVML's last sample period, 1/6 to 1 s, in which any kernel ran
  std::optional<Offset> used_bytes, total_bytes;
};

struct MachineUse {
  Offset resident_bytes = 0;                         ///< of the process, with mapped files
  Offset host_used_bytes = 0, host_limit_bytes = 0;  ///< by anyone; of the machine or the cgroup
  std::optional<CardUse> card;
};

/// A card by libnvidia-ml.so.1, which is looked for when the first one is made.
class Card {
 public:
  Card() = default;
  explicit Card(Device device);  ///< without a card or the library: one that says nothing
  std::optional<CardUse> use() const;

 private:
  void* handle_ = nullptr;
};

}  // namespace gs
