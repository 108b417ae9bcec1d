// What a run will hold, by purpose, before it starts.
#pragma once

#include "graphscale/store.hpp"

namespace gs {

struct PlanEntry {
  std::string purpose;  ///< the ledger's name for the same memory
  Offset bytes = 0;
  std::string lower;  ///< the option that makes it smaller, or empty
};

struct Plan {
  Device device;
  Offset step_walks = 0;           ///< walks a step, chosen where the configuration says 0
  std::vector<PlanEntry> entries;  ///< memory of the device that trains
  Offset total_bytes() const;
};

/// Walks a step of all ranks, chosen where the configuration says 0: in place, as few as keep the device busy; exchanged,
/// so few that a step's summed gradients stay small beside the table.
Offset choose_step_walks(const Config& config, Offset nodes, Device device, int compute_ranks);

struct GraphSize {
  Offset nodes = 0, arcs = 0;
  bool weighted = false;
};

/// Everything that `train` will allocate on `device` for a graph of that size.
Plan plan_training(const Config& config, const GraphSize& size, Device device);

/// Throws memory where the plan exceeds `available` bytes: one line with every entry of 1 % or more, the sum, what
/// there is, and the option that would save most.
void check_fits(const Plan& plan, Offset available);

}  // namespace gs
