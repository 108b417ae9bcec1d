// Ranks that are threads of one process: each copies its parts straight from the senders' memory.
#include <algorithm>
#include <condition_variable>
#include <cstring>

#include "graphscale/exchange.hpp"

#include "src/exchange/failures.hpp"
#include "src/exchange/patience.hpp"

namespace gs {
namespace {

using Parts = std::vector<Span<char>>;
using ConstParts = std::vector<Span<const char>>;

/// Where the ranks of one group meet, twice a call: when all have shown their parts, and when all have copied theirs.
class Meeting {
 public:
  Meeting(int size, double timeout_s)
      : patience_(timeout_s), parts_(std::size_t(size)), here_(std::size_t(size)), ended_(std::size_t(size)) {}

  /// Shows what this rank sends and returns when every rank has. Throws comm.
  void open_call(int rank, const ConstParts& send) {
    std::unique_lock lock(mutex_);
    if (!failure_.empty()) throw Error(Fault::comm, failure_);
    parts_[std::size_t(rank)] = &send;
    const Offset round = arrive(rank, lock);
    while (round_ == round) {  // before the failures: a round that was full is a call that takes place, on every rank
      for (std::size_t r = 0; r < here_.size(); ++r)
        if (failure_.empty() && ended_[r] && !here_[r]) failure_ = ended_sentence(int(r));
      if (failure_.empty() && patience_.over()) failure_ = silent_sentence(missing(), patience_.timeout_s());
      if (!failure_.empty()) {
        lock.unlock();
        changed_.notify_all();
        throw Error(Fault::comm, failure_);
      }
      changed_.wait_for(lock, std::chrono::duration<double>(patience_.pause_s()));
    }
  }

  /// What `from` sends in this call; between open_call and close_call.
  const ConstParts& parts_from(int from) const { return *parts_[std::size_t(from)]; }

  /// Returns when every rank has copied its parts. No failure ends it: the senders' memory is in use, and all that the
  /// others still do is copy.
  void close_call(int rank) {
    std::unique_lock lock(mutex_);
    const Offset round = arrive(rank, lock);
    while (round_ == round) changed_.wait(lock);
  }

  void throw_failure() {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw Error(Fault::comm, failure_);
  }

  void fail(const std::string& sentence) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_.empty()) failure_ = sentence;
    }
    changed_.notify_all();
  }

  void end(int rank) {
    {
      const std::lock_guard lock(mutex_);
      ended_[std::size_t(rank)] = true;
    }
    changed_.notify_all();
  }

 private:
  /// The round that this rank came to, which is over at once where it was the last to come.
  Offset arrive(int rank, std::unique_lock<std::mutex>& lock) {
    const Offset round = round_;
    here_[std::size_t(rank)] = true;
    patience_.restart();
    if (std::find(here_.begin(), here_.end(), false) == here_.end()) {
      here_.assign(here_.size(), false);
      ++round_;
      lock.unlock();
      changed_.notify_all();
      lock.lock();
    }
    return round;
  }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (std::size_t r = 0; r < here_.size(); ++r)
      if (!here_[r]) ranks.push_back(int(r));
    return ranks;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Patience patience_;  // since the last arrival
  std::vector<const ConstParts*> parts_;
  std::vector<bool> here_, ended_;
  Offset round_ = 0;
  std::string failure_;  // the first; every later call throws it
};

class LocalComm : public Comm {
 public:
  LocalComm(int rank, int size, std::shared_ptr<Meeting> meeting) : Comm(rank, size), meeting_(std::move(meeting)) {}
  ~LocalComm() override { meeting_->end(rank()); }

  const char* transport() const override { return "local"; }
  void abort(const std::string& reason) noexcept override { meeting_->fail(left_sentence(rank(), reason)); }
  void notice() override { meeting_->throw_failure(); }

 private:
  void exchange(const ConstParts& send, const Parts& receive) override {
    meeting_->open_call(rank(), send);
    std::string mismatch;
    for (int step = 1; step < size(); ++step) {  // each starts at another sender
      const int from = (rank() + step) % size();
      const Span<const char> part = meeting_->parts_from(from)[std::size_t(rank())];
      const Span<char> into = receive[std::size_t(from)];
      if (part.size != into.size) {
        mismatch = mismatch_sentence(from, rank(), part.size, into.size);
      } else if (part.size > 0) {
        std::memcpy(into.data, part.data, std::size_t(part.size));
      }
    }
    meeting_->close_call(rank());
    if (mismatch.empty()) return;
    meeting_->fail(mismatch);
    throw Error(Fault::comm, mismatch);
  }

  std::shared_ptr<Meeting> meeting_;
};

}  // namespace

std::vector<std::unique_ptr<Comm>> open_local(int size, double timeout_s) {
  GS_EXPECT(size >= 1, "open_local: ", size, " ranks");
  const auto meeting = std::make_shared<Meeting>(size, timeout_s);
  std::vector<std::unique_ptr<Comm>> ends;
  for (int rank = 0; rank < size; ++rank) ends.push_back(std::make_unique<LocalComm>(rank, size, meeting));
  return ends;
}

}  // namespace gs
