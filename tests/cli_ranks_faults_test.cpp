// Ranks as processes, by a launcher's environment over tcp and by mpirun: launched wrongly, killed, stopped, told to
// stop, out of memory and out of disk. Every rank ends, says whose fault it was, and leaves earlier vectors alone.
#include <regex>

#include "tests/support/launched.hpp"
#include "tests/support/program.hpp"
#include "tests/support/ranks.hpp"

namespace gs {
namespace {

/// Of ranks that wait for one that stopped or never comes: above what starting takes on a busy machine. All others keep
/// the default, a minute: who dies or leaves is noticed at once.
constexpr int kTimeout_s = 6;

/// The step after "last finished step: " in an error, or -1.
Offset last_step(const std::string& err) {
  const std::string words = "last finished step: ";
  const std::size_t at = err.find(words);
  return at == std::string::npos ? -1 : std::atoll(err.c_str() + at + words.size());
}

/// Whether an error says that rank 2 gave no sign. Ranks that it stopped in different calls may miss each other, too.
bool misses_rank_2(const std::string& err) {
  const std::string sentence = cat("no sign of ranks? ([0-9]+, )*2 for ", kTimeout_s, " s \\(exchange.timeout_s\\)");
  return std::regex_search(err, std::regex(sentence));
}

class FieldReportLaunch : public WithProgram {
 protected:
  FieldReportLaunch() {
    succeed("graph generate sbm --nodes 200 --edges 2000 --out s");
    succeed("train --graph s --device cpu --dim 8 --epochs 0 --out r");
    earlier_ = saved();
  }
  ~FieldReportLaunch() override {
    for (const pid_t process : processes_with(path("r"))) ::kill(process, SIGKILL);  // mpirun's ranks, of a failed test
  }

  /// A rank's command line, with what `options` do not say. The run's path is one that no other process names.
  std::string train(const std::string& options) const {
    std::string line = cat("'", GS_BINARY, "' train --device cpu --threads 1 --log-steps 5 --overwrite ", options);
    const std::pair<const char*, std::string> otherwise[] = {
        {" --graph ", "s"}, {" --out ", path("r")}, {" --dim ", "8"}};
    for (const auto& [flag, value] : otherwise)
      if (!says(line, flag)) line += flag + value;
    return line;
  }

  /// A rank as torchrun starts it; `before`: shell that comes before the program.
  Launched tcp_rank(int rank, int size, const std::string& options, const std::string& name = "rank",
                    const std::string& before = "exec") const {
    return Launched(folder_, cat(name, rank),
                    cat("env RANK=", rank, " WORLD_SIZE=", size, " MASTER_ADDR=127.0.0.1 MASTER_PORT=", port_,
                        " sh -c \"", before, " ", train(options), "\""));
  }
  std::vector<Launched> tcp_ranks(int size, const std::function<std::string(int)>& options) const {
    std::vector<Launched> ranks;
    for (int rank = 0; rank < size; ++rank) ranks.push_back(tcp_rank(rank, size, options(rank)));
    return ranks;
  }
  Launched mpi_ranks(int size, const std::function<std::string(int)>& options) const {
    std::string line = "mpirun --oversubscribe --allow-run-as-root";
    for (int rank = 0; rank < size; ++rank) line += cat(rank > 0 ? " :" : "", " -n 1 ", train(options(rank)));
    return Launched(folder_, "mpirun", line);
  }

  std::string metrics() const { return bytes_of(folder_ / "r/metrics.jsonl"); }
  nlohmann::json end() const {
    const std::string text = metrics();
    return nlohmann::json::parse(text.substr(text.rfind('\n', text.size() - 2) + 1));
  }
  bool is_training() const {
    return comes_true([this] { return says(metrics(), "\"step\":"); });
  }
  bool are_gone() const {
    return comes_true([this] { return processes_with(path("r")).empty(); });
  }
  std::string saved() const { return bytes_of(folder_ / "r/embeddings/embeddings.npy"); }

