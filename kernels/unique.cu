// slots[p] = the place of rows[p] among the distinct rows of two lists, which are grouped by owner.
//
// CPU: one thread and a hash table; 1 M positions at 48, 59, 115 M/s where 95, 63, 22 % of them are distinct. CUDA: two
// radix sorts, by row and then by group: see unique_cuda.hpp.
#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/exec.hpp"
#include "kernels/ops.hpp"

#if defined(__CUDACC__)
#include "kernels/unique_cuda.hpp"
#endif

namespace gs::kernels::GS_BACKEND {

#if !defined(__CUDACC__)

/// The distinct rows of a slice and their numbers: open addressing, linear probes, at most half full. The table starts
/// small and grows fourfold, so that it stays in cache where rows repeat.
class FoundRows {
 public:
  /// capacity: rows of all slices; scratch: as unique_scratch_bytes says.
  FoundRows(Offset capacity, Span<char> scratch)
      : entries_(reinterpret_cast<Entry*>(scratch.data)),
        most_entries_((scratch.size - capacity * Offset(sizeof(RowId))) / Offset(sizeof(Entry))),
        rows_(reinterpret_cast<RowId*>(entries_ + most_entries_), capacity) {}

  Span<const RowId> rows() const { return rows_.subspan(0, count_); }  ///< of all slices, as they were found
  Offset count() const { return count_; }

  void start_slice() {
    slice_begin_ = count_;
    resize(std::min<Offset>(kFirstEntries, most_entries_));
  }

  /// numbers[i] <- the place of rows[i] among the found rows; kNoRow of kNoRow.
  void find(Span<const RowId> rows, RowId* numbers) {
    const Offset ahead_end = rows.size - kAhead;
    for (Offset i = 0; i < rows.size; ++i) {
      if (i < ahead_end) prefetch(&entries_[home(rows[i + kAhead])]);
      numbers[i] = rows[i] == kNoRow ? kNoRow : number_of(rows[i]);
    }
  }

 private:
  struct Entry {
    RowId row, number;  // row kNoRow: empty
  };
  static constexpr Offset kFirstEntries = 1 << 12;  // 32 KiB
  static constexpr Offset kAhead = 16;              // 8 to 32 measure alike

  Offset home(RowId row) const { return Offset(row * 0x9E3779B97F4A7C15ull >> shift_); }

  Entry& entry_of(RowId row) const {
    Offset i = home(row);
    while (entries_[i].row != row && entries_[i].row != kNoRow) i = (i + 1) & mask_;
    return entries_[i];
  }

  RowId number_of(RowId row) {
    Entry* entry = &entry_of(row);
    if (entry->row == row) return entry->number;
    GS_EXPECT(count_ < rows_.size, "unique_rows: more distinct rows than the ", rows_.size, " that out has room for");
    if (2 * (count_ - slice_begin_ + 1) > mask_ + 1) {
      resize(std::min<Offset>(4 * (mask_ + 1), most_entries_));
      entry = &entry_of(row);
    }
    *entry = {row, RowId(count_)};
    rows_[count_] = row;
    return RowId(count_++);
  }

  void resize(Offset entries) {
    mask_ = entries - 1;
    shift_ = 64 - std::countr_zero(std::uint64_t(entries));
    std::memset(static_cast<void*>(entries_), 0xFF, std::size_t(entries) * sizeof(Entry));
    for (Offset i = slice_begin_; i < count_; ++i) {
      if (i + kAhead < count_) prefetch(&entries_[home(rows_[i + kAhead])]);
      entry_of(rows_[i]) = {rows_[i], RowId(i)};
    }
  }

