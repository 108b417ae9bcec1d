#include "src/exchange/socket.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace gs {
namespace {

constexpr Offset kMostAtOnce = 1 << 30;  // a system call moves less than 2^31 bytes
constexpr double kFirstPause_s = 0.02, kLongestPause_s = 0.5;

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  int family() const { return bytes.ss_family; }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&bytes); }
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

/// IPv4 where there is one, so that all ranks choose alike. Empty `why`: found.
Address look_up(const Endpoint& endpoint, std::string& why) {
  Address found;
  why = "no address";
  for (const int family : {AF_INET, AF_INET6}) {
    addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int status = getaddrinfo(endpoint.address.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list);
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, freeaddrinfo);
    if (status == 0) {
      std::memcpy(&found.bytes, list->ai_addr, list->ai_addrlen);
      found.size = list->ai_addrlen;
      why.clear();
      return found;
    }
    if (family == AF_INET) why = gai_strerror(status);
  }
  return found;
}

Address any_or_loopback(int family, bool loopback, int port) {
  Address address;
  if (family == AF_INET6) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address.bytes);
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = loopback ? in6addr_loopback : in6addr_any;
    v6.sin6_port = htons(std::uint16_t(port));
    address.size = sizeof v6;
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address.bytes);
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
    v4.sin_port = htons(std::uint16_t(port));
    address.size = sizeof v4;
  }
  return address;
}

Endpoint endpoint_of(const Address& address) {
  char host[NI_MAXHOST] = "", service[NI_MAXSERV] = "0";
  getnameinfo(address.raw(), address.size, host, sizeof host, service, sizeof service, NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, std::atoi(service)};
}

Socket open_socket(int family) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw Error(Fault::comm, cat("no socket could be opened: ", std::strerror(errno)));
  return socket;
}

/// Waits for `events`; false: patience is over.
bool wait_for(const Socket& socket, short events, Patience& patience) {
  pollfd one{socket.number(), events, 0};
  do {
    if (poll(&one, 1, patience.pause_ms()) > 0) return true;
  } while (!patience.over());
  return false;
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

/// One attempt; 0 or errno.
int try_connect(const Socket& socket, const Address& to, Patience& patience) {
  if (connect(socket.number(), to.raw(), to.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(socket, POLLOUT, patience)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

Socket::~Socket() {
  if (number_ >= 0) ::close(number_);
}

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.address.find(':') != std::string::npos;
  return cat(v6 ? "[" : "", endpoint.address, v6 ? "]" : "", ":", endpoint.port);
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

Socket listen_at(const std::string& address, int port) {
  std::string why;
  const Address named = look_up({address, port}, why);  // only for its family: the name may not be this host's own
  const Address at = any_or_loopback(named.family(), is_loopback(address), port);
  Socket socket = open_socket(at.family());
  const int on = 1;
  setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket.number(), at.raw(), at.size) != 0 || listen(socket.number(), SOMAXCONN) != 0) {
    if (errno == EADDRINUSE)
      throw Error(Fault::usage,
                  cat("port ", port,
                      " in use by another program; pass another --port (or MASTER_PORT), the same on all ranks"));
    throw Error(Fault::usage, cat("port ", port, ": ", std::strerror(errno),
                                  "; pass another --port (or MASTER_PORT), the same on all ranks"));
  }
  return socket;
}

Socket connect_to(const Endpoint& peer, Patience& patience, bool wait_for_listener) {
  for (double pause_s = kFirstPause_s;; pause_s = std::min(2 * pause_s, kLongestPause_s)) {
    std::string why;
    const Address to = patience.spend_on([&] { return look_up(peer, why); });  // a name server may be slow
    bool last = false;
    if (why.empty()) {
      Socket socket = open_socket(to.family());
      const int error = try_connect(socket, to, patience);
      // A socket that calls a free port of its own host may be given that port and reach itself.
      if (error == 0 && to_string(local_endpoint(socket)) != to_string(remote_endpoint(socket))) return socket;
      why = std::strerror(error ? error : ECONNREFUSED);
      last = error == ECONNREFUSED && !wait_for_listener;
    }
    if (last || patience.waited_s() + pause_s >= patience.timeout_s())
      throw Error(Fault::comm, cat("no connection to ", to_string(peer), ": ", why));
    std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
  }
}

Socket accept_from(const Socket& listener) {
  return Socket(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

Endpoint local_endpoint(const Socket& socket) {
  Address address;
  address.size = sizeof address.bytes;
  getsockname(socket.number(), address.raw(), &address.size);
  return endpoint_of(address);
}

Endpoint remote_endpoint(const Socket& socket) {
  Address address;
  address.size = sizeof address.bytes;
  getpeername(socket.number(), address.raw(), &address.size);
  return endpoint_of(address);
}

void send_at_once(const Socket& socket) {
  const int on = 1;
  setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Offset receive_some(const Socket& socket, void* data, Offset bytes) {
  const ssize_t got = recv(socket.number(), data, std::size_t(std::min(bytes, kMostAtOnce)), MSG_DONTWAIT);
  if (got > 0) return got;
  return got < 0 && would_block(errno) ? 0 : -1;
}

Offset send_some(const Socket& socket, const void* head, Offset head_bytes, const void* body, Offset body_bytes) {
  iovec parts[2] = {{const_cast<void*>(head), std::size_t(head_bytes)},
                    {const_cast<void*>(body), std::size_t(std::min(body_bytes, kMostAtOnce))}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  const ssize_t sent = sendmsg(socket.number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return sent;
  return would_block(errno) ? 0 : -1;
}

bool send_all(const Socket& socket, const void* data, Offset bytes, Patience& patience) {
  const char* from = static_cast<const char*>(data);
  for (Offset sent; bytes > 0; from += sent, bytes -= sent) {
    sent = send_some(socket, from, bytes, nullptr, 0);
    if (sent < 0 || (sent == 0 && !wait_for(socket, POLLOUT, patience))) return false;
  }
  return true;
}

bool receive_all(const Socket& socket, void* data, Offset bytes, Patience& patience) {
  char* into = static_cast<char*>(data);
  for (Offset got; bytes > 0; into += got, bytes -= got) {
    got = receive_some(socket, into, bytes);
    if (got < 0 || (got == 0 && !wait_for(socket, POLLIN, patience))) return false;
  }
  return true;
}

}  // namespace gs
