// unique_rows on a GPU: sort (row, position); a run of equal rows is a distinct row; sort those by (group, kind).
//
// Both sorts are stable. So a run's first position tells whether the first list has the row, and rows stay ascending in
// their group. Order of all results is fixed; the host waits twice, for the number of distinct rows and for the counts.
#pragma once

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

using Word = std::uint32_t;
using Counter = unsigned long long;

/// One thread a position of both lists: the lists as one.
struct JoinLists {
  Span<const RowId> first, second;
  RowId* rows;
  Word* positions;
  GS_DEV void operator()(Offset i, int) const {
    rows[i] = i < first.size ? first[i] : second[i - first.size];
    positions[i] = Word(i);
  }
};

/// One thread a place in the sorted lists: 1 where a run begins. kNoRow is the largest row and begins none.
struct MarkRuns {
  const RowId* rows;
  Word* begins;
  GS_DEV void operator()(Offset i, int) const {
    begins[i] = rows[i] != kNoRow && (i == 0 || rows[i - 1] != rows[i]) ? 1 : 0;
  }
};

/// One thread a sorted place: a run's first one writes the distinct row and its sort key, 2 group + (second list only).
struct TakeDistinct {
  const RowId* rows;
  const Word *positions, *runs;  // runs[i]: 1 + the number of the run
  Owners owners;
  RowId head_rows;
  Offset first_size;
  RowId* distinct;
  Word *keys, *order;
  GS_DEV void operator()(Offset i, int) const {
    const RowId row = rows[i];
    if (row == kNoRow || (i > 0 && rows[i - 1] == row)) return;
    const Word d = runs[i] - 1;
    distinct[d] = row;
    keys[d] = 2 * (row < head_rows ? 0 : 1 + Word(owners.owner(row))) + (positions[i] >= first_size ? 1 : 0);
    order[d] = d;
  }
};

/// One thread a slot: its row, and the inverse of the second sort.
struct PlaceDistinct {
  const RowId* distinct;
  const Word* order;
  Owners owners;
  RowId head_rows;
  RowId *rows, *local_rows;
  Word* slot_of;
  GS_DEV void operator()(Offset slot, int) const {
    const RowId row = distinct[order[slot]];
    rows[slot] = row;
    local_rows[slot] = row < head_rows ? row : owners.local_row(row);
    slot_of[order[slot]] = Word(slot);
  }
};

/// One thread a sorted place: its position's slot, and a count for its group and list. Neighbours mostly have one
/// group: the first of those in a warp adds for all.
struct GiveSlots {
  const RowId* rows;
  const Word *positions, *runs, *slot_of, *keys;
  Span<RowId> first_slots, second_slots;
  Counter* counters;  // [groups, 2]
  GS_DEV void operator()(Offset i, int) const {
    const Word position = positions[i];
    const bool second = position >= first_slots.size;
    const Word slot = rows[i] == kNoRow ? kNoRow : slot_of[runs[i] - 1];
    (second ? second_slots[position - first_slots.size] : first_slots[position]) = slot;
    if (slot == kNoRow) return;
    const Word counter = keys[slot] / 2 * 2 + (second ? 1 : 0);
    const unsigned same = __match_any_sync(__activemask(), counter);
    if (int(threadIdx.x % 32) == __ffs(int(same)) - 1) atomicAdd(counters + counter, Counter(__popc(same)));
  }
};

/// One thread a key: bounds[k] <- the first slot whose key is k or more.
struct FindBounds {
  Span<const Word> keys;
  Offset* bounds;
  GS_DEV void operator()(Offset k, int) const {
    Offset low = 0, high = keys.size;
    while (low < high) {
      const Offset middle = (low + high) / 2;
      if (Offset(keys[middle]) < k) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    bounds[k] = low;
  }
};

class UniqueOnDevice {
 public:
  UniqueOnDevice(const RowLists& lists, const Owners& owners, RowId head_rows, const UniqueRows& out, const Exec& exec)
      : lists_(lists),
        owners_(owners),
        head_rows_(head_rows),
        out_(out),
        exec_(exec),
        positions_(lists.first.size + lists.second.size),
        free_(out.scratch.data),
        free_end_(out.scratch.data + out.scratch.size) {}

