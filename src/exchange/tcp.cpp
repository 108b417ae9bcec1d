// Ranks that are processes, a socket between each two. All that a call sends and receives moves at once, as the sockets
// allow: no order of sends can fill the pipes and stop.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "graphscale/exchange.hpp"

#include "src/exchange/failures.hpp"
#include "src/exchange/rendezvous.hpp"
#include "src/exchange/wire.hpp"

namespace gs {
namespace {

constexpr double kFarewell_s = 1;  // for telling the others why this rank leaves

struct Peer {
  Socket socket;
  Outbox out;
  Inbox in;
  bool is_busy() const { return out.is_sending() || in.is_expecting(); }
};

class TcpComm : public Comm {
 public:
  TcpComm(int rank, std::vector<Socket> sockets, double timeout_s)
      : Comm(rank, int(sockets.size())), timeout_s_(timeout_s), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    for (std::size_t r = 0; r < sockets.size(); ++r)
      peers_.push_back({std::move(sockets[r]), Outbox(), Inbox(int(r), rank)});
  }
  ~TcpComm() override { say_farewell(Frame::ended, ended_sentence(rank()), 0); }

  const char* transport() const override { return "tcp"; }
  void abort(const std::string& reason) noexcept override;
  void notice() override;

 private:
  using Parts = std::vector<Span<char>>;
  using ConstParts = std::vector<Span<const char>>;

  void exchange(const ConstParts& send, const Parts& receive) override;
  void run_call(const ConstParts& send, const Parts& receive);
  template <class Work>
  void remember_failure(Work&& work);
  std::vector<pollfd> awaited() const;
  Offset advance(Peer& peer, bool readable, bool writable);
  void say_farewell(Frame::Kind kind, const std::string& sentence, double limit_s) noexcept;

  double timeout_s_;
  std::vector<Peer> peers_;  // [size]; the own one has no socket
  Offset call_ = 0;

  std::mutex calling_;                // held by a call and by abort
  std::string failure_;               // the first; every later call throws it
  std::atomic<bool> stopped_{false};  // abort waits for the call to end
  Socket wake_;                       // readable once stopped
};

/// Bytes moved. Throws comm.
Offset TcpComm::advance(Peer& peer, bool readable, bool writable) {
  Offset moved = 0;
  if (readable && peer.in.wants_bytes()) moved += peer.in.receive(peer.socket);
  if (writable && peer.out.is_sending()) {
    const Offset sent = peer.out.send(peer.socket);
    if (sent < 0) peer.in.throw_loss(peer.socket);
    moved += sent;
  }
  if (peer.in.is_closed() && peer.is_busy()) peer.in.throw_loss(peer.socket);
  return moved;
}

/// For poll: each peer's socket and wake_. A peer of which nothing is wanted is left out, or a closed one would end
/// every wait at once.
std::vector<pollfd> TcpComm::awaited() const {
  std::vector<pollfd> ends;
  for (const Peer& peer : peers_) {
    const int events = (peer.in.wants_bytes() ? POLLIN : 0) | (peer.out.is_sending() ? POLLOUT : 0);
    ends.push_back({events ? peer.socket.number() : -1, short(events), 0});
  }
  ends.push_back({wake_.number(), POLLIN, 0});
  return ends;
}

void TcpComm::run_call(const ConstParts& send, const Parts& receive) {
  ++call_;
  for (int r = 0; r < size(); ++r) {
    peers_[std::size_t(r)].in.start(call_, receive[std::size_t(r)]);
    peers_[std::size_t(r)].out.start(call_, send[std::size_t(r)]);
  }
  for (int step = 1; step < size(); ++step) {  // each starts at another peer
    Peer& peer = peers_[std::size_t((rank() + step) % size())];
    advance(peer, false, true);
  }

  Patience patience(timeout_s_);
  while (std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.is_busy(); })) {
    std::vector<pollfd> ends = awaited();
    poll(ends.data(), nfds_t(ends.size()), patience.pause_ms());
    if (stopped_) throw Error(Fault::comm, left_sentence(rank(), "another of its threads failed"));
    Offset moved = 0;
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (const short events = ends[r].revents)
        moved += advance(peers_[r], events & (POLLIN | POLLHUP | POLLERR), events & (POLLOUT | POLLHUP | POLLERR));
    if (moved > 0) {
      patience.restart();
    } else if (patience.over()) {
      std::vector<int> silent;
      for (int r = 0; r < size(); ++r)
        if (peers_[std::size_t(r)].is_busy()) silent.push_back(r);
      throw Error(Fault::comm, silent_sentence(silent, timeout_s_));
    }
  }
}

/// work() under calling_; what it throws is thrown by every later call.
template <class Work>
void TcpComm::remember_failure(Work&& work) {
  if (!failure_.empty()) throw Error(Fault::comm, failure_);
  try {
    work();
  } catch (const Error& error) {
    if (!stopped_) failure_ = error.what();
    throw;
  }
}

void TcpComm::exchange(const ConstParts& send, const Parts& receive) {
  const std::lock_guard lock(calling_);
  remember_failure([&] { run_call(send, receive); });
}

void TcpComm::notice() {
  const std::unique_lock lock(calling_, std::try_to_lock);
  if (!lock) return;  // the call in progress hears it, and the next notice from it
  remember_failure([&] {
    std::vector<pollfd> ends = awaited();
    poll(ends.data(), nfds_t(ends.size()), 0);
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (ends[r].revents) peers_[r].in.receive(peers_[r].socket);
      if (peers_[r].in.is_lost()) peers_[r].in.throw_loss(peers_[r].socket);
    }
  });
}

void TcpComm::abort(const std::string& reason) noexcept {
  stopped_ = true;
  eventfd_write(wake_.number(), 1);
  const std::lock_guard lock(calling_);
  if (failure_.empty()) failure_ = left_sentence(rank(), reason);
  say_farewell(Frame::abort, failure_, kFarewell_s);
}

/// Sends last words and closes; within limit_s the others' bytes are read and forgotten, as a socket that is closed
/// with bytes unread takes back what it has sent.
void TcpComm::say_farewell(Frame::Kind kind, const std::string& sentence, double limit_s) noexcept try {
  Patience patience(limit_s);
  for (Peer& peer : peers_) {
    if (!peer.socket) continue;
    peer.in.discard();
    peer.out.start_farewell(kind, rank(), sentence);
  }
  while (true) {
    std::vector<pollfd> ends;
    for (Peer& peer : peers_) {
      if (peer.socket && peer.out.is_saying_farewell()) {
        peer.out.send_farewell(peer.socket);
        if (!peer.out.is_saying_farewell()) shutdown(peer.socket.number(), SHUT_WR);
      }
      try {
        while (peer.socket && !patience.over() && peer.in.receive(peer.socket) > 0) continue;
      } catch (const Error&) {  // its own last words
      }
      if (peer.socket && !peer.in.is_closed())
        ends.push_back({peer.socket.number(), short(POLLIN | (peer.out.is_saying_farewell() ? POLLOUT : 0)), 0});
    }
    if (ends.empty() || patience.over()) break;
    poll(ends.data(), nfds_t(ends.size()), patience.pause_ms());
  }
  for (Peer& peer : peers_) peer.socket = Socket();
} catch (const std::exception&) {  // memory: the others see the connection end
}

}  // namespace

std::unique_ptr<Comm> open_tcp(const World& world, double timeout_s) {
  return std::make_unique<TcpComm>(world.rank, meet_ranks(world, timeout_s), timeout_s);
}

}  // namespace gs
