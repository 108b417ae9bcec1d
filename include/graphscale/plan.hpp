// What a run will hold, move and take, before it starts.
#pragma once

#include <limits>

#include "graphscale/store.hpp"

namespace gs {

/// Where memory lies: on the device that trains, or in pinned host memory that it reads. On the CPU both are RAM.
enum class Tier { device, host };

struct PlanEntry {
  std::string purpose;  ///< the ledger's name for the same memory
  Offset bytes = 0;
  std::string remedy;  ///< what makes it smaller, as in "lower model.dim", or empty
  Tier tier = Tier::device;
};

struct Plan {
  Device device;
  Offset step_walks = 0;  ///< walks a step of all ranks, chosen where the configuration says 0
  std::vector<PlanEntry> entries;
  Offset total_bytes() const;
  Offset total_bytes(Tier tier) const;
};

struct GraphSize {
  Offset nodes = 0, arcs = 0;
  bool weighted = false;
  Offset relations = 0;  ///< of a knowledge graph
};
GraphSize size_of(const Csr& graph);
inline Offset units_of(const Config& config, const GraphSize& size) {
  return units_per_epoch(config, size.nodes, size.arcs);
}

/// Walks (or other units) a step of all ranks of `units` an epoch, chosen where the configuration says 0: in place, as
/// few as keep the device busy; exchanged, so few that a step's summed gradients stay small beside the table.
Offset choose_step_walks(const Config& config, Offset units, Device device, int compute_ranks);

/// Everything that training in place will allocate for a graph of that size.
Plan plan_training(const Config& config, const GraphSize& size, Device device);

/// Throws memory where the plan exceeds what is free on the device or in host memory (on the CPU: both together exceed
/// `device_bytes`): one line with every entry of 1 % or more, the sum, what there is, and what would save most.
void check_fits(const Plan& plan, Offset device_bytes, Offset host_bytes = std::numeric_limits<Offset>::max());

// -------------------------------------------------------------------------------------------------------- many ranks

/// What one rank of exchanged training will hold, and the shape of its work.
struct RankPlan : Plan {
  RankPart part;
  TablesShape shape;             ///< with its hot rows; step_walks: of one rank
  int steps_in_flight = 1;       ///< steps that have buffers of their own
  bool by_start = false;         ///< the rank trains the walks that start at its own rows
  bool local_negatives = false;  ///< it draws negatives from its own rows
};

/// Everything that one rank will allocate, and its hot rows: as many as store.device_share of what all else leaves of
/// `device_bytes` holds (see choose_hot_rows). Of `size` the whole graph's.
RankPlan plan_rank(const Config& config, const GraphSize& size, const RankPart& part, Device device,
                   Offset device_bytes);

/// As check_fits, of one of several ranks and its share of its machine's memory.
void check_rank_fits(const RankPlan& plan, Offset device_bytes, Offset host_bytes);

/// Throws memory where this rank's plan does not fit its device, or those of the ranks on this machine together do not
/// fit its host memory. Collective on `comm`; nothing is allocated before all ranks have looked.
void check_ranks_fit(const RankPlan& plan, Comm& comm);

/// The part of rank `rank` for a graph of which only the size is known: equal shares, with room for the largest degree
/// of the degree model (cyclic) or METIS's tolerance of 3 % (partition).
RankPart expected_part(const Config& config, const GraphSize& size, int ranks, int rank);

// ----------------------------------------------------------------------------------------------------------- traffic

/// What a compute rank touches in a step, mean over compute ranks. Of two tables a row needed as centre and as context
/// counts in `centres` and in `rows`; of one table all count in `rows` alone.
struct StepCounts {
  struct Group {
    double rows = 0, centres = 0;
  };
  double walks = 0;
  double requested_rows = 0;        ///< places in walks, twice where there are two tables, and among negatives
  Group head, local, remote;        ///< distinct rows
  double travellers = 0, news = 0;  ///< to other ranks, sampler.topology partitioned
  bool is_sampled = false;
};

/// In expectation, from the degree model: rows by descending degree have degrees in proportion to rank^(-2/3), a power
/// law of exponent 2.5, of which the first x of n rows hold (x / n)^(1/3) of all arcs (10 % of rows: 46 %; static sets
/// on real graphs took 33 to 56 %). Walks start uniformly and then visit nodes by degree; a step returns to the node
/// before with chance nodes / arcs. Ends of edges and of triples are visited by degree, relations uniformly. Placement
/// `partition` counts as cyclic: an upper bound.
StepCounts expected_counts(const Config& config, const GraphSize& size, const RankPlan& plan);

/// Counted in the first steps of the run as it will sample them: a few steps of up to 8 ranks, on the CPU. Holds a
/// Sampler of the graph meanwhile.
StepCounts sampled_counts(const Config& config, const Csr& graph, const Placement& placement, const RankPlan& plan,
                          int threads);

/// Bytes that a rank sends to others in a step, and receives.
struct StepTraffic {
  double id_bytes = 0, row_bytes = 0, gradient_bytes = 0, head_bytes = 0, walker_bytes = 0, count_bytes = 0;
  double received_bytes = 0;
  double sent_bytes() const { return id_bytes + row_bytes + gradient_bytes + head_bytes + walker_bytes + count_bytes; }
};
StepTraffic traffic_of(const RankPlan& plan, const Config& config, const StepCounts& counts);

// -------------------------------------------------------------------------------------------------------------- time

/// What a rank's device and links do in a second: estimates, which a command line may replace.
struct MachineRates {
  std::string name;
  double memory_bytes = 0;     ///< of the device's memory
  double flops = 0;            ///< float32, in the tile kernel
  double walk_steps = 0;       ///< nodes sampled
  double unique_rows = 0;      ///< places deduplicated
  double host_link_bytes = 0;  ///< between a GPU and host memory; on the CPU that of memory
  double link_bytes = 0;       ///< between ranks, each way
  double call_s = 0;           ///< of one all-to-all of nothing
};
/// Of a rank with so many threads, or a part of one where ranks outnumber them. A thread: 20 GFLOP/s in the tile (as
/// measured, 6 M pairs/s), 10 GB/s, 20 M walk steps/s.
MachineRates cpu_rates(double threads);
MachineRates h200_rates();  ///< DESIGN.md section 7: 4.8 TB/s, 60 TFLOP/s in the tile, PCIe 5

/// Seconds of a stage by what bounds it; they overlap within a stage.
struct StageCost {
  const char* name = "";
  double memory_s = 0, compute_s = 0, host_link_s = 0, link_s = 0;
  double seconds() const;
  const char* bound() const;  ///< memory | compute | host link | link
};

struct StepTime {
  std::vector<StageCost> stages;
  double step_s = 0;
  std::string bottleneck;  ///< "compute: memory"
  Offset steps_per_epoch = 0;
  double epoch_s() const { return step_s * double(steps_per_epoch); }
};

/// Of training in place: sampling and the tile take turns.
StepTime expected_time(const Config& config, const GraphSize& size, const Plan& plan, const MachineRates& rates);

/// Of exchanged training. With staleness 0 the stages add up; else they overlap, but for fetch and push, which share a
/// thread, and for the device's own work, which no overlap makes less.
StepTime expected_time(const Config& config, const GraphSize& size, const RankPlan& plan, const StepCounts& counts,
                       const StepTraffic& traffic, const MachineRates& rates);

}  // namespace gs
