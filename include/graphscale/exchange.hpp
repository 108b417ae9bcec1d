// Ranks that talk: who is there, how they were started, and bytes from each to each.
#pragma once

#include <array>

#include "graphscale/batch.hpp"

namespace gs {

/// What a rank has moved so far; its own part is never counted.
struct Traffic {
  Offset sent_bytes = 0, received_bytes = 0, calls = 0;
  double waiting_s = 0;  ///< inside calls
};

/// One rank's end of a group of ranks. Every call is collective: all ranks make the same calls in the same order, each
/// from one thread at a time. Calls return when this rank's part is done.
///
/// Ranks    a rank that left, died, stopped or never came ends the others' calls
/// Throws   comm: names the rank that is missing, what became of it where that is known, and the deadline
///          (exchange.timeout_s of no progress). After a throw the object is of no use but to be destroyed.
class Comm {
 public:
  virtual ~Comm() = default;
  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual const char* transport() const = 0;    ///< local | tcp | mpi | nccl
  virtual Device device() const { return {}; }  ///< whose memory `all_to_all` moves: the host's, or (nccl) a GPU's
  const Traffic& traffic() const { return traffic_; }

  /// Part r of `send` goes to rank r; part r of `receive` comes from rank r. Parts lie one after another in the order
  /// of ranks, send_bytes and receive_bytes [size] are known on both sides. Any size, 0 among them, past 2^31 too.
  void all_to_all(const void* send, Span<const Offset> send_bytes, void* receive, Span<const Offset> receive_bytes);

  /// values [n] of every rank <- their sums over ranks, added in the order of ranks: the same bits on every rank. n is
  /// the same on all. By default a reduce-scatter and an all-gather over all_to_all: 2 (size - 1) / size of the bytes.
  /// In this transport's memory.
  virtual void all_reduce(Span<float> values);
  void all_reduce(Span<double> values);  ///< host transports only, as all below
  void all_reduce(Span<Offset> values);

  void broadcast(void* data, Offset bytes, int root);
  void barrier();
  /// Every rank's text, in the order of ranks.
  std::vector<std::string> gather_texts(const std::string& text);
  /// counts [size] <- what every rank has for this one in `counts`.
  std::vector<Offset> exchange_counts(Span<const Offset> counts);

  /// Says why this rank leaves; the others' calls then throw "rank N left: REASON". Called by whoever catches this
  /// rank's error, from any thread: a call of this end that another thread is in throws too. Takes a second at most.
  /// Where the end failed by itself (another rank died, left, ...) the others are told that first failure instead.
  virtual void abort(const std::string& reason) noexcept = 0;

  /// Throws comm where another rank is known to have left; waits for nobody, and may be called while another thread is
  /// inside a call. What a device's communicator asks of its control while it waits.
  virtual void notice() {}

 protected:
  Comm(int rank, int size) : rank_(rank), size_(size) {}
  /// all_to_all for size > 1: send[r] goes to rank r, receive[r] comes from it, in this transport's memory. The own
  /// part was copied already and is empty here.
  virtual void exchange(const std::vector<Span<const char>>& send, const std::vector<Span<char>>& receive) = 0;
  /// Copies the own part of all_to_all, in this transport's memory.
  virtual void copy_own(void* to, const void* from, Offset bytes);

  Traffic traffic_;  ///< counted by all_to_all; a transport with collectives of its own counts those

 private:
  template <class T>
  void reduce_in_order(Span<T> values);
  template <class T>
  void reduce_piece(Span<T> values);
  void exchange_counted(const std::vector<Span<const char>>& send, const std::vector<Span<char>>& receive);

  int rank_, size_;
  std::vector<char> scratch_;  ///< the others' parts of a reduction
};

// ----------------------------------------------------------------------------------------------------------- launch

/// How this process was started, and as which of how many ranks.
struct World {
  enum class Transport { local, tcp, mpi } transport = Transport::local;  ///< of host memory and of control
  int size = 1;
  int rank = 0;         ///< of this process; with `local` its ranks are 0 .. size - 1
  int local_rank = 0;   ///< among the processes of this machine: chooses the GPU
  int local_size = 1;   ///< ranks on this machine
  std::string address;  ///< tcp: where rank 0 listens
  int port = 0;
  std::string job;  ///< tcp: ranks of another job are turned away
};

/// Reads the configuration and the environment: OpenMPI's and PMI's variables (mpirun, srun --mpi=pmix), Slurm's
/// (srun without MPI), torchrun's (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT); else run.ranks threads of
/// this process. Throws usage: run.ranks, exchange.transport and the environment contradict each other; a variable is
/// missing or no number; a transport that this build lacks.
World find_world(const Config& config);

/// Calls body(comm) for every rank of this process: once, or on a thread each (local). An error in one rank aborts it,
/// which ends the others; rethrows the error that came first, with "rank N: " before it. Throws comm where ranks do not
/// come within exchange.timeout_s; usage where a port is taken ("port N in use ...").
void run_ranks(const World& world, const Config& config, const std::function<void(Comm& comm)>& body);

/// A communicator of device memory among the ranks of `control`: NCCL on exec's stream. Collective. Throws comm with
/// NCCL's own words and what to do; device where two ranks of one machine name the same GPU, or no NCCL is found.
std::unique_ptr<Comm> open_nccl(Comm& control, const Config& config, const Exec& exec);

/// Compares facts by name over all ranks before anything large moves. Collective. Throws comm on every rank: the name,
/// the values and which ranks have them.
void handshake(Comm& comm, const std::vector<std::pair<std::string, std::string>>& facts);

/// Runs each rank's `work`, null for none, however long it takes: the ranks tell each other every second that it goes
/// on, so that no deadline ends them. Collective. Throws on a rank what its work throws.
void wait_for_work(Comm& comm, const std::function<void()>& work);
void wait_for_work(Comm& comm, int root, const std::function<void()>& work);  ///< on rank `root` alone

// ------------------------------------------------------------------------------------------------------- transports

/// `size` ends of one group in one process; end r is used by one thread, rank r. run_ranks and tests make them.
std::vector<std::unique_ptr<Comm>> open_local(int size, double timeout_s);

/// Sockets from each rank to each, found through rank 0's listener.
std::unique_ptr<Comm> open_tcp(const World& world, double timeout_s);

/// MPI_COMM_WORLD; initialises MPI, and finalises it when the last one is gone. Throws usage without MPI in this build.
std::unique_ptr<Comm> open_mpi(double timeout_s);

bool is_loopback(const std::string& address);  ///< "localhost", "127.x.y.z", "::1"; looks nothing up

bool has_mpi();   ///< in this build
bool has_nccl();  ///< in this build, with its library on this machine

}  // namespace gs
