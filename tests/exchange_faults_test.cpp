// A rank that throws, stays away, leaves or calls something else ends the others, which say so. Threads as ranks.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "src/exchange/failures.hpp"
#include "tests/support/ranks.hpp"

namespace gs {
namespace {

/// What became of a run: each rank's own error ("" for none) and the one that the run ended with.
struct Ending {
  std::vector<std::string> of_rank;
  std::string sentence;
  Fault fault = Fault::internal;
};

class Faults : public testing::TestWithParam<Transport> {
 protected:
  Ending end_of(int ranks, const std::function<void(Comm&)>& body, double timeout_s = kTestTimeout_s) const {
    Ending ending{std::vector<std::string>(std::size_t(ranks)), "", Fault::internal};
    const auto noted = [&](Comm& comm) {
      try {
        body(comm);
      } catch (const std::exception& error) {
        ending.of_rank[std::size_t(comm.rank())] = error.what();
        throw;
      }
    };
    try {
      run_on_ranks(ranks, noted, GetParam(), timeout_s);
    } catch (const Error& error) {
      ending.sentence = error.what();
      ending.fault = error.fault;
    }
    return ending;
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, Faults, testing::ValuesIn(kThreadTransports),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Faults, ARankThatThrowsEndsTheOthersWithItsReason) {
  const Ending ending = end_of(3, [](Comm& comm) {
    comm.barrier();
    if (comm.rank() == 2) throw Error(Fault::input, "line 7 has no weight");
    comm.barrier();
  });

  EXPECT_EQ(ending.sentence, "rank 2: line 7 has no weight");
  EXPECT_EQ(ending.fault, Fault::input);
  for (int r : {0, 1}) EXPECT_EQ(ending.of_rank[std::size_t(r)], "rank 2 left: line 7 has no weight");
}

TEST_P(Faults, OtherExceptionsBecomeErrorsToo) {
  const Ending memory = end_of(2, [](Comm& comm) {
    if (comm.rank() == 1) throw std::bad_alloc();
    comm.barrier();
  });
  const Ending other = end_of(2, [](Comm& comm) {
    if (comm.rank() == 0) throw std::out_of_range("at 9");
    comm.barrier();
  });

  EXPECT_EQ(memory.fault, Fault::memory);
  EXPECT_TRUE(memory.sentence.starts_with("rank 1: memory ran out")) << memory.sentence;
  EXPECT_EQ(other.fault, Fault::internal);
  EXPECT_EQ(other.sentence, "rank 0: internal: at 9");
}

TEST_P(Faults, OneRankHasNoNumberInItsError) {
  EXPECT_EQ(end_of(1, [](Comm&) { throw Error(Fault::input, "no such file"); }).sentence, "no such file");
}

TEST_P(Faults, RanksThatDoNotComeAreNamedAtTheDeadline) {
  std::latch over(2);
  const Ending ending = end_of(
      4,
      [&](Comm& comm) {
        comm.barrier();
        if (comm.rank() % 2 == 1) return over.wait();
        try {
          comm.barrier();
        } catch (const Error&) {
          over.count_down();
          throw;
        }
      },
      1);

  EXPECT_EQ(ending.fault, Fault::comm);
  const std::string expected = "no sign of ranks 1, 3 for 1 s (exchange.timeout_s)";
  for (int r : {0, 2}) {
    const std::string& sentence = ending.of_rank[std::size_t(r)];
    EXPECT_TRUE(sentence.starts_with(expected)) << sentence;
  }
}

TEST_P(Faults, ARankWhoseWorkEndsEarlyIsNamed) {
  const Ending ending = end_of(3, [](Comm& comm) {
    comm.barrier();
    if (comm.rank() == 1) return;
    comm.barrier();
  });

  EXPECT_EQ(ending.fault, Fault::comm);
  for (int r : {0, 2})
    EXPECT_EQ(ending.of_rank[std::size_t(r)], "rank 1 left: its work ended where the others' goes on");
}

TEST_P(Faults, PartsOfDifferentSizesOnTheTwoSidesAreNamed) {
  const Ending ending = end_of(2, [](Comm& comm) {
    std::vector<char> from(100), to(100);
    const std::vector<Offset> send{10, 10}, receive{10, comm.rank() == 0 ? 12 : 10};
    const std::vector<Offset> own_receive = comm.rank() == 0 ? receive : send;
    comm.all_to_all(from.data(), send, to.data(), own_receive);
    comm.barrier();
  });

  EXPECT_EQ(ending.fault, Fault::comm);
  const std::string expected =
      "rank 1 sends 10 bytes to rank 0, which expects 12: the ranks do not make the same calls";
  EXPECT_EQ(ending.of_rank, (std::vector<std::string>{expected, expected}));
  EXPECT_TRUE(ending.sentence.ends_with(": " + expected)) << ending.sentence;  // "rank 0: " or "rank 1: "
}

TEST_P(Faults, DifferentCallsAreNoticed) {
  const Ending ending = end_of(3, [](Comm& comm) {
    std::vector<double> values(5);
    comm.rank() == 1 ? comm.barrier() : comm.all_reduce(Span<double>(values));
    comm.barrier();
  });

  EXPECT_EQ(ending.fault, Fault::comm);
  EXPECT_NE(ending.sentence.find("the ranks do not make the same calls"), std::string::npos) << ending.sentence;
}

TEST_P(Faults, AfterAFailureEveryCallFailsWithIt) {
  std::vector<std::string> later(2);
  end_of(3, [&](Comm& comm) {
    if (comm.rank() == 2) throw Error(Fault::memory, "full");
    EXPECT_THROW(comm.barrier(), Error);
    try {
      comm.gather_texts("more");
    } catch (const Error& error) {
      later[std::size_t(comm.rank())] = error.what();
    }
  });

  EXPECT_EQ(later, std::vector<std::string>(2, "rank 2 left: full"));
}

TEST_P(Faults, AbortFromAnotherThreadEndsACallInProgress) {
  const Ending ending = end_of(2, [](Comm& comm) {
    if (comm.rank() == 1) {
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // most likely inside the call by then
        comm.abort("its sampler failed");
      });
      try {
        comm.barrier();
      } catch (...) {
        other.join();
        throw;
      }
      other.join();
    } else {
      comm.barrier();
      comm.barrier();  // rank 1 is here once, if at all
    }
  });
  EXPECT_TRUE(ending.of_rank[0].find("rank 1 left") == 0) << ending.of_rank[0];
}

TEST_P(Faults, TheCauseIsReportedThoughItsEchoComesFirst) {
  const Ending ending = end_of(2, [](Comm& comm) {
    if (comm.rank() == 0) comm.barrier();
    comm.abort("bad line");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // most likely rank 0 has failed by then
    throw Error(Fault::input, "bad line");
  });

  EXPECT_EQ(ending.of_rank[0], "rank 1 left: bad line");
  EXPECT_EQ(ending.sentence, "rank 1: bad line");
  EXPECT_EQ(ending.fault, Fault::input);
}

TEST_P(Faults, NoticeHearsOfAFailureWithoutACall) {
  std::latch quiet(2);
  const Ending ending = end_of(2, [&](Comm& comm) {
    comm.barrier();
    EXPECT_NO_THROW(comm.notice());
    quiet.arrive_and_wait();
    if (comm.rank() == 1) throw Error(Fault::device, "no GPU");
    for (const double start_s = now_s(); now_s() - start_s < kTestTimeout_s;) {
      comm.notice();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });

  EXPECT_EQ(ending.of_rank[0], "rank 1 left: no GPU");
}

TEST_P(Faults, NoticeIsSilentAboutARankThatIsDone) {
  const Ending ending = end_of(2, [&](Comm& comm) {
    std::vector<Offset> one(2);
    comm.all_reduce(Span<Offset>(one));
    if (comm.rank() == 1) return;
    for (int look = 0; look < 50; ++look) {
      comm.notice();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });

  EXPECT_EQ(ending.sentence, "");
}

/// A rank that fails because another did is not the cause, whichever is heard first.
TEST_P(Faults, TheFirstCauseIsReported) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    const Ending ending = end_of(4, [](Comm& comm) {
      for (int call = 0; call < 5; ++call) {
        if (comm.rank() == 3 && call == 3) throw Error(Fault::output, "disk full");
        comm.barrier();
      }
    });
    EXPECT_EQ(ending.sentence, "rank 3: disk full");
    EXPECT_EQ(ending.fault, Fault::output);
  }
}

TEST(Handshake, NamesMissingAndLongValuesAndManyFactsShortly) {
  std::string sentence;
  try {
    run_on_ranks(4, [](Comm& comm) {
      std::vector<std::pair<std::string, std::string>> facts{{"build", "1"},
                                                             {"seed", std::string(5000, char('a' + comm.rank()))}};
      if (comm.rank() != 2) facts.push_back({"graph nodes", "10"});
      for (const char* name : {"x", "y", "z"}) facts.push_back({name, std::to_string(comm.rank() / 2)});
      handshake(comm, facts);
    });
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::comm);
    sentence = error.what();
  }

