// TCP sockets: owned, never blocking, closed on exec; what waits does so with patience.
#pragma once

#include "graphscale/exchange.hpp"

#include "src/exchange/patience.hpp"

namespace gs {

/// Sole owner of a descriptor; -1 is none. Moves, never copies.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int number) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&& other) noexcept { return std::swap(number_, other.number_), *this; }
  ~Socket();
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// An address as numbers ("10.0.0.7", "::1") and a port.
struct Endpoint {
  std::string address;
  int port = 0;
};
std::string to_string(const Endpoint& endpoint);

/// Listens on the loopback device where `address` names it, else on all devices of the family that `address` has.
/// port 0: any. Throws usage: the port is taken or not ours to take.
Socket listen_at(const std::string& address, int port);

/// Connects, again and again until patience is over; where nobody listens at the other end only if `wait_for_listener`.
/// Throws comm: the last reason.
Socket connect_to(const Endpoint& peer, Patience& patience, bool wait_for_listener);

Socket accept_from(const Socket& listener);  ///< empty: nobody is waiting
Endpoint local_endpoint(const Socket& socket);
Endpoint remote_endpoint(const Socket& socket);
void send_at_once(const Socket& socket);  ///< no waiting for more bytes to fill a packet

/// All of it, or false: the other end closed or patience is over.
bool send_all(const Socket& socket, const void* data, Offset bytes, Patience& patience);
bool receive_all(const Socket& socket, void* data, Offset bytes, Patience& patience);

/// recv() and send() without blocking or signals. Bytes moved; 0: nothing for now; -1: closed by the other end or
/// broken.
Offset receive_some(const Socket& socket, void* data, Offset bytes);
Offset send_some(const Socket& socket, const void* head, Offset head_bytes, const void* body, Offset body_bytes);

}  // namespace gs
