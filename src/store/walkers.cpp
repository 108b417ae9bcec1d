#include <algorithm>
#include <cstring>
#include <numeric>

#include "graphscale/store.hpp"

namespace gs {
namespace {

/// Walkers moved by one call: work for all threads, below 2 MB.
constexpr Offset piece_of(bool second_order) { return second_order ? 1 << 13 : 1 << 16; }

constexpr int kCountBits = 32;  // two counts travel in one number: of news above, of walkers below
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

/// What every rank sent, in the order of ranks.
template <class T>
std::vector<T> exchange(Comm& comm, const std::vector<T>& send, const std::vector<Offset>& counts_out,
                        const std::vector<Offset>& counts_in) {
  std::vector<Offset> bytes_out(counts_out), bytes_in(counts_in);
  for (Offset& bytes : bytes_out) bytes *= Offset(sizeof(T));
  for (Offset& bytes : bytes_in) bytes *= Offset(sizeof(T));
  std::vector<T> received(std::size_t(std::accumulate(counts_in.begin(), counts_in.end(), Offset(0))));
  comm.all_to_all(send.data(), bytes_out, received.data(), bytes_in);
  return received;
}

/// Lists for every rank as one, and how long each is.
template <class T>
struct Joined {
  explicit Joined(const std::vector<std::vector<T>>& lists) {
    for (const std::vector<T>& list : lists) {
      counts.push_back(Offset(list.size()));
      values.insert(values.end(), list.begin(), list.end());
    }
  }
  std::vector<T> values;
  std::vector<Offset> counts;
};

/// Host values into a buffer of exec's device, for as long as a step takes.
template <class T>
Buffer<T> upload(const std::vector<T>& values, const Exec& exec) {
  Buffer<T> buffer(*exec.ledger, Offset(values.size()), "graph: asked of others");
  copy_bytes(buffer.data(), values.data(), buffer.size() * Offset(sizeof(T)), exec);
  return buffer;
}

template <class T>
void download(const Buffer<T>& buffer, T* values, Offset count, const Exec& exec) {
  copy_bytes(values, buffer.data(), count * Offset(sizeof(T)), exec);
  wait(exec);
}

}  // namespace

/// What one step sends to every rank.
struct PartitionedTopology::Mail {
  explicit Mail(int ranks) : travellers(std::size_t(ranks)), origins(std::size_t(ranks)), news(std::size_t(ranks)) {}
  std::vector<std::vector<Traveller>> travellers;  // [ranks]
  std::vector<std::vector<Origin>> origins;        // of travellers of second order
  std::vector<std::vector<News>> news;
  std::vector<char> outgoing, incoming;
};

PartitionedTopology::PartitionedTopology(const Csr& graph, const WalkRule& rule, const Placement& placement, Comm& comm,
                                         const Exec& exec)
    : placement_(placement),
      owners_(placement.owners()),
      comm_(comm),
      exec_(exec),
      second_order_(rule.second_order()),
      walkers_(*exec.ledger, piece_of(second_order_), "graph: walkers"),
      next_(*exec.ledger, piece_of(second_order_), "graph: walkers") {
  if (second_order_) {
    moves_ = {*exec.ledger, walkers_.size(), "graph: walkers"};
    asked_ = {*exec.ledger, walkers_.size() * kernels::kWalkTries, "graph: walkers"};
  }
  const int owner = placement.owner_index(comm.rank());
  if (owner >= 0) own_rows_ = placement.sequence_of(owner);
  const LocalArcs own(graph, own_rows_, owner >= 0 ? placement.rows_of(owner) : 0);
  local_ = std::make_unique<WalkTopology>(Csr{own.offsets, own.targets, own.weights, graph.directed}, rule, exec);
}

Offset PartitionedTopology::bytes(Offset local_rows, Offset local_arcs, const WalkRule& rule) {
  return WalkTopology::bytes(local_rows, local_arcs, rule) + walker_bytes(rule);
}

Offset PartitionedTopology::walker_bytes(const WalkRule& rule) {
  const std::size_t asked = rule.second_order() ? sizeof(kernels::Move) + kernels::kWalkTries * sizeof(RowId) : 0;
  return piece_of(rule.second_order()) * Offset(sizeof(kernels::Walker) + sizeof(RowId) + asked);
}

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
    if (second_order_) mail.origins[to].push_back({});
    if (int(to) != comm_.rank()) mail.news[std::size_t(comm_.rank())].push_back({std::uint32_t(i), at});
  }
}

