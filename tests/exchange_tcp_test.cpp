// Ranks over sockets: how they meet, what becomes of processes that are killed or stopped, and bytes nobody should
// trust.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "src/exchange/wire.hpp"
#include "tests/support/ranks.hpp"

namespace gs {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// ------------------------------------------------------------------------------------------------------- processes

struct Ending {
  int status = -1;  ///< of exit; -1: ended by a signal
  std::string sentence;
};

/// The ranks of a tcp world as processes of their own, forked from a test that has no other threads.
class Processes {
 public:
  Processes(int size, double timeout_s, const std::function<void(Comm&)>& body) {
    const int port = free_port();
    for (int rank = 0; rank < size; ++rank) {
      int ends[2];
      if (pipe(ends) != 0) throw Error(Fault::internal, "pipe");
      const pid_t process = fork();
      if (process == 0) {
        live(tcp_world(rank, size, port), timeout_s, body, ends[1]);
      }
      close(ends[1]);
      processes_.push_back(process);
      said_.push_back(ends[0]);
    }
  }
  ~Processes() {
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      if (processes_[rank] > 0) kill(processes_[rank], SIGKILL), waitpid(processes_[rank], nullptr, 0);
      close(said_[rank]);
    }
  }

  /// Waits for the rank's end.
  Ending end_of(int rank) {
    Ending ending;
    char text[4096];
    for (ssize_t got; (got = read(said_[std::size_t(rank)], text, sizeof text)) > 0;)
      ending.sentence.append(text, std::size_t(got));
    int status = 0;
    waitpid(processes_[std::size_t(rank)], &status, 0);
    processes_[std::size_t(rank)] = -1;
    if (WIFEXITED(status)) ending.status = WEXITSTATUS(status);
    return ending;
  }

 private:
  [[noreturn]] static void live(const World& world, double timeout_s, const std::function<void(Comm&)>& body, int say) {
    Config config;
    config.exchange.timeout_s = timeout_s;
    try {
      run_ranks(world, config, body);
    } catch (const Error& error) {
      [[maybe_unused]] const ssize_t written = write(say, error.what(), std::strlen(error.what()));
      _exit(int(error.fault));
    }
    _exit(testing::Test::HasFailure() ? 99 : 0);
  }

  std::vector<pid_t> processes_;
  std::vector<int> said_;
};

TEST(TcpProcesses, ExchangeAndEndWell) {
  Processes ranks(4, kTestTimeout_s, [](Comm& comm) {
    for (int call = 0; call < 50; ++call) {
      std::vector<Offset> values{comm.rank(), 1};
      comm.all_reduce(Span<Offset>(values));
      EXPECT_EQ(values, (std::vector<Offset>{6, 4}));
    }
  });
  for (int r = 0; r < 4; ++r) EXPECT_EQ(ranks.end_of(r).status, 0);
}

TEST(TcpProcesses, AKilledRankIsNamedAtOnce) {
  Processes ranks(4, 600, [](Comm& comm) {  // at the deadline this test would have timed out
    comm.barrier();
    if (comm.rank() == 2) raise(SIGKILL);
    comm.barrier();
  });

  EXPECT_EQ(ranks.end_of(2).status, -1);
  for (int r : {0, 1, 3}) {
    const Ending ending = ranks.end_of(r);
    EXPECT_EQ(ending.status, int(Fault::comm));
    EXPECT_EQ(ending.sentence, cat("rank ", r, ": rank 2 closed its connection: it died or was killed"));
  }
}

