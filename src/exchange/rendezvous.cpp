#include "src/exchange/rendezvous.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "src/exchange/failures.hpp"

namespace gs {
namespace {

constexpr char kMagic[8] = {'G', 'S', 'R', 'A', 'N', 'K', 'S', '\n'};
constexpr std::uint32_t kVersion = 1;  // of all that is sent here and in tcp.cpp
constexpr double kRefusal_s = 0.2;     // for telling a stranger
constexpr double kGrace_s = 2;         // so that rank 0's sentence, which names the missing, comes before ours
constexpr std::size_t kLongestReason = 1000;
constexpr std::size_t kMostStrangers = 64;  // callers that have not said who they are

struct Hello {
  char magic[8];
  std::uint32_t version;
  std::int32_t size, rank;
  std::uint32_t port;  // where this rank listens
  char job[kLongestJob + 1];
};

struct Reply {
  char magic[8];
  std::uint32_t reason_bytes;  // > 0: turned away, the reason follows
};

struct Seat {
  char address[64];
  std::uint32_t port;
};

std::string job_of(const Hello& hello) { return printable({hello.job, strnlen(hello.job, sizeof hello.job)}); }

Hello hello_of(const World& world, int port) {
  Hello hello{};
  std::memcpy(hello.magic, kMagic, sizeof kMagic);
  hello.version = kVersion;
  hello.size = world.size;
  hello.rank = world.rank;
  hello.port = std::uint32_t(port);
  world.job.copy(hello.job, kLongestJob);
  return hello;
}

bool reply(const Socket& socket, const std::string& reason, Patience& patience) {
  Reply answer{};
  std::memcpy(answer.magic, kMagic, sizeof kMagic);
  const std::string text = reason.substr(0, kLongestReason);
  answer.reason_bytes = std::uint32_t(text.size());
  return send_all(socket, &answer, sizeof answer, patience) &&
         send_all(socket, text.data(), Offset(text.size()), patience);
}

void refuse(const Socket& socket, const std::string& reason) {
  Patience patience(kRefusal_s);
  reply(socket, reason, patience);
}

/// Throws comm where the other end did not take this rank in; `who` is the other end.
void read_reply(const Socket& socket, const std::string& who, Patience& patience) {
  Reply answer{};
  if (!receive_all(socket, &answer, sizeof answer, patience))
    throw Error(Fault::comm,
                cat(who, patience.over() ? " took the call but never answered"
                                         : " closed the connection while the ranks met: it died or was killed"));
  if (std::memcmp(answer.magic, kMagic, sizeof kMagic) != 0 || answer.reason_bytes > kLongestReason)
    throw Error(Fault::comm,
                cat(who, " is another program; pass another --port (or MASTER_PORT), the same on all ranks"));
  if (answer.reason_bytes == 0) return;
  std::string reason(answer.reason_bytes, ' ');
  receive_all(socket, reason.data(), Offset(reason.size()), patience);
  throw Error(Fault::comm, cat(who, " turned this rank away: ", printable(reason)));
}

/// One listener and the ranks it waits for.
class Reception {
 public:
  Reception(const World& world, const Socket& listener, int first_rank)
      : world_(world), listener_(listener), first_rank_(first_rank), guests_(std::size_t(world.size)) {}

  /// Waits until ranks first_rank to size - 1 are here. Throws comm: who is not, or who came and died.
  void wait(Patience& patience) {
    while (true) {
      const std::vector<int> missing = absent();
      if (missing.empty()) return;
      if (patience.over())
        fail(cat(rank_list(missing), missing.size() == 1 ? " has" : " have", " not come to rank ", world_.rank, " at ",
                 to_string(local_endpoint(listener_)), " within ", patience.timeout_s(),
                 " s (exchange.timeout_s): not started, or not able to reach it"));
      poll_once(patience);
    }
  }

  std::vector<Socket>& guests() { return guests_; }  ///< [size]
  const Hello& hello(int rank) const { return hellos_.at(rank); }

  /// Tells all who are here, then throws.
  [[noreturn]] void fail(const std::string& reason) {
    for (const Socket& guest : guests_)
      if (guest) refuse(guest, reason);
    throw Error(Fault::comm, reason);
  }