kernels::Walker PartitionedTopology::walker(std::size_t i, std::uint32_t step) const {
  kernels::Walker walker{least_walk_ + here_[i].walk, here_[i].local_row, step};
  if (second_order_) walker.from = origins_[i].from, walker.from_degree = origins_[i].degree;
  return walker;
}

/// The walkers here from `first` on, as many as a piece holds.
Span<kernels::Walker> PartitionedTopology::upload_walkers(Offset first, std::uint32_t step) {
  const Offset count = std::min(walkers_.size(), Offset(here_.size()) - first);
  std::vector<kernels::Walker> piece;
  for (Offset i = first; i < first + count; ++i) piece.push_back(walker(std::size_t(i), step));
  copy_bytes(walkers_.data(), piece.data(), count * Offset(sizeof(kernels::Walker)), exec_);
  wait(exec_);
  return walkers_.span().subspan(0, count);
}

/// next_here_ <- where the walkers here go.
void PartitionedTopology::move(const kernels::WalkBatch& batch, std::uint32_t step) {
  next_here_.resize(here_.size());
  for (Offset first = 0; first < Offset(here_.size()); first += walkers_.size()) {
    const Span<kernels::Walker> walkers = upload_walkers(first, step);
    kernels::ops(exec_).move_walkers(local_->view(), batch, walkers, next_.span().subspan(0, walkers.size), exec_);
    download(next_, next_here_.data() + first, walkers.size, exec_);
  }
}

/// The same by second order: two questions and answers, whatever the walkers draw.
void PartitionedTopology::move_by_second_order(const kernels::WalkBatch& batch, std::uint32_t step) {
  next_here_.resize(here_.size()), degrees_.resize(here_.size());
  std::vector<kernels::Move> moves(here_.size());
  std::vector<std::vector<kernels::ArcQuestion>> questions(std::size_t(comm_.size()));
  std::vector<RowId> asked(std::size_t(asked_.size()));
  for (Offset first = 0; first < Offset(here_.size()); first += walkers_.size()) {
    const Span<kernels::Walker> walkers = upload_walkers(first, step);
    kernels::ops(exec_).propose_moves(local_->view(), batch, walkers, moves_.span().subspan(0, walkers.size),
                                      asked_.span().subspan(0, walkers.size * kernels::kWalkTries), exec_);
    download(moves_, moves.data() + first, walkers.size, exec_);
    download(asked_, asked.data(), walkers.size * kernels::kWalkTries, exec_);
    for (Offset i = 0; i < walkers.size; ++i) {
      const RowId from = origins_[std::size_t(first + i)].from;
      for (Offset k = 0; k < moves[std::size_t(first + i)].asked; ++k)
        questions[std::size_t(rank_of(from))].push_back(
            {owners_.local_row(from), asked[std::size_t(i * kernels::kWalkTries + k)]});
    }
  }

  const std::vector<std::vector<std::uint8_t>> found = ask(questions);
  std::vector<std::size_t> read(std::size_t(comm_.size()), 0), open;
  const bool takes_near = local_->view().takes_near();
  for (std::size_t i = 0; i < here_.size(); ++i) {
    next_here_[i] = moves[i].next, degrees_[i] = moves[i].degree;
    bool is_open = moves[i].is_open;
    if (moves[i].asked > 0) {
      const auto rank = std::size_t(rank_of(origins_[i].from));
      const std::size_t first = read[rank], last = read[rank] += moves[i].asked;
      for (std::size_t k = first; k < last; ++k) {
        if ((found[rank][k] != 0) != takes_near) continue;
        next_here_[i] = questions[rank][k].target, is_open = false;
        break;
      }
    }
    if (is_open) open.push_back(i);
  }
  draw_exactly(batch, step, open);
}

