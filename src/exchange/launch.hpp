// Launching, as far as tests see it.
#pragma once

#include "graphscale/exchange.hpp"

namespace gs {

/// A variable of the environment, or null.
using Environment = std::function<const char*(const char* name)>;

World find_world(const Config& config, const Environment& environment, bool mpi_in_build);

/// The first host of a Slurm node list: "gpu[03-07,9],login1" -> "gpu03".
std::string first_host(const std::string& node_list);

/// Tasks on node number `node` by Slurm's "2(x3),1"; 0 where that does not say.
int tasks_on_node(const std::string& tasks_per_node, int node);

/// body(*open(rank)) for `size` ranks, a thread each; errors as in run_ranks.
void run_threads(int size, const std::function<std::unique_ptr<Comm>(int rank)>& open,
                 const std::function<void(Comm& comm)>& body);

}  // namespace gs
