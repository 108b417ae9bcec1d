// Ranks as processes under mpirun. A test starts itself again as the ranks of a job, and in there plays a rank's part.
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "graphscale/exchange.hpp"

#include "src/exchange/messages.hpp"
#include "tests/support/comm_conformance.hpp"
#include "tests/support/folder.hpp"

namespace gs {
namespace {

constexpr double kShort_s = 3;  ///< for ranks that stop; the others must start within it

bool is_rank() { return std::getenv("OMPI_COMM_WORLD_RANK") != nullptr; }
int rank_here() { return std::atoi(std::getenv("OMPI_COMM_WORLD_RANK")); }

/// A rank's process as main has it: the error in a line on stderr, its fault as exit status.
template <class Body>
[[noreturn]] void live_as_rank(Body&& body, double timeout_s = 60) {
  Config config;
  config.exchange.timeout_s = timeout_s;
  World world;
  world.transport = World::Transport::mpi;
  world.rank = rank_here();
  world.size = std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE"));
  int status = 0;
  try {
    run_ranks(world, config, body);
  } catch (const Error& error) {
    log_error(error.what());
    status = int(error.fault);
  }
  std::exit(testing::Test::HasFailure() ? int(Fault::internal) : status);
}

struct Outcome {
  int status = -1;  ///< -1: ended by a signal
  std::string out, err;
};

class MpiJob : public InFolder {
 protected:
  void SetUp() override {
    if (is_rank()) return;
    if (!has_mpi()) GTEST_SKIP() << "this build has no MPI";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "MPI itself leaks and races: nothing to be seen under a sanitizer";
#endif
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "no mpirun on PATH";
  }

  /// This test again, as `size` processes.
  Outcome start(int size) const {
    const std::string program = fs::read_symlink("/proc/self/exe");
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    const int status = std::system(
        cat("cd '", folder_.string(), "' && timeout -k 5 120 mpirun --oversubscribe --allow-run-as-root -n ", size,
            " '", program, "' --gtest_filter=", test.test_suite_name(), ".", test.name(), " ", mark(), " >.out 2>.err")
            .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(folder_ / ".out"), bytes_of(folder_ / ".err")};
  }

  /// Processes of this test's jobs that are still there after a few seconds.
  int orphans() const {
    int found = 0;
    for (int look = 0; look < 50; ++look) {
      found = 0;
      for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        found += bytes_of(entry.path() / "cmdline").find(mark()) != std::string::npos;
      }
      if (found == 0) return 0;
      ::usleep(100000);
    }
    return found;
  }

 private:
  std::string mark() const { return "--of=" + folder_.filename().string(); }  // gtest leaves it alone
};

TEST(MpiMessages, HoldPartsOfAnySize) {
  constexpr Offset kMost = 1 << 30, kLarge = 5'000'000'000;
  std::vector<Message> messages;

  add_messages(messages, true, {7, 0, kLarge, kMost}, 2, kMost);

  ASSERT_EQ(messages.size(), 7u);
  Offset at = 0;
  for (int i = 0; i < 5; ++i) {
    const Message& message = messages[std::size_t(i)];
    EXPECT_EQ(message.rank, 2);
    EXPECT_EQ(message.at, at);
    EXPECT_LE(message.bytes, kMost);
    at += message.bytes;
  }
  EXPECT_EQ(at, kLarge);
  EXPECT_EQ(messages[5].rank, 3);
  EXPECT_EQ(messages[5].bytes, kMost);
  EXPECT_EQ(messages[6].rank, 0);
  EXPECT_EQ(messages[6].bytes, 7);
}

class MpiJobOf : public MpiJob, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MpiJobOf, testing::Values(1, 2, 3, 8));

TEST_P(MpiJobOf, Conforms) {
  if (is_rank())
    live_as_rank([](Comm& comm) {
      EXPECT_STREQ(comm.transport(), "mpi");
      EXPECT_FALSE(comm.device().is_cuda());
      for (const conformance::Case& one : conformance::kCases) {
        SCOPED_TRACE(cat(one.name, " on rank ", comm.rank(), " of ", comm.size()));
        one.run(comm);
      }
    });

  const Outcome job = start(GetParam());

  EXPECT_EQ(job.status, 0) << job.err << job.out;
  EXPECT_EQ(orphans(), 0);
}

TEST_F(MpiJob, MovesPartsOfSeveralMessages) {
  if (is_rank())
    live_as_rank([](Comm& comm) {
      std::vector<Offset> values(std::size_t(17 << 20)), received(values.size());  // 136 MiB
      std::iota(values.begin(), values.end(), Offset(0));
      std::vector<Offset> none(2, 0), whole(2, 0);
      whole[std::size_t(1 - comm.rank())] = Offset(values.size() * sizeof(Offset));
      comm.all_to_all(values.data(), comm.rank() == 0 ? whole : none, received.data(), comm.rank() == 1 ? whole : none);
      if (comm.rank() == 1) {
        EXPECT_TRUE(received == values);
      }
    });

  const Outcome job = start(2);

  EXPECT_EQ(job.status, 0) << job.err << job.out;
}

