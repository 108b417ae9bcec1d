#include <gtest/gtest.h>

#include <random>
#include <set>

#include "src/graph/decimal.hpp"
#include "src/graph/id_map.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/slow_graph.hpp"

namespace gs {
namespace {

TEST(CanonicalNumber, IsTheValueOfTheOneWayToWriteANumber) {
  EXPECT_EQ(canonical_number("0"), 0u);
  EXPECT_EQ(canonical_number("42"), 42u);
  EXPECT_EQ(canonical_number("9999999999999999999"), 9999999999999999999u);
  EXPECT_EQ(canonical_number("18446744073709551615"), 18446744073709551615u);
}

TEST(CanonicalNumber, IsNothingForAnyOtherName) {
  for (const char* name : {"", "007", "00", "+7", "-7", "7 ", "0x7", "1e3", "7a", "18446744073709551616",
                           "18446744073709551620", "99999999999999999999", "100000000000000000000"})
    EXPECT_EQ(canonical_number(name), std::nullopt) << name;
}

/// ids of `tokens`, resolved in one batch
std::vector<RowId> resolved(IdMap& map, const std::vector<std::string>& tokens) {
  IdMap::Batch batch;
  for (std::uint32_t i = 0; i < tokens.size(); ++i) {
    const auto number = canonical_number(tokens[i]);
    number ? batch.add(*number, i) : batch.add(std::string_view(tokens[i]), i);
  }
  std::vector<RowId> ids(tokens.size());
  map.resolve(batch, ids.data());
  return ids;
}

TEST(IdMap, GivesEqualNamesOneIdAndDifferentNamesDifferentOnes) {
  IdMap map;

  const auto ids = resolved(map, {"7", "007", "7", "seven", "7.0", "seven", ""});

  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_EQ(ids[3], ids[5]);
  EXPECT_EQ(std::set<RowId>(ids.begin(), ids.end()), (std::set<RowId>{0, 1, 2, 3, 4}));
}

TEST(IdMap, RemembersNamesBetweenBatches) {
  IdMap map;

  const auto first = resolved(map, {"a", "1"}), second = resolved(map, {"1", "b", "a"});

  EXPECT_EQ(second[0], first[1]);
  EXPECT_EQ(second[2], first[0]);
  EXPECT_EQ(map.size(), 3);
}

TEST(IdMap, ReturnsEveryNameUnchanged) {
  std::vector<std::string> tokens = {"18446744073709551615", "0", "6221888200042590280", "6221888200042590281"};
  for (int i = 0; i < 5000; ++i) tokens.push_back(std::to_string(std::uint64_t(i) << 48));  // few bits that differ
  IdMap map;
  const auto ids = resolved(map, tokens);

  const BuiltGraph names = map.take_names(2);

  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(std::to_string(names.name_numbers[ids[i]]), tokens[i]);
}

TEST(IdMap, ReturnsMixedNamesAsBytes) {
  const std::vector<std::string> tokens = {"10", "010", "na\xC3\xAFve name", std::string("\xFF\x01", 2),
                                           "18446744073709551616"};
  IdMap map;
  const auto ids = resolved(map, tokens);

  const std::vector<std::string> names = names_of(map.take_names(2));

  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(names[ids[i]], tokens[i]);
}

TEST(IdMap, AgreesWithAMapUnderManyThreads) {
  IdMap map;
  constexpr int kThreads = 8, kRounds = 20, kTokens = 2000;
  std::vector<std::map<std::string, RowId>> seen(kThreads);

  on_threads(kThreads, [&](int thread) {
    std::mt19937_64 random(std::uint64_t(thread) + 1);
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::string> tokens;
      for (int i = 0; i < kTokens; ++i) {
        const std::string number = std::to_string(random() % 10000);
        tokens.push_back(random() % 2 ? number : "n" + number);
      }
      const auto ids = resolved(map, tokens);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const RowId id = seen[std::size_t(thread)].emplace(tokens[i], ids[i]).first->second;
        ASSERT_EQ(id, ids[i]);
      }
    }
  });

  const std::vector<std::string> names = names_of(map.take_names(4));
  for (const auto& ids : seen)
    for (const auto& [name, id] : ids) ASSERT_EQ(names[id], name);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(IdMap, RefusesMoreNodesThanItsLimit) {
  IdMap map(3);
  resolved(map, {"1", "2", "x", "1"});

  const std::string sentence = sentence_of(Fault::input, [&] { resolved(map, {"2", "4"}); });

  EXPECT_SAYS(sentence, "more than 3 different nodes");
}

}  // namespace
}  // namespace gs
