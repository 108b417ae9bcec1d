#include <gtest/gtest.h>

#include "graphscale/graph.hpp"

#include "tests/support/built_graph.hpp"

namespace gs {
namespace {

/// Byte names that own what they view.
std::shared_ptr<NodeNames> names_from(const std::vector<std::string>& list) {
  struct Storage {
    std::vector<char> bytes;
    std::vector<Offset> bounds{0};
  };
  const auto storage = std::make_shared<Storage>();
  for (const std::string& name : list) {
    storage->bytes.insert(storage->bytes.end(), name.begin(), name.end());
    storage->bounds.push_back(Offset(storage->bytes.size()));
  }
  return names_of_bytes(storage->bytes, storage->bounds, storage);
}

TEST(Names, EveryNameIsFoundAtItsRowAndNoOther) {
  std::vector<std::string> list{"", "007", "7", "a b", "naïve", std::string("\0x", 2)};
  for (int i = 0; i < 5000; ++i) list.push_back(cat("user_", i));
  const auto names = names_from(list);

  for (std::size_t row = 0; row < list.size(); ++row) {
    EXPECT_EQ(names->name(Offset(row)), list[row]);
    EXPECT_EQ(names->find(list[row]), RowId(row));
  }
  EXPECT_EQ(names->find("user_5000"), std::nullopt);
  EXPECT_EQ(names->find("07"), std::nullopt);
}

TEST(Names, NumbersAreFoundByTheirCanonicalTextAlone) {
  const std::vector<std::uint64_t> numbers{7, 0, 18446744073709551615u, 42};
  const auto names = names_of_numbers(numbers);

  EXPECT_EQ(names->find("7"), RowId(0));
  EXPECT_EQ(names->find("0"), RowId(1));
  EXPECT_EQ(names->find("18446744073709551615"), RowId(2));
  for (const char* other : {"007", "+7", " 7", "7.0", "", "18446744073709551616", "43"})
    EXPECT_EQ(names->find(other), std::nullopt) << other;
}

TEST(Names, NoNamesHaveNothingToFind) {
  EXPECT_EQ(names_from({})->find("a"), std::nullopt);
  EXPECT_TRUE(names_from({})->similar("a", 3).empty());
}

TEST(Names, ThreadsMayFindAtOnce) {
  std::vector<std::uint64_t> numbers(20000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 3 * i;
  const auto names = names_of_numbers(numbers);
  std::atomic<int> wrong{0};

  on_threads(4, [&](int thread) {
    for (std::size_t row = std::size_t(thread); row < numbers.size(); row += 4)
      if (names->find(std::to_string(3 * row)) != RowId(row)) ++wrong;
  });

  EXPECT_EQ(wrong, 0);
}

TEST(Names, SimilarNamesAreNearestFirst) {
  const auto names = names_from({"cat.n.01", "Guitar", "guitarist", "guitars", "sitar", "dog.n.01", "xyz"});

  EXPECT_EQ(names->similar("guitar", 9), (std::vector<std::string>{"Guitar", "guitars", "guitarist", "sitar"}));
  EXPECT_EQ(names->similar("guitar", 1), std::vector<std::string>{"Guitar"});
  EXPECT_EQ(names->similar("dog", 3), std::vector<std::string>{"dog.n.01"});
  EXPECT_EQ(names->similar("dgo.n.01", 1), std::vector<std::string>{"dog.n.01"});
  EXPECT_TRUE(names->similar("guitar", 0).empty());
  EXPECT_TRUE(names->similar("piano", 3).empty());
}

}  // namespace
}  // namespace gs
