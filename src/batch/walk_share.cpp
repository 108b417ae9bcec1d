#include <algorithm>

#include "graphscale/batch.hpp"

namespace gs {

WalkShare share_of_walks(Offset first, Offset count, int index, int ranks, bool deterministic) {
  WalkShare share;
  if (!deterministic) {
    const Offset begin = count * index / ranks;
    share.first = first + begin;
    share.count = count * (index + 1) / ranks - begin;
    return share;
  }
  const auto slice_begin = [count](Offset slice) { return count * slice / kSlices; };
  const Offset from = Offset(kSlices) * index / ranks, to = Offset(kSlices) * (index + 1) / ranks;
  share.first = first + slice_begin(from);
  share.count = slice_begin(to) - slice_begin(from);
  for (Offset slice = from; slice < to; ++slice) share.slice_ends.push_back(slice_begin(slice + 1) - slice_begin(from));
  return share;
}

Offset most_walks_of_a_rank(Offset step_walks, int ranks, bool deterministic) {
  Offset most = 0;
  for (int rank = 0; rank < ranks; ++rank)
    most = std::max(most, share_of_walks(0, step_walks, rank, ranks, deterministic).count);
  return most;
}

WalkShare share_by_start(const kernels::WalkBatch& step, Offset nodes, int index, int ranks,
                         const std::function<int(RowId)>& owner_of) {
  const Offset most = (step.count + ranks - 1) / ranks;
  std::vector<int> taker(std::size_t(step.count), -1);
  std::vector<Offset> taken(std::size_t(ranks), 0);
  for (Offset i = 0; i < step.count; ++i) {
    const RowId start = start_of_walk(step.seed, step.epoch, std::uint64_t(step.walk(i)), std::uint64_t(nodes));
    const int owner = owner_of(start);
    if (taken[std::size_t(owner)] == most) continue;
    taker[std::size_t(i)] = owner;
    ++taken[std::size_t(owner)];
  }

  WalkShare share;
  int with_room = 0;
  for (Offset i = 0; i < step.count; ++i) {
    int& rank = taker[std::size_t(i)];
    if (rank < 0) {
      while (taken[std::size_t(with_room)] == most) ++with_room;
      rank = with_room;
      ++taken[std::size_t(rank)];
    }
    if (rank == index) share.chosen.push_back(step.walk(i));
  }
  share.first = step.first;
  share.count = Offset(share.chosen.size());
  return share;
}

}  // namespace gs