  void run(Span<GroupCounts> counts) {
    std::fill(counts.begin(), counts.end(), GroupCounts{});
    if (positions_ == 0) return;
    const int groups = int(counts.size);
    auto* counters = take<Counter>(2 * groups);
    auto* bounds = take<Offset>(2 * groups + 1);
    clear_bytes(counters, 2 * groups * Offset(sizeof(Counter)), exec_);

    // Every kernel's work is queued in the order of the data; names say what a buffer holds after the last one.
    cub::DoubleBuffer<RowId> rows(take<RowId>(positions_), take<RowId>(positions_));
    cub::DoubleBuffer<Word> places(take<Word>(positions_), take<Word>(positions_));
    Word* runs = take<Word>(positions_);
    for_each_flock("unique_rows: join", positions_,
                   JoinLists{lists_.first, lists_.second, rows.Current(), places.Current()}, exec_);
    sort(rows, places, positions_, 32);
    for_each_flock("unique_rows: runs", positions_, MarkRuns{rows.Current(), runs}, exec_);
    const Offset distinct = number_runs(runs);
    GS_EXPECT(distinct <= out_.rows.size, "unique_rows: ", distinct, " distinct rows, out has room for ",
              out_.rows.size);

    RowId* found = take<RowId>(distinct);
    cub::DoubleBuffer<Word> keys(rows.Alternate(), take<Word>(distinct));
    cub::DoubleBuffer<Word> order(places.Alternate(), take<Word>(distinct));
    for_each_flock("unique_rows: distinct", positions_,
                   TakeDistinct{rows.Current(), places.Current(), runs, owners_, head_rows_, lists_.first.size, found,
                                keys.Current(), order.Current()},
                   exec_);
    if (distinct > 0) sort(keys, order, distinct, bits_of(2 * groups));
    Word* slot_of = order.Alternate();
    for_each_flock(
        "unique_rows: rows", distinct,
        PlaceDistinct{found, order.Current(), owners_, head_rows_, out_.rows.data, out_.local_rows.data, slot_of},
        exec_);
    for_each_flock("unique_rows: positions", positions_,
                   GiveSlots{rows.Current(), places.Current(), runs, slot_of, keys.Current(), out_.first_slots,
                             out_.second_slots, counters},
                   exec_);
    for_each_flock("unique_rows: bounds", 2 * groups + 1, FindBounds{{keys.Current(), distinct}, bounds}, exec_);
    read_counts(bounds, counters, counts);
  }

 private:
  template <class T>
  T* take(Offset count) {
    auto* memory = reinterpret_cast<T*>(free_);
    free_ += (count * Offset(sizeof(T)) + 15) / 16 * 16;
    GS_EXPECT(free_ <= free_end_, "unique_rows: ", out_.scratch.size, " bytes of scratch are too few for ", positions_,
              " positions");
    return memory;
  }

  static int bits_of(int values) {
    int bits = 1;
    while ((1 << bits) < values) ++bits;
    return bits;
  }

  /// CUB's two calls: how much it needs, and the work.
  template <class Call>
  void with_temporary(const char* what, const Call& call) {
    std::size_t bytes = 0;
    cudaError_t status = call(nullptr, bytes);
    GS_EXPECT(free_end_ - free_ >= Offset(bytes), "unique_rows: ", what, " needs ", bytes, " bytes of scratch beside ",
              free_ - out_.scratch.data, " of ", out_.scratch.size);
    if (status == cudaSuccess) status = call(free_, bytes);
    if (status != cudaSuccess)
      throw Error(Fault::device, cat("unique_rows: ", what, " of ", positions_, ": ", cudaGetErrorName(status)));
  }

  void sort(cub::DoubleBuffer<Word>& keys, cub::DoubleBuffer<Word>& values, Offset count, int bits) {
    with_temporary("sort", [&](void* memory, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, values, Word(count), 0, bits, stream());
    });
  }

  /// runs <- their inclusive sums; returns the last one.
  Offset number_runs(Word* runs) {
    with_temporary("scan", [&](void* memory, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveSum(memory, bytes, runs, runs, Word(positions_), stream());
    });
    Word last = 0;
    copy_bytes(&last, runs + positions_ - 1, sizeof last, exec_);
    wait(exec_);
    return last;
  }

  void read_counts(const Offset* bounds, const Counter* counters, Span<GroupCounts> counts) {
    std::vector<Offset> first(std::size_t(2 * counts.size + 1));
    std::vector<Counter> positions(std::size_t(2 * counts.size));
    copy_bytes(first.data(), bounds, Offset(first.size() * sizeof(Offset)), exec_);
    copy_bytes(positions.data(), counters, Offset(positions.size() * sizeof(Counter)), exec_);
    wait(exec_);
    for (std::size_t g = 0; g < std::size_t(counts.size); ++g)
      counts[Offset(g)] = {first[2 * g + 2] - first[2 * g], first[2 * g + 1] - first[2 * g], Offset(positions[2 * g]),
                           Offset(positions[2 * g + 1])};
  }

  cudaStream_t stream() const { return static_cast<cudaStream_t>(exec_.stream); }

  const RowLists& lists_;
  Owners owners_;
  RowId head_rows_;
  const UniqueRows& out_;
  const Exec& exec_;
  Offset positions_;
  char *free_, *free_end_;  // of the scratch
};

}  // namespace gs::kernels::GS_BACKEND
