// Waiting: what counts towards a deadline, and that a process which stood still itself blames nobody for it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "src/exchange/patience.hpp"
#include "tests/support/ranks.hpp"

namespace gs {
namespace {

// ------------------------------------------------------------------------------------------------------- the count

double told_s = 0;  // by the clock below

class PatienceTest : public testing::Test {
 protected:
  /// Looks every 0.1 s until `seconds` have passed.
  void look_on(double seconds) {
    for (const double end_s = told_s + seconds; told_s < end_s - 0.05;) {
      told_s += 0.1;
      patience_.over();
    }
  }

  Patience patience_{2, [] { return told_s; }};
};

TEST_F(PatienceTest, IsOverAfterTheTimeout) {
  look_on(1.9);
  EXPECT_FALSE(patience_.over());
  EXPECT_NEAR(patience_.waited_s(), 1.9, 1e-6);

  look_on(0.2);

  EXPECT_TRUE(patience_.over());
}

TEST_F(PatienceTest, BeginsAgainWhenSomethingCame) {
  look_on(1.9);
  patience_.restart();
  look_on(1.9);
  EXPECT_FALSE(patience_.over());
}

TEST_F(PatienceTest, AnExtensionIsWaitedToo) {
  patience_.extend(1);
  look_on(2.9);
  EXPECT_FALSE(patience_.over());
  look_on(0.2);
  EXPECT_TRUE(patience_.over());
}

TEST_F(PatienceTest, TimeInWhichTheProcessStoodStillIsNotWaited) {
  look_on(1);

  told_s += 3600;

  EXPECT_FALSE(patience_.over());
  look_on(0.8);
  EXPECT_FALSE(patience_.over()) << patience_.waited_s();
  look_on(0.2);
  EXPECT_TRUE(patience_.over()) << "and what follows is waited again";
}

TEST_F(PatienceTest, EndsThoughEveryLookIsSlow) {
  int looks = 0;
  for (; looks < 1000 && !patience_.over(); ++looks) told_s += 5;
  EXPECT_LT(looks, 1000);
}

TEST_F(PatienceTest, ASlowCallIsWaitedWhole) {
  look_on(1);
  EXPECT_EQ(patience_.spend_on([] { return told_s += 30, 7; }), 7);
  EXPECT_TRUE(patience_.over());
}

TEST_F(PatienceTest, PausesAreShortAndEndAtTheDeadline) {
  EXPECT_LE(Patience(3600).pause_ms(), 200);
  look_on(1.9);
  told_s += 0.0785;
  EXPECT_EQ(patience_.pause_ms(), 22);
  told_s += 0.1;
  EXPECT_EQ(patience_.pause_ms(), 0);
}

// ---------------------------------------------------------------------------------------------- processes that stop

constexpr double kTimeout_s = 2, kStopped_s = 3;

void sleep_s(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// For a body of continued(): the others wait by then, and have looked again before it goes on.
void stop_this_process() {
  sleep_s(0.3);
  raise(SIGSTOP);
  sleep_s(0.3);
}

struct Ending {
  int status = -1;  ///< of exit; -1: ended by a signal
  std::string sentence;
};

/// Runs the body in a process of its own; where that stops itself it is continued after kStopped_s.
Ending continued(const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(Fault::internal, "pipe");
  const pid_t process = fork();
  if (process == 0) {
    try {
      body();
    } catch (const Error& error) {
      [[maybe_unused]] const ssize_t written = write(ends[1], error.what(), std::strlen(error.what()));
      _exit(int(error.fault));
    }
    _exit(0);
  }
  close(ends[1]);
  int status = 0;
  while (waitpid(process, &status, WUNTRACED) == process && WIFSTOPPED(status)) {
    sleep_s(kStopped_s);
    kill(process, SIGCONT);
  }
  char text[4096];
  const ssize_t got = read(ends[0], text, sizeof text);
  close(ends[0]);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, std::string(text, std::size_t(std::max<ssize_t>(got, 0)))};
}

class Continued : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(Transports, Continued, testing::ValuesIn(kThreadTransports),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Continued, RanksGoOnWaiting) {
  const Ending ending = continued([] {
    run_on_ranks(
        3,
        [](Comm& comm) {
          comm.barrier();
          if (comm.rank() == 0) stop_this_process();
          comm.barrier();
        },
        GetParam(), kTimeout_s);
  });
  EXPECT_EQ(ending.status, 0) << ending.sentence;
}

TEST_P(Continued, RanksStillMissOneThatStaysAway) {
  const Ending ending = continued([] {
    run_on_ranks(
        2,
        [](Comm& comm) {
          comm.barrier();
          if (comm.rank() == 0) stop_this_process(), sleep_s(2 * kTimeout_s);
          comm.barrier();
        },
        GetParam(), kTimeout_s);
  });
  EXPECT_EQ(ending.status, int(Fault::comm));
  EXPECT_TRUE(ending.sentence.starts_with("rank 1: no sign of rank 0 for 2 s (exchange.timeout_s)")) << ending.sentence;
}

TEST(ContinuedMeeting, GoesOnWaitingForRanksToCome) {
  for (const int late : {0, 1}) {
    const Ending ending = continued([&] {
      const int port = free_port();
      const auto open = [&](int rank) {
        if (rank == late) stop_this_process();
        return open_tcp(tcp_world(rank, 2, port), kTimeout_s);
      };
      run_threads(2, open, [](Comm& comm) { comm.barrier(); });
    });
    EXPECT_EQ(ending.status, 0) << "rank " << late << " is late: " << ending.sentence;
  }
}

TEST(ContinuedWatchdog, LetsTheCallReturn) {
  const Ending ending = continued([] {
    const Watchdog watch(kTimeout_s, "the call does not return");
    stop_this_process();
  });
  EXPECT_EQ(ending.status, 0);
}

TEST(WatchdogTest, EndsTheProcessWhereACallDoesNotReturn) {
  const Ending ending = continued([] {
    const Watchdog watch(0.2, "the call does not return");
    sleep_s(30);
  });
  EXPECT_EQ(ending.status, int(Fault::comm));
}

}  // namespace
}  // namespace gs
