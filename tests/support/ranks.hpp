// Ranks as threads of the test's process, over the transports that need no launcher.
#pragma once

#include <unistd.h>

#include "graphscale/exchange.hpp"

#include "src/exchange/launch.hpp"
#include "src/exchange/socket.hpp"

namespace gs {

using Transport = World::Transport;

/// What run_on_ranks can run on; mpi needs mpirun.
inline const std::vector<Transport> kThreadTransports = {Transport::local, Transport::tcp};

/// Long enough for a busy machine and sanitizers; tests of deadlines give their own.
inline constexpr double kTestTimeout_s = 60;

/// A port that nobody listens at, below those that the system gives to outgoing connections.
inline int free_port() {
  static std::atomic<int> next{int(getpid()) * 37};
  while (true) {
    const int port = 20000 + next++ % 10000;
    try {
      listen_at("127.0.0.1", port);
      return port;
    } catch (const Error&) {  // taken
    }
  }
}

/// Rank `rank` of `size` on this machine, over sockets.
inline World tcp_world(int rank, int size, int port, const std::string& job = "test") {
  World world;
  world.transport = Transport::tcp;
  world.size = world.local_size = size;
  world.rank = world.local_rank = rank;
  world.address = "127.0.0.1";
  world.port = port;
  world.job = job;
  return world;
}

/// body(comm) on `ranks` threads, EXPECT in it is fine. Errors as run_ranks: the first cause, with "rank N: " before
/// it.
inline void run_on_ranks(int ranks, const std::function<void(Comm& comm)>& body, Transport transport = Transport::local,
                         double timeout_s = kTestTimeout_s) {
  if (transport == Transport::tcp) {
    const int port = free_port();
    run_threads(
        ranks, [&](int rank) { return open_tcp(tcp_world(rank, ranks, port), timeout_s); }, body);
  } else {
    std::vector<std::unique_ptr<Comm>> ends = open_local(ranks, timeout_s);
    run_threads(
        ranks, [&](int rank) { return std::move(ends[std::size_t(rank)]); }, body);
  }
}

inline std::string name_of(Transport transport) {
  return transport == Transport::local ? "local" : transport == Transport::tcp ? "tcp" : "mpi";
}

}  // namespace gs
