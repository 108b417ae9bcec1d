#include "graphscale/exchange.hpp"

#include "src/exchange/failures.hpp"
#include "src/exchange/launch.hpp"

namespace gs {
namespace {

/// The exception in flight, as an Error that names its rank (of several).
Error error_of(int rank, int size) {
  const std::string who = size > 1 ? cat("rank ", rank, ": ") : "";
  try {
    throw;
  } catch (const Error& error) {
    return Error(error.fault, who + error.what());
  } catch (const std::bad_alloc&) {
    return Error(Fault::memory, who + "memory ran out in a place that had not been planned for; give the process more");
  } catch (const std::exception& error) {
    return Error(Fault::internal, cat(who, "internal: ", error.what()));
  }
}

/// Errors of a process's ranks as they come; which of them the others follow from.
class Failures {
 public:
  void add(const Error& error, bool is_left) {
    const std::lock_guard lock(mutex_);
    if (!first_ || (first_is_left_ && !is_left)) first_ = std::make_unique<Error>(error), first_is_left_ = is_left;
  }
  void rethrow() const {
    if (first_) throw *first_;
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<Error> first_;
  bool first_is_left_ = false;
};

void run_one(int rank, int size, const std::function<std::unique_ptr<Comm>(int)>& open,
             const std::function<void(Comm&)>& body, Failures& failures) {
  std::unique_ptr<Comm> comm;
  try {
    comm = open(rank);
    body(*comm);
  } catch (...) {
    const Error error = error_of(rank, size);
    const std::string sentence = std::string(error.what()).substr(size > 1 ? cat("rank ", rank, ": ").size() : 0);
    failures.add(error, is_left_sentence(sentence));  // first: the others' errors follow from abort
    if (comm) comm->abort(sentence);
  }
}

std::unique_ptr<Comm> open_world_mpi(const World& world, double timeout_s) {
  std::unique_ptr<Comm> comm = open_mpi(timeout_s);
  if (comm->size() != world.size || comm->rank() != world.rank)
    throw Error(Fault::usage, cat("MPI calls this process rank ", comm->rank(), " of ", comm->size(),
                                  ", its launcher rank ", world.rank, " of ", world.size,
                                  ": this MPI was not started by that launcher; "
                                  "start with its own mpirun (or srun --mpi=pmix), or pass --transport tcp"));
  return comm;
}

}  // namespace

void run_threads(int size, const std::function<std::unique_ptr<Comm>(int)>& open,
                 const std::function<void(Comm&)>& body) {
  Failures failures;
  on_threads(size, [&](int rank) { run_one(rank, size, open, body, failures); });
  failures.rethrow();
}

void run_ranks(const World& world, const Config& config, const std::function<void(Comm&)>& body) {
  const double timeout_s = config.exchange.timeout_s;
  if (world.transport == World::Transport::local) {
    std::vector<std::unique_ptr<Comm>> ends = open_local(world.size, timeout_s);
    run_threads(
        world.size, [&](int rank) { return std::move(ends[std::size_t(rank)]); }, body);
    return;
  }
  Failures failures;
  const auto open = [&](int) {
    return world.transport == World::Transport::tcp ? open_tcp(world, timeout_s) : open_world_mpi(world, timeout_s);
  };
  run_one(world.rank, world.size, open, body, failures);
  failures.rethrow();
}

}  // namespace gs
