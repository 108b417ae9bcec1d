#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "kernels/philox.hpp"

#include "tests/support/backends.hpp"

namespace gs {
namespace {

/// Two lists, who owns their rows, and what unique_rows makes of them; as host memory.
struct Case {
  std::string name;
  std::vector<RowId> first, second;
  int owners = 1;
  RowId head_rows = 0;
  std::vector<RowId> positions{};  // partition
  std::vector<Offset> bounds{};
  std::vector<Offset> first_ends{}, second_ends{};
  RowId first_owned = 0;

  int group_of(RowId row) const {
    if (row < head_rows) return 0;
    if (positions.empty()) return 1 + int((row - first_owned) % RowId(owners));
    int owner = 0;
    while (bounds[std::size_t(owner + 1)] <= Offset(positions[row - first_owned])) ++owner;
    return 1 + owner;
  }
  RowId local_row(RowId row) const {
    if (row < head_rows) return row;
    if (positions.empty()) return (row - first_owned) / RowId(owners);
    return RowId(positions[row - first_owned] - bounds[std::size_t(group_of(row) - 1)]);
  }
  /// The slice of a position, 0 where there are none.
  static int slice_of(const std::vector<Offset>& ends, Offset position) {
    int slice = 0;
    while (!ends.empty() && position >= ends[std::size_t(slice)]) ++slice;
    return slice;
  }
};

struct Found {
  std::vector<RowId> rows, local_rows, first_slots, second_slots;
  std::vector<kernels::GroupCounts> counts;
  Offset distinct = 0;
};

Found unique(TestDevice& on, const Case& c, Offset capacity) {
  const Offset places = Offset(c.first.size() + c.second.size());
  Values<RowId> first(on, c.first), second(on, c.second), positions(on, c.positions);
  Values<Offset> bounds(on, c.bounds);
  Values<RowId> rows(on, capacity, 7), local_rows(on, capacity, 7);
  Values<RowId> first_slots(on, Offset(c.first.size()), 7), second_slots(on, Offset(c.second.size()), 7);
  Values<char> scratch(on, kernels::unique_scratch_bytes(places, capacity, on.device.is_cuda()), 7);
  Found found;
  found.counts.resize(std::size_t(1 + c.owners), {-1, -1, -1, -1});
  kernels::Owners owners{c.owners, c.first_owned, {}, {}};
  if (!c.positions.empty()) owners.positions = positions.span(), owners.bounds = bounds.span();

  on.ops.unique_rows({first.span(), second.span(), c.first_ends, c.second_ends}, owners, c.head_rows,
                     {rows.span(), local_rows.span(), first_slots.span(), second_slots.span(), scratch.span()},
                     found.counts, on.exec);

  scratch.host(), first.host(), second.host();  // guards
  found.rows = rows.host(), found.local_rows = local_rows.host();
  found.first_slots = first_slots.host(), found.second_slots = second_slots.host();
  for (const kernels::GroupCounts& group : found.counts) found.distinct += group.rows;
  return found;
}

/// What a slow twin says of the counts, and every position's row.
void expect_as_defined(const Case& c, const Found& found) {
  SCOPED_TRACE(c.name);
  const bool sliced = !c.first_ends.empty();
  std::map<std::pair<int, RowId>, bool> kinds;  // (slice, row) -> of the first kind
  std::vector<kernels::GroupCounts> expected(std::size_t(1 + c.owners));
  for (std::size_t p = 0; p < c.first.size(); ++p)
    if (c.first[p] != kNoRow) {
      kinds[{Case::slice_of(c.first_ends, Offset(p)), c.first[p]}] = true;
      ++expected[std::size_t(c.group_of(c.first[p]))].first_positions;
    }
  for (std::size_t p = 0; p < c.second.size(); ++p)
    if (c.second[p] != kNoRow) {
      kinds.insert({{Case::slice_of(c.second_ends, Offset(p)), c.second[p]}, sliced});
      ++expected[std::size_t(c.group_of(c.second[p]))].second_positions;
    }
  for (const auto& [key, first_kind] : kinds) {
    kernels::GroupCounts& group = expected[std::size_t(c.group_of(key.second))];
    ++group.rows;
    group.first_rows += first_kind ? 1 : 0;
  }
  for (std::size_t g = 0; g < expected.size(); ++g) {
    EXPECT_EQ(found.counts[g].rows, expected[g].rows) << "group " << g;
    EXPECT_EQ(found.counts[g].first_rows, expected[g].first_rows) << "group " << g;
    EXPECT_EQ(found.counts[g].first_positions, expected[g].first_positions) << "group " << g;
    EXPECT_EQ(found.counts[g].second_positions, expected[g].second_positions) << "group " << g;
  }
  ASSERT_EQ(found.distinct, Offset(kinds.size()));

  // Slots give every position its row back, and each slot is of one slice.
  std::map<RowId, int> slice_of_slot;
  const auto expand = [&](const std::vector<RowId>& list, const std::vector<RowId>& slots,
                          const std::vector<Offset>& ends) {
    for (std::size_t p = 0; p < list.size(); ++p) {
      if (list[p] == kNoRow) {
        ASSERT_EQ(slots[p], kNoRow) << p;
        continue;
      }
      ASSERT_LT(Offset(slots[p]), found.distinct) << p;
      ASSERT_EQ(found.rows[slots[p]], list[p]) << p;
      const int slice = Case::slice_of(ends, Offset(p));
      ASSERT_EQ(slice_of_slot.insert({slots[p], slice}).first->second, slice) << p;
    }
  };
  expand(c.first, found.first_slots, c.first_ends);
  expand(c.second, found.second_slots, c.second_ends);

  // Groups in order, the first kind first in each.
  Offset slot = 0;
  for (std::size_t g = 0; g < expected.size(); ++g)
    for (Offset i = 0; i < expected[g].rows; ++i, ++slot) {
      const RowId row = found.rows[std::size_t(slot)];
      ASSERT_EQ(c.group_of(row), int(g)) << "slot " << slot;
      ASSERT_EQ(found.local_rows[std::size_t(slot)], c.local_row(row)) << "slot " << slot;
      const int slice = slice_of_slot.at(RowId(slot));
      ASSERT_EQ((kinds.at({slice, row})), i < expected[g].first_rows) << "slot " << slot;
    }
}

enum class Spread { uniform, skewed, equal };

std::vector<RowId> rows_drawn(Offset count, Offset rows, Spread spread, std::uint64_t seed) {
  std::vector<RowId> list;
  for (Offset i = 0; i < count; ++i) {
    const Philox4 random = draw(seed, 0, std::uint64_t(i), 0, Draw::negative);
    const double u = unit_float(random.word[2]);
    list.push_back(spread == Spread::equal    ? RowId(rows - 1)
                   : spread == Spread::skewed ? RowId(std::pow(double(rows), u) - 1)
                                              : RowId(below(random.low(), std::uint64_t(rows))));
  }
  return list;
}

/// The last part of each run of `length` becomes kNoRow, as a walk that ended early.
std::vector<RowId> with_ends(std::vector<RowId> list, std::size_t length) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (i % length > (i / length * 7) % length) list[i] = kNoRow;
  return list;
}

/// Rows that all belong at the end of the CPU's hash table, of whatever size, so that it wraps round.
std::vector<RowId> rows_that_collide(std::size_t count) {
  std::vector<RowId> rows;
  for (RowId row = 0; rows.size() < count; ++row)
    if (row * 0x9E3779B97F4A7C15ull >> 52 == 0xFFF) rows.push_back(row);
  return rows;
}

std::vector<Case> cases() {
  const Offset n = 1000;
  std::vector<Case> all{
      {"nothing", {}, {}, 3},
      {"one", {0}, {}, 1},
      {"second only", {}, {5, 5, 2}, 2},
      {"no rows at all", {kNoRow, kNoRow}, {kNoRow}, 2},
      {"the largest row", {kNoRow - 1, kNoRow, 0}, {kNoRow - 1}, 3},
      {"uniform", rows_drawn(3000, n, Spread::uniform, 1), rows_drawn(2000, n, Spread::uniform, 2), 4},
      {"hardly any twice", rows_drawn(20000, 4000000000, Spread::uniform, 1), rows_drawn(9, 9, Spread::uniform, 2), 3},
      {"colliding", rows_that_collide(12), rows_that_collide(30), 2},
      {"skewed", rows_drawn(30000, n, Spread::skewed, 3), rows_drawn(20000, n, Spread::skewed, 4), 9},
      {"all equal", rows_drawn(5000, n, Spread::equal, 0), rows_drawn(50, n, Spread::equal, 0), 2},
      {"walks that end", with_ends(rows_drawn(4000, n, Spread::skewed, 5), 40), rows_drawn(800, n, Spread::uniform, 6),
       3},
      {"a head", rows_drawn(3000, n, Spread::skewed, 7), rows_drawn(2000, n, Spread::uniform, 8), 3, 50},
      {"all of it head", rows_drawn(3000, n, Spread::uniform, 7), rows_drawn(2000, n, Spread::uniform, 8), 3, 1000},
  };
  Case part{"partition", rows_drawn(3000, n, Spread::uniform, 9), rows_drawn(2000, n, Spread::skewed, 10), 4, 20};
  part.bounds = {0, 10, 10, 600, 1000};  // an owner of no rows too
  for (Offset row = 0; row < n; ++row) part.positions.push_back(RowId(row * 7 % n));
  all.push_back(part);
  part.name = "partition behind rows of nobody";
  part.first_owned = 15, part.positions.resize(std::size_t(n - 15)), part.bounds = {0, 10, 10, 600, 1000};
  all.push_back(part);
  Case cyclic{"cyclic behind rows of nobody", with_ends(rows_drawn(3000, n, Spread::skewed, 7), 40),
              rows_drawn(2000, n, Spread::uniform, 8), 3, 50};
  cyclic.first_owned = 37;
  all.push_back(cyclic);
  return all;
}

class UniqueRows : public OnBackends {};

TEST_P(UniqueRows, AreThoseOfATwinInGroupsWithASlotForEveryPosition) {
  TestDevice on(GetParam());
  for (const Case& c : cases()) {
    const Found found = unique(on, c, Offset(c.first.size() + c.second.size()));

    expect_as_defined(c, found);
    if (HasFatalFailure()) return;
  }
}

TEST_P(UniqueRows, FitIntoRoomForExactlyAsMany) {
  TestDevice on(GetParam());
  for (const Case& c : cases()) {
    std::set<RowId> distinct(c.first.begin(), c.first.end());
    distinct.insert(c.second.begin(), c.second.end());
    distinct.erase(kNoRow);
    const auto exact = Offset(distinct.size());

    expect_as_defined(c, unique(on, c, exact));

    if (exact > 0) {
      EXPECT_THROW(unique(on, c, exact - 1), Error) << c.name;
    }
  }
}

TEST_P(UniqueRows, OfOneOwnerMayShareMemoryWithTheirLocalRows) {
  TestDevice on(GetParam());
  const Case c{"one owner", rows_drawn(3000, 1000, Spread::uniform, 1), rows_drawn(2000, 1000, Spread::uniform, 2), 1};
  const Found apart = unique(on, c, 1000);
  Values<RowId> first(on, c.first), second(on, c.second), rows(on, 1000, 7), first_slots(on, 3000, 0),
      second_slots(on, 2000, 0);
  Values<char> scratch(on, kernels::unique_scratch_bytes(5000, 1000, on.device.is_cuda()), 0);
  kernels::GroupCounts counts[2];

  on.ops.unique_rows({first.span(), second.span()}, {}, 0,
                     {rows.span(), rows.span(), first_slots.span(), second_slots.span(), scratch.span()}, {counts, 2},
                     on.exec);

  EXPECT_EQ(rows.host(), apart.rows);
  EXPECT_EQ(first_slots.host(), apart.first_slots);
  EXPECT_EQ(second_slots.host(), apart.second_slots);
}

TEST_P(UniqueRows, ComeInAFixedOrder) {
  TestDevice on(GetParam());
  const Case c{"order", {8, 3, kNoRow, 3, 6, 1}, {9, 8, 4, 2, 9}, 2, 2};

  const Found found = unique(on, c, 8);

  const bool sorted = on.device.is_cuda();
  const std::vector<RowId> rows =
      sorted ? std::vector<RowId>{1, 6, 8, 2, 4, 3, 9} : std::vector<RowId>{1, 8, 6, 4, 2, 3, 9};
  EXPECT_EQ(std::vector<RowId>(found.rows.begin(), found.rows.begin() + 7), rows);
}

TEST_P(UniqueRows, OfSlicesAreUniqueInEachAndAllOfTheFirstKind) {
  TestDevice on(GetParam());
  Case c{"slices", rows_drawn(3000, 300, Spread::skewed, 1), rows_drawn(1000, 300, Spread::uniform, 2), 3};
  c.first_ends = {0, 100, 100, 2900, 3000};  // empty ones, one with one list only
  c.second_ends = {0, 400, 500, 500, 1000};
  if (on.device.is_cuda()) {
    EXPECT_THROW(unique(on, c, 4000), Error);
    return;
  }

  const Found found = unique(on, c, 4000);

  expect_as_defined(c, found);
  Offset slot = 0;  // in a group slices come in order
  for (const kernels::GroupCounts& group : found.counts) {
    int slice = 0;
    std::map<RowId, int> slices;
    for (std::size_t p = 0; p < c.first.size(); ++p)
      slices[found.first_slots[p]] = Case::slice_of(c.first_ends, Offset(p));
    for (std::size_t p = 0; p < c.second.size(); ++p)
      slices[found.second_slots[p]] = Case::slice_of(c.second_ends, Offset(p));
    for (Offset i = 0; i < group.rows; ++i, ++slot) {
      EXPECT_GE(slices.at(RowId(slot)), slice);
      slice = slices.at(RowId(slot));
    }
  }
}

TEST_P(UniqueRows, RefuseWhatDoesNotFitTogether) {
  TestDevice on(GetParam());
  Case c{"wrong", {1, 2}, {3}, 2};
  c.first_ends = {2};
  EXPECT_THROW(unique(on, c, 3), Error);  // slices of one list only
  c.first_ends = {1}, c.second_ends = {1};
  EXPECT_THROW(unique(on, c, 3), Error);  // slices that end before the list does
  c.first_ends = {2, 1}, c.second_ends = {1, 1};
  EXPECT_THROW(unique(on, c, 3), Error);
  c.first_ends = c.second_ends = {};
  c.first_owned = 2, c.head_rows = 1;
  EXPECT_THROW(unique(on, c, 3), Error);  // row 1 is neither replicated nor owned
}

GS_ON_ALL_BACKENDS(UniqueRows);

}  // namespace
}  // namespace gs
