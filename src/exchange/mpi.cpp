// Ranks that mpirun or srun started: messages from each to each, polled, so that a rank that is missing is named and
// left behind instead of waited for.
#include "graphscale/exchange.hpp"

#if defined(GS_MPI)
#define OMPI_SKIP_MPICXX 1  // the C interface only: the C++ one needs a library of its own
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>

#include "src/exchange/failures.hpp"
#include "src/exchange/messages.hpp"
#include "src/exchange/patience.hpp"
#endif

namespace gs {

#if defined(GS_MPI)

namespace {

/// MPI counts bytes in int. Smaller still, so that a slow link completes one within the deadline.
constexpr Offset kMessageBytes = 64 << 20;
constexpr Offset kTags = 1 << 15;        ///< 0 to 32767 are valid everywhere
constexpr int kReasonBytes = 1000;       ///< of a leaver's reason: small enough to be sent before it is received
constexpr double kFarewell_s = 1;        ///< what a leaver gives the others to hear why
constexpr double kGlance_s = 0.02;       ///< between two looks at the processes of this machine
constexpr double kStopPatience_s = 0.3;  ///< mpirun kills about 1 s after it has asked processes to stop

int open_ends = 0;  ///< MPI ends with the last of them

/// This rank failed: it makes no collective call any more and exits without MPI_Finalize, with its status. To mpirun
/// and srun --kill-on-bad-exit that is the end of all ranks, stopped ones too. (MPI_Abort does no more, says a page
/// more, and once crashed mpirun 4.1.4.)
bool leaving_job = false;

/// mpirun takes the status of whoever exits first: that is the rank where it began.
void let_others_go_first() { std::this_thread::sleep_for(std::chrono::duration<double>(kFarewell_s)); }

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(Fault::comm, cat(call, ": ", text));
}

/// Two processes with the same one see each other's process ids.
std::string process_space() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::error_code ignored;
  return cat(host, " ", std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string());
}

class MpiComm final : public Comm {
 public:
  MpiComm(int rank, int size, double timeout_s);
  ~MpiComm() override;
  const char* transport() const override { return "mpi"; }
  void abort(const std::string& reason) noexcept override;
  void notice() override;

  /// Learns the others' process ids where they can be watched. Collective.
  void meet();

 protected:
  void exchange(const std::vector<Span<const char>>& send, const std::vector<Span<char>>& receive) override;

 private:
  void finish(std::vector<MPI_Request>& requests, std::vector<Message>& messages);
  void check_size(const MPI_Status& arrival, int error, const Message& message) const;
  void look_around(const std::vector<Message>& messages, Patience& patience);
  void check_alive(const std::vector<int>& ranks) const;
  void check_nothing_left() const;
  void hear_reason();
  std::string reason() const;
  void tell(const std::string& reason) noexcept;

  double timeout_s_;
  MPI_Comm data_ = MPI_COMM_NULL, control_ = MPI_COMM_NULL;  ///< control: reasons of leavers
  std::vector<pid_t> processes_;                             ///< [size] 0: cannot be seen from here
  std::mutex mutex_;                                         ///< one thread at a time calls MPI
  Offset call_ = 0;
  double next_glance_s_ = 0;
  bool stop_noted_ = false, failed_ = false, heard_reason_ = false;
  std::string farewell_;  ///< what is being sent on control_

  std::atomic<bool> leaving_{false};
  mutable std::mutex reason_mutex_;
  std::string reason_;
};

MpiComm::MpiComm(int rank, int size, double timeout_s) : Comm(rank, size), timeout_s_(timeout_s) {
  for (MPI_Comm* comm : {&data_, &control_}) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, comm), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  ++open_ends;
}

MpiComm::~MpiComm() {
  --open_ends;
  if (std::uncaught_exceptions() > 0) leaving_job = true;
  if (leaving_job) return;
  const Watchdog watch(timeout_s_, cat("rank ", rank(), ": MPI did not end within ", timeout_s_,
                                       " s: another rank stopped or died after its last call"));
  MPI_Comm_free(&data_);
  MPI_Comm_free(&control_);
  if (open_ends == 0) MPI_Finalize();
}