TEST(TcpProcesses, AStoppedRankIsNamedAtTheDeadlineAlsoWithFullPipes) {
  const auto stop_with = [](Offset bytes) {
    return std::make_unique<Processes>(3, 2, [bytes](Comm& comm) {
      const std::vector<Offset> sizes(3, bytes);
      std::vector<char> from(std::size_t(3 * bytes)), to(std::size_t(3 * bytes));
      comm.barrier();
      if (comm.rank() == 1) raise(SIGSTOP);
      comm.all_to_all(from.data(), sizes, to.data(), sizes);
    });
  };
  const std::unique_ptr<Processes> worlds[] = {stop_with(1), stop_with(Offset(16) << 20)};  // side by side

  for (const auto& ranks : worlds)
    for (int r : {0, 2}) {
      const Ending ending = ranks->end_of(r);
      EXPECT_EQ(ending.status, int(Fault::comm));
      EXPECT_TRUE(contains(ending.sentence, "no sign of rank 1 for 2 s (exchange.timeout_s)")) << ending.sentence;
    }
}

TEST(TcpProcesses, ARankThatThrowsTellsTheOthersWhyAndKeepsItsFault) {
  Processes ranks(3, 600, [](Comm& comm) {
    std::vector<char> from(30 << 20), to(30 << 20);
    const std::vector<Offset> sizes(3, 10 << 20);
    comm.all_to_all(from.data(), sizes, to.data(), sizes);
    if (comm.rank() == 0) throw Error(Fault::memory, "cold rows do not fit");
    comm.all_to_all(from.data(), sizes, to.data(), sizes);
  });

  const Ending cause = ranks.end_of(0);
  EXPECT_EQ(cause.status, int(Fault::memory));
  EXPECT_EQ(cause.sentence, "rank 0: cold rows do not fit");
  for (int r : {1, 2}) {
    const Ending ending = ranks.end_of(r);
    EXPECT_EQ(ending.status, int(Fault::comm));
    EXPECT_EQ(ending.sentence, cat("rank ", r, ": rank 0 left: cold rows do not fit"));
  }
}

// --------------------------------------------------------------------------------------------------------- meeting

/// The error of opening that rank, "" for none; kept open until all are done.
struct Opened {
  std::unique_ptr<Comm> comm;
  std::string sentence;
  Fault fault = Fault::internal;
};

Opened open_world(const World& world, double timeout_s) {
  Opened opened;
  try {
    opened.comm = open_tcp(world, timeout_s);
  } catch (const Error& error) {
    opened.sentence = error.what();
    opened.fault = error.fault;
  }
  return opened;
}

std::vector<Opened> open_worlds(const std::vector<World>& worlds, double timeout_s) {
  std::vector<Opened> opened(worlds.size());
  on_threads(int(worlds.size()),
             [&](int i) { opened[std::size_t(i)] = open_world(worlds[std::size_t(i)], timeout_s); });
  return opened;
}

TEST(TcpMeeting, RanksThatDoNotComeAreNamedEverywhere) {
  const int port = free_port();

  const std::vector<Opened> opened = open_worlds({tcp_world(0, 4, port), tcp_world(2, 4, port)}, 1.5);

  for (const Opened& one : opened) {
    EXPECT_EQ(one.fault, Fault::comm);
    EXPECT_TRUE(contains(one.sentence, "ranks 1, 3 have not come to rank 0")) << one.sentence;
  }
}

TEST(TcpMeeting, WithoutRank0TheOthersSayWhereTheyCalled) {
  const int port = free_port();
  const Opened opened = open_world(tcp_world(1, 2, port), 0.3);
  EXPECT_EQ(opened.fault, Fault::comm);
  EXPECT_TRUE(contains(opened.sentence, cat("rank 0 at 127.0.0.1:", port, " did not answer within 0.3 s")))
      << opened.sentence;
}

TEST(TcpMeeting, APortInUseIsAUsageError) {
  const int port = free_port();
  const Socket other = listen_at("127.0.0.1", port);

  const Opened opened = open_world(tcp_world(0, 2, port), 5);

  EXPECT_EQ(opened.fault, Fault::usage);
  EXPECT_TRUE(opened.sentence.starts_with(cat("port ", port, " in use by another program; pass another --port")))
      << opened.sentence;
}