 private:
  struct Stranger {
    Socket socket;
    Hello hello{};
    Offset got = 0;
  };

  std::vector<int> absent() const {
    std::vector<int> ranks;
    for (int r = first_rank_; r < world_.size; ++r)
      if (!guests_[std::size_t(r)]) ranks.push_back(r);
    return ranks;
  }

  void poll_once(Patience& patience) {
    std::vector<pollfd> ends{{listener_.number(), POLLIN, 0}};
    for (const Stranger& one : strangers_) ends.push_back({one.socket.number(), POLLIN, 0});
    for (const Socket& guest : guests_) ends.push_back({guest.number(), POLLIN, 0});  // -1 is passed over
    if (poll(ends.data(), nfds_t(ends.size()), patience.pause_ms()) <= 0) return;

    for (std::size_t r = 0; r < guests_.size(); ++r)  // a guest has nothing to say before we answer it
      if (ends[1 + strangers_.size() + r].revents) {
        guests_[r] = Socket();
        fail(cat("rank ", r, " came and closed its connection before all ranks had come: it died or was killed"));
      }
    for (std::size_t i = strangers_.size(); i-- > 0;)
      if (ends[1 + i].revents && !listen_to(strangers_[i])) strangers_.erase(strangers_.begin() + std::ptrdiff_t(i));
    if (ends[0].revents)
      if (Socket socket = accept_from(listener_)) {
        if (strangers_.size() == kMostStrangers) strangers_.erase(strangers_.begin());
        strangers_.emplace_back().socket = std::move(socket);
      }
  }

  /// False: it is no stranger any more, or gone.
  bool listen_to(Stranger& one) {
    const Offset got =
        receive_some(one.socket, reinterpret_cast<char*>(&one.hello) + one.got, Offset(sizeof(Hello)) - one.got);
    if (got < 0) return false;
    one.got += got;
    const Offset seen = std::min<Offset>(one.got, sizeof kMagic);
    if (std::memcmp(one.hello.magic, kMagic, std::size_t(seen)) != 0)
      return false;  // another protocol: nothing to tell
    if (one.got < Offset(sizeof(Hello))) return true;

    const std::string reason = objection(one.hello);
    if (reason.empty()) {
      hellos_[one.hello.rank] = one.hello;
      guests_[std::size_t(one.hello.rank)] = std::move(one.socket);
    } else {
      log_warn(cat("turned away a caller from ", to_string(remote_endpoint(one.socket)), ": ", reason));
      refuse(one.socket, reason);
    }
    return false;
  }

  std::string objection(const Hello& hello) const {
    if (hello.version != kVersion)
      return cat("it speaks version ", hello.version, " of the protocol, rank ", world_.rank, " version ", kVersion,
                 ": start the same build everywhere");
    if (job_of(hello) != printable(world_.job))
      return cat("it belongs to job \"", job_of(hello), "\", rank ", world_.rank, " here to job \"",
                 printable(world_.job), "\": give each job a port of its own (--port)");
    if (hello.size != world_.size)
      return cat("it was started as one of ", hello.size, " ranks, rank ", world_.rank, " here as one of ",
                 world_.size);
    if (hello.rank < first_rank_ || hello.rank >= world_.size || hello.port > 65535)
      return cat("it calls itself rank ", hello.rank, "; ranks ", first_rank_, " to ", world_.size - 1,
                 " are expected here");
    if (guests_[std::size_t(hello.rank)]) return cat("a rank ", hello.rank, " is here already: was it started twice?");
    return "";
  }

