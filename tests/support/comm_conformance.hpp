// What every transport must do, as functions of one rank's end: all ranks call the same one. Host memory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "graphscale/exchange.hpp"

namespace gs::conformance {

/// A byte that only `from` sends to `to` at that position of call `call`.
inline char byte_of(int from, int to, Offset position, int call) {
  return char(131 * from + 31 * to + 7 * position + (position >> 9) + 17 * call);
}

/// One all_to_all of parts of bytes(from, to) bytes; checks every byte received, guards around them, and the counters.
inline void check_all_to_all(Comm& comm, const std::function<Offset(int from, int to)>& bytes, int call = 0) {
  constexpr Offset kGuard = 64;
  const int me = comm.rank();
  std::vector<Offset> send_bytes, receive_bytes;
  std::vector<char> send;
  Offset expected = 0, travels_out = 0, travels_in = 0;
  for (int r = 0; r < comm.size(); ++r) {
    send_bytes.push_back(bytes(me, r));
    receive_bytes.push_back(bytes(r, me));
    for (Offset i = 0; i < send_bytes.back(); ++i) send.push_back(byte_of(me, r, i, call));
    expected += receive_bytes.back();
    travels_out += r == me ? 0 : send_bytes.back();
    travels_in += r == me ? 0 : receive_bytes.back();
  }
  std::vector<char> received(std::size_t(expected + 2 * kGuard), 'g');
  const Traffic before = comm.traffic();

  comm.all_to_all(send.data(), send_bytes, received.data() + kGuard, receive_bytes);

  const char* at = received.data() + kGuard;
  for (int r = 0; r < comm.size(); at += receive_bytes[std::size_t(r++)])
    for (Offset i = 0; i < receive_bytes[std::size_t(r)]; ++i)
      if (at[i] != byte_of(r, me, i, call)) {
        ADD_FAILURE() << "rank " << me << ", byte " << i << " from rank " << r << " in call " << call;
        break;
      }
  for (Offset i = 0; i < kGuard; ++i) {
    ASSERT_EQ(received[std::size_t(i)], 'g') << "before what was received";
    ASSERT_EQ(received[received.size() - std::size_t(i) - 1], 'g') << "behind what was received";
  }
  EXPECT_EQ(comm.traffic().sent_bytes - before.sent_bytes, travels_out);
  EXPECT_EQ(comm.traffic().received_bytes - before.received_bytes, travels_in);
}

inline void uneven_parts(Comm& comm) {
  for (int call = 0; call < 20; ++call)
    check_all_to_all(
        comm, [&](int from, int to) { return Offset(100 * from + 10 * to + call); }, call);
}

inline void empty_parts(Comm& comm) {
  check_all_to_all(comm, [](int, int) { return 0; });                                        // nobody has anything
  check_all_to_all(comm, [](int from, int to) { return from == 0 && to != 0 ? 1000 : 0; });  // one sends
  check_all_to_all(comm,
                   [&](int from, int to) { return to == comm.size() - 1 && from != to ? 3 : 0; });    // one receives
  check_all_to_all(comm, [](int from, int to) { return from == to ? 50 : 0; });                       // only own parts
  check_all_to_all(comm, [&](int from, int to) { return to == (from + 1) % comm.size() ? 77 : 0; });  // a ring
}

/// Ranks may be calls apart where they have nothing to say to each other; parts must not slip from one call to another.
inline void random_parts(Comm& comm) {
  std::mt19937 draw(5);  // the same on all ranks
  for (int call = 0; call < 60; ++call) {
    std::vector<Offset> sizes(std::size_t(comm.size() * comm.size()));
    for (Offset& size : sizes) size = draw() % 3 == 0 ? Offset(draw() % 5000) : 0;
    check_all_to_all(
        comm, [&](int from, int to) { return sizes[std::size_t(from * comm.size() + to)]; }, call);
  }
}

/// Every direction at once, far more than sockets buffer: an order of blocking sends would stop here.
inline void large_parts(Comm& comm) {
  const Offset bytes = comm.size() > 3 ? (1 << 20) + 1 : (7 << 20) + 13;
  check_all_to_all(comm, [&](int from, int to) { return bytes + from - to; });
}

/// values [n] of rank `rank`, of very different sizes: the order of adding shows in the last bits.
template <class T>
std::vector<T> summands(int rank, Offset n) {
  constexpr double kScales[] = {1. / 3, 10. / 3, 100. / 3, 1e3 / 3, 1e6 / 3};
  std::vector<T> values((std::size_t(n)));
  std::uint32_t draw = std::uint32_t(100 + rank);
  for (T& value : values) {
    draw = draw * 1664525u + 1013904223u;
    value = T((int(draw >> 21) - 1024) * kScales[draw >> 8 & 3]);
  }
  return values;
}

template <class T>
void check_all_reduce(Comm& comm, Offset n) {
  std::vector<T> expected = summands<T>(0, n);
  for (int r = 1; r < comm.size(); ++r) {
    const std::vector<T> part = summands<T>(r, n);
    for (Offset i = 0; i < n; ++i) expected[std::size_t(i)] += part[std::size_t(i)];
  }
  std::vector<T> values = summands<T>(comm.rank(), n);

  comm.all_reduce(Span<T>(values));

  EXPECT_TRUE(n == 0 || std::memcmp(values.data(), expected.data(), std::size_t(n) * sizeof(T)) == 0)
      << n << " values on rank " << comm.rank() << ": not the bits of a sum in the order of ranks";
}

inline void all_reduce(Comm& comm) {
  for (const Offset n : {0, 1, 5, 1000, 10007}) {  // less than ranks, small, in slices
    check_all_reduce<float>(comm, n);
    check_all_reduce<double>(comm, n);
    check_all_reduce<Offset>(comm, n);
  }
  check_all_reduce<float>(comm, (1 << 20) + 3);  // more than is reduced at a time
}

inline void broadcast(Comm& comm) {
  for (int root = 0; root < comm.size(); ++root)
    for (const Offset bytes : {0, 1, 1000, 300001}) {
      std::vector<char> data(std::size_t(bytes), 'x');
      for (Offset i = 0; comm.rank() == root && i < bytes; ++i) data[std::size_t(i)] = byte_of(root, 0, i, 0);

      comm.broadcast(data.data(), bytes, root);

      for (Offset i = 0; i < bytes; ++i) ASSERT_EQ(data[std::size_t(i)], byte_of(root, 0, i, 0)) << i;
    }
}

inline void texts_and_counts(Comm& comm) {
  const auto text_of = [](int rank) { return std::string(std::size_t(3000 * rank), char('a' + rank)); };
  const std::vector<std::string> texts = comm.gather_texts(text_of(comm.rank()));
  ASSERT_EQ(texts.size(), std::size_t(comm.size()));
  for (int r = 0; r < comm.size(); ++r) EXPECT_EQ(texts[std::size_t(r)], text_of(r));

  std::vector<Offset> counts;
  for (int r = 0; r < comm.size(); ++r) counts.push_back(5'000'000'000 * comm.rank() + r);
  const std::vector<Offset> received = comm.exchange_counts(counts);
  ASSERT_EQ(received.size(), std::size_t(comm.size()));
  for (int r = 0; r < comm.size(); ++r) EXPECT_EQ(received[std::size_t(r)], 5'000'000'000 * r + comm.rank());
}

/// No rank is behind a barrier before all have come to it. `arrived` is shared by ranks that are threads; ranks that
/// are processes check what they can: that it returns.
inline void barrier(Comm& comm, std::atomic<int>* arrived = nullptr) {
  for (int round = 1; round <= 10; ++round) {
    if (arrived) ++*arrived;
    comm.barrier();
    if (arrived) {
      EXPECT_GE(arrived->load(), round * comm.size());
    }
  }
}

inline void handshakes(Comm& comm) {
  EXPECT_NO_THROW(handshake(comm, {{"build", "1.2"}, {"graph content hash", "1a2b"}}));
  if (comm.size() == 1) return;
  std::string sentence;
  try {
    handshake(comm, {{"build", "1.2"}, {"graph content hash", comm.rank() == 1 ? "3c4d" : "1a2b"}});
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::comm);
    sentence = error.what();
  }
  EXPECT_NE(sentence.find("graph content hash: 1a2b on rank"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("; 3c4d on rank 1"), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find("build"), std::string::npos) << sentence;
}

struct Case {
  const char* name;
  void (*run)(Comm& comm);
};

/// All of the above, for programs that run them under a launcher.
inline const std::vector<Case> kCases = {
    {"uneven parts", uneven_parts},
    {"empty parts", empty_parts},
    {"random parts", random_parts},
    {"large parts", large_parts},
    {"all_reduce", all_reduce},
    {"broadcast", broadcast},
    {"texts and counts", texts_and_counts},
    {"barrier", [](Comm& comm) { barrier(comm); }},
    {"handshakes", handshakes},
};

}  // namespace gs::conformance