/// The answers of every rank to its questions.
std::vector<std::vector<std::uint8_t>> PartitionedTopology::ask(
    const std::vector<std::vector<kernels::ArcQuestion>>& questions) {
  const Joined<kernels::ArcQuestion> out(questions);
  const std::vector<Offset> counts = comm_.exchange_counts(out.counts);
  const Buffer<kernels::ArcQuestion> asked = upload(exchange(comm_, out.values, out.counts, counts), exec_);
  std::vector<std::uint8_t> answers(std::size_t(asked.size()));
  const Buffer<std::uint8_t> found = upload(answers, exec_);
  kernels::ops(exec_).find_arcs(local_->view(), asked.span(), found.span(), exec_);
  download(found, answers.data(), found.size(), exec_);

  const std::vector<std::uint8_t> back = exchange(comm_, answers, counts, out.counts);
  std::vector<std::vector<std::uint8_t>> parts;
  auto at = back.begin();
  for (const Offset count : out.counts) parts.emplace_back(at, at + count), at += count;
  return parts;
}

/// Targets of local rows, one list after another, and how long each is.
void PartitionedTopology::read_targets(const std::vector<RowId>& rows, std::vector<Offset>& sizes,
                                       std::vector<RowId>& targets) const {
  const kernels::WalkGraph graph = local_->view();
  std::vector<Offset> ends(2 * rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    copy_bytes(&ends[2 * i], graph.offsets.data + rows[i], 2 * Offset(sizeof(Offset)), exec_);
  wait(exec_);
  for (std::size_t i = 0; i < rows.size(); ++i) sizes.push_back(ends[2 * i + 1] - ends[2 * i]);
  targets.resize(std::size_t(std::accumulate(sizes.begin(), sizes.end(), Offset(0))));
  RowId* to = targets.data();
  for (std::size_t i = 0; i < rows.size(); to += sizes[i++])
    copy_bytes(to, graph.targets.data + ends[2 * i], sizes[i] * Offset(sizeof(RowId)), exec_);
  wait(exec_);
}

/// next_here_ of the open walkers, by the lists of the nodes they come from.
void PartitionedTopology::draw_exactly(const kernels::WalkBatch& batch, std::uint32_t step,
                                       const std::vector<std::size_t>& open) {
  std::vector<std::vector<RowId>> wanted(std::size_t(comm_.size()));
  const auto from = [&](std::size_t i) { return origins_[i].from; };
  for (const std::size_t i : open) wanted[std::size_t(rank_of(from(i)))].push_back(owners_.local_row(from(i)));
  for (std::vector<RowId>& rows : wanted) {
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  }
  const Joined<RowId> out(wanted);
  const std::vector<Offset> counts = comm_.exchange_counts(out.counts);
  const std::vector<RowId> asked = exchange(comm_, out.values, out.counts, counts);
  std::vector<Offset> sizes;
  std::vector<RowId> targets;
  read_targets(asked, sizes, targets);
  const auto sums = [](const std::vector<Offset>& values, const std::vector<Offset>& parts) {
    std::vector<Offset> sums;
    auto at = values.begin();
    for (const Offset part : parts) sums.push_back(std::accumulate(at, at + part, Offset(0))), at += part;
    return sums;
  };
  const std::vector<Offset> sizes_here = exchange(comm_, sizes, counts, out.counts);
  const std::vector<RowId> listed = exchange(comm_, targets, sums(sizes, counts), sums(sizes_here, out.counts));
  if (open.empty()) return;

  std::vector<Offset> first_list(1, 0), start(1, 0), lists;  // of each rank, of each list
  for (const Offset count : out.counts) first_list.push_back(first_list.back() + count);
  for (const Offset size : sizes_here) start.push_back(start.back() + size);
  std::vector<kernels::Walker> walkers;
  for (const std::size_t i : open) {
    const auto rank = std::size_t(rank_of(from(i)));
    const std::vector<RowId>& rows = wanted[rank];
    const auto list = std::size_t(
        first_list[rank] + (std::lower_bound(rows.begin(), rows.end(), owners_.local_row(from(i))) - rows.begin()));
    lists.push_back(start[list]), lists.push_back(sizes_here[list]);
    walkers.push_back(walker(i, step));
  }
  std::vector<RowId> next(open.size());
  const auto walkers_there = upload(walkers, exec_);
  const auto lists_there = upload(lists, exec_);
  const auto listed_there = upload(listed, exec_), next_there = upload(next, exec_);
  kernels::ops(exec_).draw_moves(local_->view(), batch, walkers_there.span(), lists_there.span(), listed_there.span(),
                                 next_there.span(), exec_);
  download(next_there, next.data(), next_there.size(), exec_);
  for (std::size_t k = 0; k < open.size(); ++k) next_here_[open[k]] = next[k];
}

/// Moves the walkers here by one node. After the last step nobody travels, and homes are told all.
void PartitionedTopology::step(const kernels::WalkBatch& batch, std::uint32_t step, Mail& mail) {
  if (second_order_) {
    move_by_second_order(batch, step);
  } else {
    move(batch, step);
  }
  const bool goes_on = int(step) + 1 < batch.length;
  for (std::size_t i = 0; i < here_.size(); ++i) {
    const RowId next = next_here_[i];
    if (next == kNoRow) continue;  // the walk's nodes say so from the start
    const Traveller& walker = here_[i];
    const auto after = std::upper_bound(first_place_.begin(), first_place_.end(), Offset(walker.place));
    const auto home = std::size_t(after - first_place_.begin()) - 1, to = std::size_t(rank_of(next));
    if (goes_on) mail.travellers[to].push_back({walker.place, walker.walk, owners_.local_row(next)});
    if (goes_on && second_order_) mail.origins[to].push_back({own_rows_[walker.local_row], degrees_[i]});
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
    append(mail.origins[r], mail.outgoing);
    append(mail.news[r], mail.outgoing);
    out_bytes[r] = Offset(mail.outgoing.size() - before);
  }
  counts = comm_.exchange_counts(counts);
  const auto travellers_in = [](Offset count) { return Offset(std::uint64_t(count) & kCountMask); };
  const auto news_in = [](Offset count) { return Offset(std::uint64_t(count) >> kCountBits); };
  const auto traveller_bytes = Offset(sizeof(Traveller) + (second_order_ ? sizeof(Origin) : 0));
  for (std::size_t r = 0; r < ranks; ++r)
    in_bytes[r] = travellers_in(counts[r]) * traveller_bytes + news_in(counts[r]) * Offset(sizeof(News));
  mail.incoming.resize(std::size_t(std::accumulate(in_bytes.begin(), in_bytes.end(), Offset(0))));
  comm_.all_to_all(mail.outgoing.data(), out_bytes, mail.incoming.data(), in_bytes);

  here_.clear(), origins_.clear();
  const Offset first = first_place_[std::size_t(comm_.rank())];
  const char* at = mail.incoming.data();
  for (const Offset count : counts) {
    for (Offset i = 0; i < travellers_in(count); ++i) {
      const auto walker = take<Traveller>(at);
      here_.push_back(walker);
      const Offset place = Offset(walker.place) - first;
      if (place >= 0 && place < batch.count) nodes[place * batch.length + step] = own_rows_[walker.local_row];
    }
    for (Offset i = 0; second_order_ && i < travellers_in(count); ++i) origins_.push_back(take<Origin>(at));
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