  std::string earlier_;
  const int port_ = free_port();
  const std::string endless_ = "--epochs 1000000 ", impatient_ = cat(endless_, "--timeout-s ", kTimeout_s, " ");
};

class FieldReportMpi : public FieldReportLaunch {
 protected:
  void SetUp() override {
    if (!has_mpi()) GTEST_SKIP() << "this build has no MPI";
    if (is_sanitized()) GTEST_SKIP() << "MPI itself leaks and races: nothing to be seen under a sanitizer";
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "no mpirun on PATH";
  }
};

// --------------------------------------------------------------------------------------------------------- they work

TEST_F(FieldReportLaunch, ProcessesOverTcpTrainTheRunOfOneRank) {
  const std::string exact = "--epochs 1 --deterministic --staleness 0 --method rows ";
  succeed("train --graph s --device cpu --dim 8 --out one " + exact);

  std::vector<Launched> ranks = tcp_ranks(3, [&](int) { return exact; });

  for (Launched& rank : ranks) EXPECT_EQ(rank.wait(), 0) << rank.err();
  EXPECT_EQ(saved(), bytes_of(folder_ / "one/embeddings/embeddings.npy"));
  EXPECT_EQ(end()["end"], "complete");
  EXPECT_SAYS(ranks[0].err(), " ranks: 3 by tcp");
  for (int r : {1, 2}) EXPECT_EQ(ranks[std::size_t(r)].err(), "") << "rank 0 speaks for all";
}

TEST_F(FieldReportMpi, ProcessesUnderMpirunTrainTheRunOfOneRank) {
  const std::string exact = "--epochs 1 --deterministic --staleness 0 --method rows ";
  succeed("train --graph s --device cpu --dim 8 --out one " + exact);

  Launched job = mpi_ranks(3, [&](int) { return exact; });

  EXPECT_EQ(job.wait(120), 0) << job.err();
  EXPECT_EQ(saved(), bytes_of(folder_ / "one/embeddings/embeddings.npy"));
  EXPECT_EQ(end()["end"], "complete");
  for (const char* kind : {" config: model: ", " graph: ", " ranks: 3 by mpi", " train: 100 %", " embeddings in "})
    EXPECT_EQ(count_of(job.err(), kind), 1) << kind << "\n" << job.err();
}

// ------------------------------------------------------------------------------------------------------ a rank is lost

TEST_F(FieldReportLaunch, O18AKilledRankEndsTheOthersByName) {
  std::vector<Launched> ranks = tcp_ranks(3, [&](int) { return endless_; });
  ASSERT_TRUE(is_training());

  ranks[1].send(SIGKILL);

  EXPECT_EQ(ranks[1].wait(), -SIGKILL);
  for (int r : {0, 2}) {
    Launched& rank = ranks[std::size_t(r)];
    EXPECT_EQ(rank.wait(), int(Fault::comm)) << rank.err();
    EXPECT_SAYS(rank.err(), "rank 1 closed its connection: it died or was killed");
    EXPECT_GT(last_step(rank.err()), 0) << rank.err();
    EXPECT_EQ(count_of(rank.err(), "error: "), 1) << rank.err();
  }
  EXPECT_EQ(end()["end"], "failed");
  EXPECT_GT(last_step(end()["reason"]), 0);
  EXPECT_EQ(saved(), earlier_);
  EXPECT_TRUE(are_gone());
}

TEST_F(FieldReportLaunch, O18AStoppedRankEndsTheOthersAtTheDeadline) {
  std::vector<Launched> ranks = tcp_ranks(3, [&](int) { return impatient_; });
  ASSERT_TRUE(is_training());

  ranks[2].send(SIGSTOP);

  for (int r : {0, 1}) {
    Launched& rank = ranks[std::size_t(r)];
    EXPECT_EQ(rank.wait(), int(Fault::comm)) << rank.err();
    EXPECT_TRUE(misses_rank_2(rank.err())) << rank.err();
    EXPECT_GT(last_step(rank.err()), 0) << rank.err();
  }
  EXPECT_EQ(saved(), earlier_);
  ranks[2].send(SIGCONT);
  EXPECT_EQ(ranks[2].wait(), int(Fault::comm)) << ranks[2].err();
  EXPECT_TRUE(are_gone());
}

TEST_F(FieldReportMpi, O18AKilledRankEndsTheJobByName) {
  Launched job = mpi_ranks(3, [&](int) { return endless_; });
  ASSERT_TRUE(is_training()) << job.err();
  const std::vector<pid_t> victim = processes_with(path("r"), "OMPI_COMM_WORLD_RANK=1");
  ASSERT_EQ(victim.size(), 1u);

  ::kill(victim[0], SIGKILL);

  const std::optional<int> status = job.wait();
  ASSERT_TRUE(status.has_value()) << job.err();
  EXPECT_NE(*status, 0);
  EXPECT_SAYS(job.err(), "rank 1 died");
  EXPECT_GT(last_step(job.err()), 0) << job.err();
  EXPECT_EQ(saved(), earlier_);
  EXPECT_TRUE(are_gone());
}

TEST_F(FieldReportMpi, O18AStoppedRankEndsTheJobAtTheDeadline) {
  Launched job = mpi_ranks(3, [&](int) { return impatient_; });
  ASSERT_TRUE(is_training()) << job.err();
  const std::vector<pid_t> stopped = processes_with(path("r"), "OMPI_COMM_WORLD_RANK=2");
  ASSERT_EQ(stopped.size(), 1u);

  ::kill(stopped[0], SIGSTOP);

  EXPECT_EQ(job.wait(), int(Fault::comm)) << job.err();
  EXPECT_TRUE(misses_rank_2(job.err())) << job.err();
  EXPECT_GT(last_step(job.err()), 0) << job.err();
  EXPECT_EQ(saved(), earlier_);
  EXPECT_TRUE(are_gone());
}

// ------------------------------------------------------------------------------------------------- a rank fails itself

TEST_F(FieldReportLaunch, O18ARankThatCannotReadTheGraphIsMissedByNumber) {
  Launched zero = tcp_rank(0, 3, impatient_), one = tcp_rank(1, 3, impatient_);
  Launched two = tcp_rank(2, 3, impatient_ + "--graph nowhere");

  EXPECT_EQ(two.wait(), int(Fault::input)) << two.err();
  for (Launched* rank : {&zero, &one}) {
    EXPECT_EQ(rank->wait(), int(Fault::comm)) << rank->err();
    EXPECT_SAYS(rank->err(), "rank 2 has not come to rank 0");
  }
  EXPECT_EQ(saved(), earlier_);
  EXPECT_TRUE(are_gone());
}

TEST_F(FieldReportLaunch, O18APlaceThatCannotBeWrittenEndsAllRanksWithItsReason) {
  const std::string nowhere = "--epochs 1 --out /proc/nowhere/r";
  std::vector<Launched> ranks = tcp_ranks(3, [&](int) { return nowhere; });

  EXPECT_EQ(ranks[0].wait(), int(Fault::output)) << ranks[0].err();
  for (int r : {1, 2}) {
    Launched& rank = ranks[std::size_t(r)];
    EXPECT_EQ(rank.wait(), int(Fault::comm)) << rank.err();
    EXPECT_SAYS(rank.err(), "rank 0 left: ");
    EXPECT_SAYS(rank.err(), "/proc/nowhere");
  }
  EXPECT_EQ(run("train --graph s --device cpu --ranks 4 --out /proc/nowhere/r").status, int(Fault::output));
}

TEST_F(FieldReportLaunch, O18ADiskThatFillsUpWhileSavingEndsAllRanks) {
  const std::string wide = "--epochs 1 --dim 128";
  std::vector<Launched> ranks;
  ranks.push_back(tcp_rank(0, 2, wide, "rank", "ulimit -f 64 && exec"));  // 200 rows of 128 columns are 100 KB
  ranks.push_back(tcp_rank(1, 2, wide));

  EXPECT_EQ(ranks[0].wait(), int(Fault::output)) << ranks[0].err();
  EXPECT_EQ(ranks[1].wait(), int(Fault::comm)) << ranks[1].err();
  EXPECT_SAYS(ranks[1].err(), "rank 0 left: ");
  EXPECT_EQ(end()["end"], "failed");
  EXPECT_EQ(saved(), earlier_);
}

TEST_F(FieldReportLaunch, O18AnErrorOfAThreadIsTheProcesss) {
  const std::string wild = "--learning-rate 1e9 --max-row-step 0 --curvature-limit 0 --ranks 3";
  const Outcome outcome = run("train --graph s --device cpu --dim 8 --epochs 3 --overwrite --out r " + wild);

  EXPECT_EQ(outcome.status, int(Fault::internal));
  EXPECT_SAYS(outcome.last_line(), "error: rank ");
  EXPECT_SAYS(outcome.last_line(), "diverge");
  EXPECT_EQ(count_of(outcome.err, "error: "), 1) << outcome.err;
  EXPECT_EQ(saved(), earlier_);
}

// ------------------------------------------------------------------------------------------------------- started wrong

class NotAlike : public FieldReportLaunch, public testing::WithParamInterface<std::pair<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Facts, NotAlike,
                         testing::Values(std::pair("--dim 32", "model.dim: 8 on ranks 0, 2; 32 on rank 1"),
                                         std::pair("--graph other", "graph content: ")),
                         [](const auto& test) { return test.index == 0 ? "Options" : "Graphs"; });

TEST_P(NotAlike, RanksAreRefusedByNameValuesAndRanks) {
  const auto [options, sentence] = GetParam();
  succeed("graph generate sbm --nodes 200 --edges 2000 --seed 9 --out other");
  std::vector<Launched> ranks = tcp_ranks(3, [&](int r) { return endless_ + (r == 1 ? options : ""); });

  for (Launched& rank : ranks) {
    EXPECT_EQ(rank.wait(), int(Fault::comm)) << rank.err();
    EXPECT_SAYS(rank.err(), sentence);
  }
  EXPECT_EQ(saved(), earlier_);
}

TEST_F(FieldReportMpi, RanksThatWereNotStartedAlikeAreRefused) {
  Launched job = mpi_ranks(3, [&](int r) { return endless_ + (r == 1 ? "--dim 32" : ""); });

  EXPECT_EQ(job.wait(), int(Fault::comm)) << job.err();
  EXPECT_SAYS(job.err(), "model.dim: 8 on ranks 0, 2; 32 on rank 1");
  EXPECT_EQ(saved(), earlier_);
  EXPECT_TRUE(are_gone());
}

TEST_F(FieldReportLaunch, O19APortThatIsTakenIsNamed) {
  const Socket taken = listen_at("127.0.0.1", port_);

  std::vector<Launched> ranks = tcp_ranks(2, [&](int) { return endless_ + "--timeout-s 1"; });

  EXPECT_EQ(ranks[0].wait(), int(Fault::usage)) << ranks[0].err();
  EXPECT_SAYS(ranks[0].err(), cat("port ", port_, " in use"));
  EXPECT_EQ(ranks[1].wait(), int(Fault::comm)) << ranks[1].err();
  EXPECT_SAYS(ranks[1].err(), "took the call but never answered");
}

TEST_F(FieldReportLaunch, O19JobsOnOnePortNeverMix) {
  Launched first = tcp_rank(0, 2, "--epochs 1 --job first", "first");
  Launched guest = tcp_rank(1, 2, "--epochs 1 --job second", "second");
  EXPECT_EQ(guest.wait(), int(Fault::comm)) << guest.err();
  EXPECT_SAYS(guest.err(), "it belongs to job \"second\", rank 0 here to job \"first\"");
  Launched host = tcp_rank(0, 2, "--epochs 1 --job second", "second");
  EXPECT_EQ(host.wait(), int(Fault::usage)) << host.err();
  EXPECT_SAYS(host.err(), cat("port ", port_, " in use"));

  Launched last = tcp_rank(1, 2, "--epochs 1 --job first", "first");

  EXPECT_EQ(last.wait(), 0) << last.err();
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(end()["end"], "complete");
}

// ------------------------------------------------------------------------------------------------------- told to stop

TEST_F(FieldReportLaunch, ASignalToAnyRankStopsAllAfterTheSameStep) {
  for (const std::vector<int>& told : {std::vector{0, 1, 2}, std::vector{2}}) {
    SCOPED_TRACE(cat(told.size(), " told"));
    std::vector<Launched> ranks = tcp_ranks(3, [&](int) { return endless_; });
    ASSERT_TRUE(is_training());

    for (const int r : told) ranks[std::size_t(r)].send(SIGTERM);

    for (Launched& rank : ranks) EXPECT_EQ(rank.wait(), 0) << rank.err();
    EXPECT_SAYS(ranks[0].err(), "stopped by a signal: ");
    EXPECT_EQ(end()["end"], "stopped");
    EXPECT_NE(saved(), earlier_);
    EXPECT_EQ(vectors("r/embeddings").size(), 200u);
    std::ofstream(folder_ / "r/metrics.jsonl");
  }
}

// -------------------------------------------------------------------------------------------------------- out of
// memory

TEST_F(FieldReportLaunch, O18ARankWithoutMemorySaysSoAndEndsTheOthers) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's shadow is larger than any limit";
  succeed("graph generate ring --nodes 40000 --out large");
  const std::string wide = "--epochs 1 --graph large --dim 2048";  // 2 tables of 328 MB, half of them on each rank
  std::vector<Launched> ranks;
  ranks.push_back(tcp_rank(0, 2, wide));
  ranks.push_back(tcp_rank(1, 2, wide, "rank", "ulimit -v 400000 && exec"));

  EXPECT_EQ(ranks[1].wait(), int(Fault::memory)) << ranks[1].err();
  EXPECT_EQ(ranks[0].wait(), int(Fault::comm)) << ranks[0].err();
  for (const char* part : {"rank 1: ", " are free: ", "lower "}) EXPECT_SAYS(ranks[1].err(), part);
  EXPECT_SAYS(ranks[0].err(), "rank 0: rank 1 left: ");
  EXPECT_EQ(end()["end"], "complete") << "the earlier run's: nothing was begun";
  EXPECT_EQ(saved(), earlier_);
}

}  // namespace
}  // namespace gs