void MpiComm::meet() {
  const std::string space = process_space();
  const std::vector<std::string> met = gather_texts(cat(getpid(), " ", space));
  for (const std::string& text : met) {
    const std::size_t blank = text.find(' ');
    processes_.push_back(text.substr(blank + 1) == space ? pid_t(std::stol(text.substr(0, blank))) : 0);
  }
}

void MpiComm::exchange(const std::vector<Span<const char>>& send, const std::vector<Span<char>>& receive) {
  const std::lock_guard lock(mutex_);
  std::vector<Offset> outgoing, incoming;
  for (const auto& part : send) outgoing.push_back(part.size);
  for (const auto& part : receive) incoming.push_back(part.size);
  std::vector<Message> messages;  // each rank starts with the next one: nobody is everybody's first
  add_messages(messages, true, incoming, rank(), kMessageBytes);
  add_messages(messages, false, outgoing, rank(), kMessageBytes);
  try {
    check_nothing_left();
    const int tag = int(++call_ % kTags);
    std::vector<MPI_Request> requests(messages.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto& [peer, is_incoming, at, bytes, done] = messages[i];
      if (is_incoming) {
        char* to = receive[std::size_t(peer)].data + at;
        check(MPI_Irecv(to, int(bytes), MPI_BYTE, peer, tag, data_, &requests[i]), "MPI_Irecv");
      } else {
        const char* from = send[std::size_t(peer)].data + at;
        check(MPI_Isend(from, int(bytes), MPI_BYTE, peer, tag, data_, &requests[i]), "MPI_Isend");
      }
    }
    finish(requests, messages);
  } catch (const Error& error) {
    tell(error.what());  // now: once the buffers are gone MPI must not be given time to use them
    throw;
  }
}

/// What the last call left behind was sent by a rank that counts otherwise.
void MpiComm::check_nothing_left() const {
  int waiting = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, int(call_ % kTags), data_, &waiting, &status), "MPI_Iprobe");
  if (!waiting) return;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  throw Error(Fault::comm, mismatch_sentence(status.MPI_SOURCE, rank(), bytes, 0));
}

void MpiComm::finish(std::vector<MPI_Request>& requests, std::vector<Message>& messages) {
  std::vector<int> done(requests.size());
  std::vector<MPI_Status> statuses(requests.size());
  Patience patience(timeout_s_);
  for (std::size_t left = requests.size(); left > 0;) {
    int found = 0;
    const int status = MPI_Testsome(int(requests.size()), requests.data(), &found, done.data(), statuses.data());
    if (status != MPI_ERR_IN_STATUS) check(status, "MPI_Testsome");
    for (int i = 0; i < found; ++i) {
      Message& message = messages[std::size_t(done[std::size_t(i)])];
      const MPI_Status& arrival = statuses[std::size_t(i)];
      check_size(arrival, status == MPI_ERR_IN_STATUS ? arrival.MPI_ERROR : MPI_SUCCESS, message);
      message.done = true;
    }
    left -= std::size_t(found);
    if (found > 0) {
      patience.restart();
    } else {
      look_around(messages, patience);
      patience.pause();
    }
  }
}

void MpiComm::check_size(const MPI_Status& arrival, int error, const Message& message) const {
  if (error != MPI_SUCCESS && error != MPI_ERR_TRUNCATE)
    check(error, cat("message ", message.incoming ? "from" : "to", " rank ", message.rank).c_str());
  if (!message.incoming) return;
  int bytes = 0;
  MPI_Get_count(&arrival, MPI_BYTE, &bytes);
  if (bytes != message.bytes || error != MPI_SUCCESS)
    throw Error(Fault::comm, mismatch_sentence(message.rank, rank(), bytes, message.bytes));
}

/// While nothing comes: throws for whatever makes further waiting useless.
void MpiComm::look_around(const std::vector<Message>& messages, Patience& patience) {
  hear_reason();
  if (leaving_) throw Error(Fault::comm, reason());
  if (now_s() < next_glance_s_ && !patience.over()) return;
  next_glance_s_ = now_s() + kGlance_s;

  std::set<int> silent, deaf;  // a rank that sends nothing is behind; one that only takes nothing may be stopped
  for (const Message& message : messages)
    if (!message.done) (message.incoming ? silent : deaf).insert(message.rank);
  if (silent.empty()) silent = deaf;
  const std::vector<int> missing(silent.begin(), silent.end());
  check_alive(missing);
  if (stop_requested() && patience.waited_s() > kStopPatience_s && !stop_noted_) {
    stop_noted_ = true;
    log_warn(cat("rank ", rank(), ": asked to stop, and no sign of ", rank_list(missing), " for ",
                 human_seconds(patience.waited_s())));
  }
  if (patience.over()) throw Error(Fault::comm, silent_sentence(missing, timeout_s_));
}

