// Entries that plans of one and of many ranks share.
#pragma once

#include "graphscale/plan.hpp"

namespace gs {

/// Of a WalkTopology of so many rows and arcs, where sampler.topology puts it.
std::vector<PlanEntry> graph_entries(const Config& config, Offset rows, Offset arcs, bool weighted, Device device,
                                     int ranks);

/// The arcs of the first `rows` of `nodes` rows by descending degree, as a share of all arcs; power: of degree ^ power.
double share_of_first(double rows, double nodes, double power = 1);

}  // namespace gs
