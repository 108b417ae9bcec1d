// How the ranks of a tcp world find each other.
//
// Rank 0 listens where everyone knows. Each other rank opens a listener of its own, calls rank 0 and says who it is.
// When all have come, rank 0 tells everyone where everyone listens; then each calls the ranks between 0 and itself and
// is called by those above. Strangers (another job, a port scanner) are told why and turned away, and hold nobody up.
#pragma once

#include "graphscale/exchange.hpp"

#include "src/exchange/socket.hpp"

namespace gs {

inline constexpr std::size_t kLongestJob = 127;  ///< bytes of World::job

/// [world.size] a socket to each rank; none to itself. Throws comm: who did not come within timeout_s, or why rank 0
/// turned this rank away; usage: the port is taken.
std::vector<Socket> meet_ranks(const World& world, double timeout_s);

}  // namespace gs