void MpiComm::check_alive(const std::vector<int>& ranks) const {
  for (const int other : ranks) {
    const pid_t process = processes_.empty() ? 0 : processes_[std::size_t(other)];
    if (process != 0 && kill(process, 0) != 0 && errno == ESRCH)
      throw Error(Fault::comm, cat("rank ", other, " died (process ", process, ")"));
  }
}

void MpiComm::hear_reason() {
  int waiting = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, control_, &waiting, &status), "MPI_Iprobe");
  if (!waiting) return;
  char text[kReasonBytes + 1] = "";
  check(MPI_Recv(text, kReasonBytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, control_, MPI_STATUS_IGNORE),
        "MPI_Recv");
  if (!heard_reason_) std::atexit(let_others_go_first);
  heard_reason_ = true;
  throw Error(Fault::comm, left_sentence(status.MPI_SOURCE, text));
}

void MpiComm::notice() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // a call is waiting, and looks around itself
  hear_reason();
  if (now_s() < next_glance_s_) return;
  next_glance_s_ = now_s() + kGlance_s;
  std::vector<int> others;
  for (int r = 0; r < size(); ++r)
    if (r != rank()) others.push_back(r);
  check_alive(others);
}

void MpiComm::abort(const std::string& reason) noexcept {
  {
    const std::lock_guard lock(reason_mutex_);
    if (reason_.empty()) reason_ = reason;
    leaving_ = true;  // ends a call that another thread is inside
  }
  const std::lock_guard lock(mutex_);
  tell(reason);
}

std::string MpiComm::reason() const {
  const std::lock_guard lock(reason_mutex_);
  return reason_;
}

void MpiComm::tell(const std::string& reason) noexcept {
  if (failed_) return;
  failed_ = true;
  leaving_job = true;
  if (heard_reason_) return;  // they all heard it
  farewell_ = reason.substr(0, kReasonBytes);
  std::vector<MPI_Request> requests(std::size_t(size()), MPI_REQUEST_NULL);
  for (int r = 0; r < size(); ++r)
    if (r != rank())
      MPI_Isend(farewell_.data(), int(farewell_.size()), MPI_BYTE, r, 0, control_, &requests[std::size_t(r)]);
  Patience patience(kFarewell_s);
  for (int all = 0; !all && !patience.over(); patience.pause())
    if (MPI_Testall(size(), requests.data(), &all, MPI_STATUSES_IGNORE) != MPI_SUCCESS) return;
}

}  // namespace

bool has_mpi() { return true; }

std::unique_ptr<Comm> open_mpi(double timeout_s) {
  int started = 0, ended = 0, threads = 0, rank = 0, size = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  GS_EXPECT(!ended, "MPI has ended in this process and cannot start again");
  std::unique_ptr<MpiComm> comm;
  {
    const Watchdog watch(timeout_s, cat("MPI did not start within ", timeout_s,
                                        " s: a rank did not come; it stopped, died or was never started"));
    if (!started) check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads), "MPI_Init_thread");
    MPI_Query_thread(&threads);
    if (threads < MPI_THREAD_SERIALIZED)
      throw Error(Fault::comm,
                  "this MPI may not be called from several threads, even one at a time: build it with "
                  "MPI_THREAD_SERIALIZED, or use exchange.transport tcp");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    comm = std::make_unique<MpiComm>(rank, size, timeout_s);
  }
  comm->meet();
  return comm;
}

#else

bool has_mpi() { return false; }

std::unique_ptr<Comm> open_mpi(double) {
  throw Error(Fault::usage,
              "exchange.transport mpi: this build has no MPI; rebuild with -DGS_MPI=ON where MPI is, or use tcp");
}

#endif

}  // namespace gs