TEST(TcpMeeting, StrangersAreToldWhyAndTheJobGoesOn) {
  const int port = free_port();
  std::vector<Opened> own(2);
  std::thread rank_0([&] { own[0] = open_world(tcp_world(0, 2, port), kTestTimeout_s); });
  Patience patience(30);
  const Socket silent = connect_to({"127.0.0.1", port}, patience, true);  // never says who it is
  const Socket scanner = connect_to({"127.0.0.1", port}, patience, true);
  send_all(scanner, "GET / HTTP/1.1\r\n\r\n", 18, patience);

  const Opened foreign = open_world(tcp_world(1, 2, port, "another"), 10);
  const Opened larger = open_world(tcp_world(1, 3, port), 10);
  World beyond = tcp_world(0, 2, port);
  beyond.rank = 1, beyond.size = 2, beyond.job = "";
  const Opened without_job = open_world(beyond, 10);
  own[1] = open_world(tcp_world(1, 2, port), kTestTimeout_s);
  rank_0.join();

  EXPECT_EQ(own[0].sentence + own[1].sentence, "");
  EXPECT_EQ(foreign.fault, Fault::comm);
  EXPECT_TRUE(contains(foreign.sentence, "it belongs to job \"another\", rank 0 here to job \"test\""))
      << foreign.sentence;
  EXPECT_TRUE(contains(without_job.sentence, "it belongs to job \"\"")) << without_job.sentence;
  EXPECT_TRUE(contains(larger.sentence, "it was started as one of 3 ranks, rank 0 here as one of 2"))
      << larger.sentence;
  ASSERT_TRUE(own[0].comm && own[1].comm);
  std::thread other([&] { own[1].comm->barrier(); });
  own[0].comm->barrier();
  other.join();
}

TEST(TcpMeeting, ARankStartedTwiceIsTurnedAway) {
  const int port = free_port();

  const std::vector<Opened> opened =
      open_worlds({tcp_world(0, 3, port), tcp_world(1, 3, port), tcp_world(1, 3, port)}, 2);

  EXPECT_EQ(contains(opened[1].sentence, "a rank 1 is here already") +
                contains(opened[2].sentence, "a rank 1 is here already"),
            1)
      << opened[1].sentence << "\n"
      << opened[2].sentence;
  EXPECT_TRUE(contains(opened[0].sentence, "rank 2 has not come")) << opened[0].sentence;
}

TEST(TcpMeeting, AnotherProgramAtThePortIsNotMistakenForRank0) {
  const int port = free_port();
  const Socket listener = listen_at("127.0.0.1", port);
  std::thread other([&] {
    pollfd one{listener.number(), POLLIN, 0};
    poll(&one, 1, 30000);
    const Socket caller = accept_from(listener);
    Patience patience(1);
    send_all(caller, "220 mail.example.org ESMTP ready\r\n", 34, patience);
    char bytes[256];
    receive_all(caller, bytes, sizeof bytes, patience);
  });

  const Opened opened = open_world(tcp_world(1, 2, port), 10);
  other.join();

  EXPECT_TRUE(contains(opened.sentence, "is another program")) << opened.sentence;
}

TEST(TcpMeeting, ListensOnLoopbackOnlyForLoopbackAddresses) {
  for (const char* address : {"127.0.0.1", "localhost", "::1", "127.3.4.5"}) EXPECT_TRUE(is_loopback(address));
  for (const char* address : {"10.0.0.1", "node127", "::2", ""}) EXPECT_FALSE(is_loopback(address));
  EXPECT_EQ(local_endpoint(listen_at("localhost", 0)).address, "127.0.0.1");
  EXPECT_EQ(local_endpoint(listen_at("10.255.0.1", 0)).address, "0.0.0.0");
}

// ------------------------------------------------------------------------------------------------------------ wire