  EXPECT_NE(sentence.find("graph nodes: 10 on ranks 0, 1, 3; missing on rank 2"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("x: 0 on ranks 0, 1; 1 on ranks 2, 3"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("and 2 more"), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find("build"), std::string::npos) << sentence;
  EXPECT_LT(sentence.size(), 800u);
}

TEST(Failures, RanksAreListedShortly) {
  EXPECT_EQ(rank_list({4}), "rank 4");
  EXPECT_EQ(rank_list({0, 2}), "ranks 0, 2");
  EXPECT_EQ(rank_list({0, 1}), "ranks 0, 1");
  EXPECT_EQ(rank_list({0, 1, 2, 3, 7}), "ranks 0-3, 7");
  EXPECT_EQ(rank_list({1, 5, 6, 8, 9, 10}), "ranks 1, 5, 6, 8-10");
}

TEST(Failures, OnlyAnotherRanksLeavingReadsAsOne) {
  EXPECT_TRUE(is_left_sentence(left_sentence(12, "boom")));
  EXPECT_TRUE(is_left_sentence(ended_sentence(3)));
  for (const char* cause : {"boom", "rank 2 closed its connection", "rank left: x", "rank 2", "rank x left: y"})
    EXPECT_FALSE(is_left_sentence(cause)) << cause;
}

}  // namespace
}  // namespace gs