  Entry* entries_;
  Offset most_entries_;
  Span<RowId> rows_;
  Offset mask_ = 0, count_ = 0, slice_begin_ = 0;
  int shift_ = 63;
};

/// Where a found row goes.
struct Place {
  RowId slot;
  std::uint32_t group;
};

/// places[i] <- of found row i: groups in order, first_found rows before others, else as they were found.
void place_rows(Span<const RowId> found, Offset first_found, const Owners& owners, RowId head_rows,
                Span<GroupCounts> counts, Span<Place> places) {
  for (Offset i = 0; i < found.size; ++i) {
    const std::uint32_t group = found[i] < head_rows ? 0 : 1 + std::uint32_t(owners.owner(found[i]));
    places[i].group = group;
    ++counts[group].rows;
    if (i < first_found) ++counts[group].first_rows;
  }

  struct Next {
    Offset first, other;
  };
  std::vector<Next> next;
  Offset slot = 0;
  for (const GroupCounts& group : counts) {
    next.push_back({slot, slot + group.first_rows});
    slot += group.rows;
  }
  for (Offset i = 0; i < found.size; ++i) {
    Next& of = next[places[i].group];
    places[i].slot = RowId(i < first_found ? of.first++ : of.other++);
  }
}

/// numbers[p] <- the slot of the row that had this number.
void give_slots(Span<RowId> numbers, Span<const Place> places, Span<GroupCounts> counts,
                Offset GroupCounts::*positions) {
  for (RowId& number : numbers) {
    if (number == kNoRow) continue;
    const Place place = places[number];
    number = place.slot;
    ++(counts[place.group].*positions);
  }
}

void unique_on_host(const RowLists& lists, const Owners& owners, RowId head_rows, const UniqueRows& out,
                    Span<GroupCounts> counts) {
  const std::size_t slices = std::max<std::size_t>(1, lists.first_ends.size());
  const Offset capacity = out.rows.size, bytes = unique_scratch_bytes(0, capacity, false);
  FoundRows found(capacity, out.scratch.subspan(0, bytes));
  Offset first_found = 0, first = 0, second = 0;
  for (std::size_t s = 0; s < slices; ++s) {
    const Offset first_end = lists.first_ends.empty() ? lists.first.size : lists.first_ends[s];
    const Offset second_end = lists.first_ends.empty() ? lists.second.size : lists.second_ends[s];
    found.start_slice();
    found.find(lists.first.subspan(first, first_end - first), out.first_slots.data + first);
    first_found = found.count();
    found.find(lists.second.subspan(second, second_end - second), out.second_slots.data + second);
    first = first_end, second = second_end;
  }
  if (!lists.first_ends.empty()) first_found = found.count();

  // The hash table is not needed any more: the places take its memory.
  const Span<Place> places(reinterpret_cast<Place*>(out.scratch.data), found.count());
  std::fill(counts.begin(), counts.end(), GroupCounts{});
  place_rows(found.rows(), first_found, owners, head_rows, counts, places);
  for (Offset i = 0; i < found.count(); ++i) {
    const RowId row = found.rows()[i];
    out.rows[places[i].slot] = row;
    out.local_rows[places[i].slot] = row < head_rows ? row : owners.local_row(row);
  }
  give_slots(out.first_slots, places, counts, &GroupCounts::first_positions);
  give_slots(out.second_slots, places, counts, &GroupCounts::second_positions);
}

#endif

void check_slices(const RowLists& lists) {
  GS_EXPECT(lists.first_ends.size() == lists.second_ends.size(), "unique_rows: ", lists.first_ends.size(),
            " slices of the first list and ", lists.second_ends.size(), " of the second");
  for (const auto& [ends, size] :
       {std::pair(&lists.first_ends, lists.first.size), {&lists.second_ends, lists.second.size}})
    GS_EXPECT(
        ends->empty() || (std::is_sorted(ends->begin(), ends->end()) && ends->front() >= 0 && ends->back() == size),
        "unique_rows: slices do not divide a list of ", size);
}

void unique_rows(const RowLists& lists, const Owners& owners, RowId head_rows, const UniqueRows& out,
                 Span<GroupCounts> counts, const Exec& exec) {
  const Offset positions = lists.first.size + lists.second.size, capacity = out.rows.size;
  const Offset scratch = unique_scratch_bytes(positions, capacity, exec.device.is_cuda());
  GS_EXPECT(positions < Offset(kNoRow), "unique_rows: ", positions, " positions: a slot has 32 bits");
  GS_EXPECT(out.local_rows.size == capacity, "unique_rows: room for ", capacity, " rows and ", out.local_rows.size,
            " local rows");
  GS_EXPECT(out.first_slots.size == lists.first.size && out.second_slots.size == lists.second.size,
            "unique_rows: ", out.first_slots.size, " and ", out.second_slots.size, " slots for lists of ",
            lists.first.size, " and ", lists.second.size);
  GS_EXPECT(head_rows >= owners.first, "unique_rows: a head of ", head_rows, " rows, and ", owners.first,
            " rows have no owner");
  GS_EXPECT(counts.size == 1 + owners.count, "unique_rows: ", counts.size, " counts for the head and ", owners.count,
            " owners");
  GS_EXPECT(out.scratch.size >= scratch, "unique_rows: ", out.scratch.size, " bytes of scratch, ", scratch, " needed");
  check_slices(lists);
#if defined(__CUDACC__)
  GS_EXPECT(lists.first_ends.empty(), "unique_rows: slices are for one writer in order, which a GPU is not");
  UniqueOnDevice(lists, owners, head_rows, out, exec).run(counts);
#else
  unique_on_host(lists, owners, head_rows, out, counts);
#endif
}

}  // namespace gs::kernels::GS_BACKEND