class Wire : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    here_ = Socket(ends[0]);
    there_ = Socket(ends[1]);
  }

  /// What an Inbox in call 5 that expects 64 bytes says to one frame's head, "" where nothing.
  std::string said_to(const Frame& head) {
    Patience patience(5);
    send_all(there_, &head, sizeof head, patience);
    std::vector<char> into(64);
    Inbox in(1, 0);
    try {
      in.start(5, Span<char>(into));
      while (in.receive(here_) > 0) continue;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::comm);
      return error.what();
    }
    return "";
  }

  Socket here_, there_;
};

TEST_F(Wire, HeadsAreNotTrusted) {
  EXPECT_EQ(said_to({Frame::data, 64, 5, 64}), "");
  for (const Frame& bad : {Frame{0, 64, 5, 64}, Frame{Frame::data, 0, 5, 64}, Frame{Frame::data, 0xFFFFFFFF, 5, 64},
                           Frame{Frame::abort, 0x7FFFFFFF, 5, 0}, Frame{77, 1, 1, 1}})
    EXPECT_TRUE(contains(said_to(bad), "what comes from rank 1 to rank 0 is no message of this program")) << bad.kind;
  EXPECT_TRUE(contains(said_to({Frame::data, 65, 5, 65}), "rank 1 sends 65 bytes to rank 0, which expects 64"));
  EXPECT_TRUE(contains(said_to({Frame::data, 65, 5, 64}), "rank 1 sends 64 bytes"));
  EXPECT_TRUE(contains(said_to({Frame::data, 64, 5, -1}), "rank 1 sends -1 bytes"));
  EXPECT_TRUE(contains(said_to({Frame::data, 64, 6, 64}), "in its call 6 to rank 0, which is in call 5"));
  EXPECT_TRUE(contains(said_to({Frame::data, 64, 4, 64}), "in its call 4 to rank 0, which is in call 5"));
}

TEST_F(Wire, AHeadOfTheNextCallWaitsForIt) {
  std::vector<char> message(10, 'm'), into(10);
  Outbox out;
  out.start(6, Span<const char>(message));
  while (out.is_sending()) ASSERT_GE(out.send(there_), 0);
  Inbox in(1, 0);

  in.start(5, {});
  while (in.receive(here_) > 0) continue;
  EXPECT_FALSE(in.wants_bytes());
  in.start(6, Span<char>(into));
  while (in.receive(here_) > 0 && in.is_expecting()) continue;

  EXPECT_EQ(into, message);
}

TEST_F(Wire, AnAbortIsHeardBehindAMessageCutShort) {
  std::vector<char> message(8 << 20, 'm'), into(8 << 20);
  Outbox out;
  out.start(5, Span<const char>(message));
  while (out.send(there_) > 0) continue;  // until the socket is full, somewhere inside a frame
  ASSERT_TRUE(out.is_sending());
  out.start_farewell(Frame::abort, 1, "rank 1 left: boom");
  message = std::vector<char>();
  Inbox in(1, 0);
  in.start(5, Span<char>(into));
  std::string heard;

  for (int turn = 0; turn < 100000 && heard.empty(); ++turn) {
    if (out.is_saying_farewell()) out.send_farewell(there_);
    try {
      in.receive(here_);
    } catch (const Error& error) {
      heard = error.what();
    }
  }

  EXPECT_EQ(heard, "rank 1 left: boom");
  EXPECT_TRUE(in.is_expecting());
}

TEST_F(Wire, LastWordsAreReadFromABrokenConnection) {
  for (const bool says : {true, false}) {
    SetUp();
    Outbox out;
    if (says) {
      out.start_farewell(Frame::ended, 1, "rank 1 left: at \033[31mhome");
      while (out.is_saying_farewell()) out.send_farewell(there_);
    }
    there_ = Socket();
    std::vector<char> into(4);
    Inbox in(1, 0);
    in.start(5, Span<char>(into));
    while (in.receive(here_) > 0) continue;
    EXPECT_TRUE(in.is_closed());
    try {
      in.throw_loss(here_);
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   says ? "rank 1 left: at ?[31mhome" : "rank 1 closed its connection: it died or was killed");
    }
  }
}

}  // namespace
}  // namespace gs