TEST_F(MpiJob, EndsWithTheFaultAndReasonOfTheRankThatThrew) {
  if (is_rank())
    live_as_rank([](Comm& comm) {
      comm.barrier();
      if (comm.rank() == 1) throw Error(Fault::input, "the graph is gone");
      comm.barrier();
    });

  const Outcome job = start(3);

  EXPECT_EQ(job.status, int(Fault::input)) << job.err;
  EXPECT_SAYS(job.err, "error: rank 1: the graph is gone");
  EXPECT_EQ(orphans(), 0);
}

TEST_F(MpiJob, NamesTheRankThatWasKilled) {
  if (is_rank())
    live_as_rank([](Comm& comm) {
      catch_stop_signals();  // mpirun asks the others to stop before it kills them
      comm.barrier();
      if (comm.rank() == 1) ::raise(SIGKILL);
      comm.barrier();
    });

  const Outcome job = start(3);

  EXPECT_NE(job.status, 0) << "mpirun's own status for a signal: 128 + 9";
  EXPECT_SAYS(job.err, "rank 1 died (process ");
  EXPECT_EQ(orphans(), 0);
}

TEST_F(MpiJob, NamesTheRankThatStopsAndTakesItAlong) {
  if (is_rank())
    live_as_rank(
        [](Comm& comm) {
          comm.barrier();
          if (comm.rank() == 1) ::raise(SIGSTOP);
          comm.barrier();
        },
        kShort_s);

  const Outcome job = start(3);

  EXPECT_EQ(job.status, int(Fault::comm)) << job.err;
  EXPECT_SAYS(job.err, "no sign of rank 1 for 3 s");
  EXPECT_EQ(orphans(), 0);
}

TEST_F(MpiJob, GoesOnWaitingWhereItWasItselfStopped) {
  if (is_rank())
    live_as_rank(
        [](Comm& comm) {
          const std::vector<std::string> processes = comm.gather_texts(std::to_string(::getpid()));
          if (comm.rank() == 1) {
            const pid_t other = std::stoi(processes[0]);
            ::usleep(300'000);  // it waits by then
            ::kill(other, SIGSTOP);
            ::usleep(1'000'000 * int(kShort_s + 1));
            ::kill(other, SIGCONT);
            ::usleep(300'000);
          }
          comm.barrier();
        },
        kShort_s);

  const Outcome job = start(2);

  EXPECT_EQ(job.status, 0) << job.err;
}

TEST_F(MpiJob, EndsWhereARankNeverComes) {
  if (is_rank()) {
    if (rank_here() == 1) ::raise(SIGSTOP);
    live_as_rank([](Comm&) {}, kShort_s);
  }

  const Outcome job = start(2);

  EXPECT_EQ(job.status, int(Fault::comm)) << job.err;
  EXPECT_SAYS(job.err, "MPI did not start within 3 s");
  EXPECT_EQ(orphans(), 0);
}

TEST_F(MpiJob, EndsWhereARankStopsAfterItsLastCall) {
  if (is_rank())
    live_as_rank(
        [](Comm& comm) {
          comm.barrier();
          if (comm.rank() == 1) ::raise(SIGSTOP);
        },
        kShort_s);

  const Outcome job = start(2);

  EXPECT_EQ(job.status, int(Fault::comm)) << job.err;
  EXPECT_SAYS(job.err, "rank 0: MPI did not end within 3 s");
  EXPECT_EQ(orphans(), 0);
}

TEST_F(MpiJob, SaysWhenRanksDoNotMakeTheSameCalls) {
  if (is_rank())
    live_as_rank([](Comm& comm) {
      const std::vector<Offset> bytes(2, comm.rank() == 0 ? 8 : 16);
      std::vector<char> send(32), receive(32);
      comm.all_to_all(send.data(), bytes, receive.data(), bytes);
      comm.barrier();
    });

  const Outcome job = start(2);

  EXPECT_EQ(job.status, int(Fault::comm)) << job.err;
  EXPECT_SAYS(job.err, "the ranks do not make the same calls");
}

TEST_F(MpiJob, LeavesACallThatAnotherThreadIsInside) {
  if (is_rank())
    live_as_rank([](Comm& comm) {
      comm.barrier();
      if (comm.rank() == 0) {
        std::thread waiting(
            [&] { EXPECT_SAYS(sentence_of(Fault::comm, [&] { comm.barrier(); }), "out of memory in another thread"); });
        ::usleep(50000);
        comm.abort("out of memory in another thread");
        waiting.join();
        throw Error(Fault::memory, "out of memory in another thread");
      }
      ::usleep(100000);
      comm.barrier();
    });

  const Outcome job = start(2);

  EXPECT_EQ(job.status, int(Fault::memory)) << job.err << job.out;
  EXPECT_SAYS(job.err, "rank 0: out of memory in another thread");
}

}  // namespace
}  // namespace gs