  const World& world_;
  const Socket& listener_;
  int first_rank_;
  std::vector<Socket> guests_;
  std::map<int, Hello> hellos_;
  std::vector<Stranger> strangers_;
};

std::vector<Socket> meet_as_host(const World& world, double timeout_s) {
  const Socket listener = listen_at(world.address, world.port);
  Reception reception(world, listener, 1);
  Patience patience(timeout_s);
  reception.wait(patience);

  std::vector<Seat> seats(std::size_t(world.size), Seat{});
  for (int r = 1; r < world.size; ++r) {
    Seat& seat = seats[std::size_t(r)];
    remote_endpoint(reception.guests()[std::size_t(r)]).address.copy(seat.address, sizeof seat.address - 1);
    seat.port = reception.hello(r).port;
  }
  for (int r = 1; r < world.size; ++r) {
    const Socket& guest = reception.guests()[std::size_t(r)];
    patience.restart();
    if (!reply(guest, "", patience) || !send_all(guest, seats.data(), Offset(seats.size() * sizeof(Seat)), patience))
      throw Error(Fault::comm, cat("rank ", r, " closed its connection while the ranks met: it died or was killed"));
  }
  return std::move(reception.guests());
}

std::vector<Socket> meet_as_guest(const World& world, double timeout_s) {
  const Endpoint host{world.address, world.port};
  const std::string host_name = cat("rank 0 at ", to_string(host));
  const Socket listener = listen_at(world.address, 0);
  const Hello hello = hello_of(world, local_endpoint(listener).port);

  Patience patience(timeout_s);
  Socket to_host;
  try {
    to_host = connect_to(host, patience, true);
  } catch (const Error& error) {
    throw Error(error.fault,
                cat(host_name, " did not answer within ", timeout_s, " s (exchange.timeout_s): ", error.what()));
  }
  if (!send_all(to_host, &hello, sizeof hello, patience))
    throw Error(Fault::comm, cat(host_name, " hung up before this rank had said who it is"));
  patience.extend(kGrace_s);
  read_reply(to_host, host_name, patience);
  std::vector<Seat> seats((std::size_t(world.size)));
  if (!receive_all(to_host, seats.data(), Offset(seats.size() * sizeof(Seat)), patience))
    throw Error(Fault::comm, cat(host_name, " did not say where the other ranks are"));

  Patience mesh_patience(timeout_s);
  const std::string host_address = remote_endpoint(to_host).address;
  std::vector<Socket> lower((std::size_t(world.rank)));
  for (int r = 1; r < world.rank; ++r) {
    const Seat& seat = seats[std::size_t(r)];
    const std::string address(seat.address, strnlen(seat.address, sizeof seat.address));
    // Who reached rank 0 by the loopback device is on rank 0's machine: others find it where they found rank 0.
    const Endpoint peer{is_loopback(address) ? host_address : address, int(seat.port & 0xFFFF)};
    Socket& socket = lower[std::size_t(r)];
    try {
      socket = connect_to(peer, mesh_patience, false);
    } catch (const Error& error) {
      throw Error(error.fault, cat("rank ", r, " came to rank 0 but cannot be reached from here: ", error.what()));
    }
    if (!send_all(socket, &hello, sizeof hello, mesh_patience)) throw Error(Fault::comm, died_sentence(r));
  }

  Reception reception(world, listener, world.rank + 1);
  reception.wait(mesh_patience);
  for (int r = world.rank + 1; r < world.size; ++r)
    if (!reply(reception.guests()[std::size_t(r)], "", mesh_patience)) throw Error(Fault::comm, died_sentence(r));
  std::vector<Socket> sockets = std::move(reception.guests());
  for (int r = 1; r < world.rank; ++r) {
    read_reply(lower[std::size_t(r)], cat("rank ", r), mesh_patience);
    sockets[std::size_t(r)] = std::move(lower[std::size_t(r)]);
  }
  sockets[0] = std::move(to_host);
  return sockets;
}

}  // namespace

std::vector<Socket> meet_ranks(const World& world, double timeout_s) {
  GS_EXPECT(world.rank >= 0 && world.rank < world.size, "meet_ranks: rank ", world.rank, " of ", world.size);
  GS_EXPECT(world.job.size() <= kLongestJob, "meet_ranks: a job id of ", world.job.size(), " bytes");
  std::vector<Socket> sockets((std::size_t(world.size)));
  if (world.size > 1) sockets = world.rank == 0 ? meet_as_host(world, timeout_s) : meet_as_guest(world, timeout_s);
  for (const Socket& socket : sockets)
    if (socket) send_at_once(socket);
  return sockets;
}

}  // namespace gs
