// What `plan` speaks of: a run, the memory and machines there are for it, and what its ranks would hold and move.
#pragma once

#include "graphscale/plan.hpp"

#include "src/cli/settings.hpp"

namespace gs::cli {

/// The command's line.
struct PlanArguments {
  std::string graph, version, device_memory, host_memory;
  GraphSize size;
  int ranks_per_machine = 0;
  double memory_gbps = 0, flops = 0, link_gbps = 0, host_link_gbps = 0;
  bool json = false;
  ConfigArguments config;
};

/// Ranks that hold the same kinds of things, and the plan of the one that holds most.
struct PlanRole {
  std::string name;
  int ranks = 0, largest = 0;
  RankPlan plan;
};

/// What is planned for, and what there is.
struct PlanSubject {
  Config config;
  GraphSize size;
  std::shared_ptr<const Graph> graph;
  std::optional<Placement> placement;  // of the graph
  int ranks = 1, ranks_per_machine = 1;
  Device device;
  Offset device_bytes = 0, host_bytes = 0;  // of a GPU; of a machine
  MachineRates rates;

  bool is_exchanged() const { return ranks > 1 || needs_exchange(config); }
  /// A rank's own share of its machine's memory.
  Offset host_share() const { return host_bytes / ranks_per_machine; }
  Offset device_share() const { return device.is_cuda() ? device_bytes : host_share(); }
};

/// Reads the configuration and the graph, and asks this machine what it was not told. Throws usage: neither a store nor
/// a size, a size of memory that cannot be read, no GPU to ask; input: a graph without edges; what read_config and
/// Graph::open throw.
PlanSubject subject_of(const PlanArguments& arguments);

/// At least one; in the order of their first ranks.
std::vector<PlanRole> roles_of(const PlanSubject& subject);

/// Why a role does not fit, or nothing.
std::string misfit(const PlanSubject& subject, const PlanRole& role);
std::string first_misfit(const PlanSubject& subject, const std::vector<PlanRole>& roles);

/// Settings under which the run would fit, the smallest change first.
std::vector<std::string> ways_to_fit(const PlanSubject& subject);

/// A step of the busiest role; counts and traffic only where ranks exchange.
struct PlanForecast {
  StepCounts counts;
  StepTraffic traffic;
  StepTime time;
};

/// Samples the graph's first steps where a copy of its topology fits, else goes by a model of degrees.
PlanForecast forecast(const PlanSubject& subject, const std::vector<PlanRole>& roles);

}  // namespace gs::cli
