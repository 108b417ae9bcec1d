#include <algorithm>
#include <cstring>
#include <numeric>

#include "graphscale/store.hpp"

namespace gs {
namespace {

constexpr Offset kPiece = 1 << 16;  // walkers moved by one call: work for all threads, 1.3 MB
constexpr int kCountBits = 32;      // two counts travel in one number: of news above, of walkers below
constexpr std::uint64_t kCountMask = (std::uint64_t(1) << kCountBits) - 1;

/// The arcs of some rows, copied.
struct LocalArcs {
  LocalArcs(const Csr& graph, const kernels::RowSequence& rows, Offset count) {
    offsets.push_back(0);
    for (Offset i = 0; i < count; ++i) offsets.push_back(offsets.back() + graph.degree(rows[i]));
    targets.reserve(std::size_t(offsets.back()));
    if (!graph.weights.empty()) weights.reserve(std::size_t(offsets.back()));
    for (Offset i = 0; i < count; ++i) {
      const Offset first = graph.offsets[rows[i]], degree = graph.degree(rows[i]);
      targets.insert(targets.end(), graph.targets.data + first, graph.targets.data + first + degree);
      if (!graph.weights.empty())
        weights.insert(weights.end(), graph.weights.data + first, graph.weights.data + first + degree);
    }
  }
  std::vector<Offset> offsets;
  std::vector<RowId> targets;
  std::vector<float> weights;
};

/// Moves the values' bytes to the end of `bytes`.
template <class T>
void append(std::vector<T>& values, std::vector<char>& bytes) {
  const char* const first = reinterpret_cast<const char*>(values.data());
  bytes.insert(bytes.end(), first, first + values.size() * sizeof(T));
  values.clear();
}

/// The value at `at`, which then points behind it.
template <class T>
T take(const char*& at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

}  // namespace

/// What one step sends to every rank.
struct PartitionedTopology::Mail {
  explicit Mail(int ranks) : travellers(std::size_t(ranks)), news(std::size_t(ranks)) {}
  std::vector<std::vector<Traveller>> travellers;  // [ranks]
  std::vector<std::vector<News>> news;
  std::vector<char> outgoing, incoming;
};

PartitionedTopology::PartitionedTopology(const Csr& graph, const WalkRule& rule, const Placement& placement,
                                         Comm& comm, const Exec& exec)
    : placement_(placement),
      owners_(placement.owners()),
      comm_(comm),
      exec_(exec),
      walkers_(*exec.ledger, kPiece, "graph: walkers"),
      next_(*exec.ledger, kPiece, "graph: walkers") {
  const int owner = placement.owner_index(comm.rank());
  if (owner >= 0) own_rows_ = placement.sequence_of(owner);
  const LocalArcs own(graph, own_rows_, owner >= 0 ? placement.rows_of(owner) : 0);
  local_ = std::make_unique<WalkTopology>(Csr{own.offsets, own.targets, own.weights, graph.directed}, rule, exec);
}

Offset PartitionedTopology::bytes(Offset local_rows, Offset local_arcs, const WalkRule& rule) {
  return WalkTopology::bytes(local_rows, local_arcs, rule) + walker_bytes();
}

Offset PartitionedTopology::walker_bytes() { return kPiece * Offset(sizeof(kernels::Walker) + sizeof(RowId)); }

/// Where each rank's batch lies in that of all, and from which walk on they count.
void PartitionedTopology::agree(const kernels::WalkBatch& batch) {
  constexpr Offset kNoWalk = -1;
  Offset least = kNoWalk, most = kNoWalk;
  for (Offset i = 0; i < batch.count; ++i) {
    const Offset walk = batch.walk(i);
    least = i == 0 ? walk : std::min(least, walk);
    most = std::max(most, walk);
  }
  const auto ranks = std::size_t(comm_.size());
  const std::vector<Offset> counts = comm_.exchange_counts(std::vector<Offset>(ranks, batch.count));
  const std::vector<Offset> leasts = comm_.exchange_counts(std::vector<Offset>(ranks, least));
  first_place_.assign(1, 0);
  least_walk_ = kNoWalk;
  for (std::size_t r = 0; r < ranks; ++r) {
    first_place_.push_back(first_place_.back() + counts[r]);
    if (leasts[r] != kNoWalk && (least_walk_ == kNoWalk || leasts[r] < least_walk_)) least_walk_ = leasts[r];
  }
  GS_EXPECT(first_place_.back() <= Offset(kCountMask) && most - least_walk_ <= Offset(kCountMask),
            "walkers: ", first_place_.back(), " walks at once, up to ", most - least_walk_,
            " after the first: both must be below 2^32; lower training.step_walks");
}

/// Sends every walker of this rank to its start.
void PartitionedTopology::start(const kernels::WalkBatch& batch, Mail& mail) const {
  const auto rows = std::uint64_t(placement_.rows());
  const Offset first_place = first_place_[std::size_t(comm_.rank())];
  for (Offset i = 0; i < batch.count; ++i) {
    const Offset walk = batch.walk(i);
    const RowId at = start_of_walk(batch.seed, batch.epoch, std::uint64_t(walk), rows);
    const auto to = std::size_t(rank_of(at));
    mail.travellers[to].push_back(
        {std::uint32_t(first_place + i), std::uint32_t(walk - least_walk_), owners_.local_row(at)});
    if (int(to) != comm_.rank()) mail.news[std::size_t(comm_.rank())].push_back({std::uint32_t(i), at});
  }
}

/// next_here_ <- where the walkers here go.
void PartitionedTopology::move(const kernels::WalkBatch& batch, std::uint32_t step) {
  const auto count = Offset(here_.size());
  next_here_.resize(here_.size());
  std::vector<kernels::Walker> piece;
  for (Offset first = 0; first < count; first += kPiece) {
    const Offset size = std::min(kPiece, count - first);
    piece.clear();
    for (Offset i = first; i < first + size; ++i) {
      const Traveller& walker = here_[std::size_t(i)];
      piece.push_back({least_walk_ + walker.walk, walker.local_row, step});
    }
    copy_bytes(walkers_.data(), piece.data(), size * Offset(sizeof(kernels::Walker)), exec_);
    kernels::ops(exec_).move_walkers(local_->view(), batch, walkers_.span().subspan(0, size),
                                     next_.span().subspan(0, size), exec_);
    copy_bytes(next_here_.data() + first, next_.data(), size * Offset(sizeof(RowId)), exec_);
    wait(exec_);
  }
}

/// Moves the walkers here by one node. After the last step nobody travels, and homes are told all.
void PartitionedTopology::step(const kernels::WalkBatch& batch, std::uint32_t step, Mail& mail) {
  move(batch, step);
  const bool goes_on = int(step) + 1 < batch.length;
  for (std::size_t i = 0; i < here_.size(); ++i) {
    const RowId next = next_here_[i];
    if (next == kNoRow) continue;  // the walk's nodes say so from the start
    const Traveller& walker = here_[i];
    const auto after = std::upper_bound(first_place_.begin(), first_place_.end(), Offset(walker.place));
    const auto home = std::size_t(after - first_place_.begin()) - 1, to = std::size_t(rank_of(next));
    if (goes_on) mail.travellers[to].push_back({walker.place, walker.walk, owners_.local_row(next)});
    if (!goes_on || to != home) mail.news[home].push_back({std::uint32_t(walker.place - first_place_[home]), next});
  }
}

/// Exchanges the mail, which is then empty. here_ <- the walkers that came; nodes <- what they and the news tell.
void PartitionedTopology::deliver(const kernels::WalkBatch& batch, std::uint32_t step, Mail& mail, Span<RowId> nodes) {
  const auto ranks = std::size_t(comm_.size());
  std::vector<Offset> counts(ranks), out_bytes(ranks), in_bytes(ranks);
  mail.outgoing.clear();
  for (std::size_t r = 0; r < ranks; ++r) {
    counts[r] = Offset(mail.news[r].size() << kCountBits | mail.travellers[r].size());
    const std::size_t before = mail.outgoing.size();
    append(mail.travellers[r], mail.outgoing);
    append(mail.news[r], mail.outgoing);
    out_bytes[r] = Offset(mail.outgoing.size() - before);
  }
  counts = comm_.exchange_counts(counts);
  const auto travellers_in = [](Offset count) { return Offset(std::uint64_t(count) & kCountMask); };
  const auto news_in = [](Offset count) { return Offset(std::uint64_t(count) >> kCountBits); };
  for (std::size_t r = 0; r < ranks; ++r)
    in_bytes[r] = travellers_in(counts[r]) * Offset(sizeof(Traveller)) + news_in(counts[r]) * Offset(sizeof(News));
  mail.incoming.resize(std::size_t(std::accumulate(in_bytes.begin(), in_bytes.end(), Offset(0))));
  comm_.all_to_all(mail.outgoing.data(), out_bytes, mail.incoming.data(), in_bytes);

  here_.clear();
  const Offset first = first_place_[std::size_t(comm_.rank())];
  const char* at = mail.incoming.data();
  for (const Offset count : counts) {
    for (Offset i = 0; i < travellers_in(count); ++i) {
      const auto walker = take<Traveller>(at);
      here_.push_back(walker);
      const Offset place = Offset(walker.place) - first;
      if (place >= 0 && place < batch.count) nodes[place * batch.length + step] = own_rows_[walker.local_row];
    }
    for (Offset i = 0; i < news_in(count); ++i) {
      const auto news = take<News>(at);
      nodes[Offset(news.place) * batch.length + step] = news.node;
    }
  }
}

void PartitionedTopology::make_walks(const kernels::WalkBatch& batch, Span<RowId> nodes) {
  GS_EXPECT(nodes.size == batch.count * batch.length, "walkers: ", nodes.size, " places for ", batch.count,
            " walks of ", batch.length);
  const bool on_device = exec_.device.is_cuda();
  std::vector<RowId> copy(on_device ? std::size_t(nodes.size) : 0);
  const Span<RowId> host = on_device ? Span<RowId>(copy) : nodes;
  std::fill(host.begin(), host.end(), kNoRow);

  agree(batch);
  Mail mail(comm_.size());
  start(batch, mail);
  deliver(batch, 0, mail, host);
  for (int place = 1; place < batch.length; ++place) {
    step(batch, std::uint32_t(place), mail);
    deliver(batch, std::uint32_t(place), mail, host);
  }
  if (on_device) {
    copy_bytes(nodes.data, host.data, host.size * Offset(sizeof(RowId)), exec_);
    wait(exec_);
  }
}

}  // namespace gs
