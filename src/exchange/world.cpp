// How this process was started: by which launcher, as which rank, and which transport that calls for.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "graphscale/exchange.hpp"

#include "src/exchange/launch.hpp"
#include "src/exchange/rendezvous.hpp"

namespace gs {
namespace {

/// The environment by name, read strictly.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}
  bool has(const char* name) const { return !text(name).empty(); }
  std::string text(const char* name) const {
    const char* value = environment_(name);
    return value ? value : "";
  }
  /// The first of `names` that is set and not empty, or nothing.
  std::string first_of(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (has(name)) return text(name);
    return "";
  }
  /// A whole number in [least, most]; `otherwise` where it is not set. Throws usage.
  int number(const char* name, int least, int most, std::optional<int> otherwise = std::nullopt) const {
    const std::string value = text(name);
    if (value.empty() && otherwise) return *otherwise;
    if (value.empty()) throw Error(Fault::usage, cat(name, " is not set, though its launcher's other variables are"));
    int parsed = 0;
    const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (status != std::errc() || end != value.data() + value.size() || parsed < least || parsed > most)
      throw Error(Fault::usage, cat(name, ": \"", value, "\" is no whole number from ", least, " to ", most));
    return parsed;
  }

 private:
  const Environment& environment_;
};

constexpr int kMostRanks = 1 << 20;

/// Who started this process as one of several. `world` has size, rank and local numbers; tcp: what it knows of an
/// address.
struct Launcher {
  std::string name;  ///< empty: none
  World world;
  bool speaks_mpi = false;
};

/// The ranks are numbered by `rank`, `size`; local numbers where their variables are there.
Launcher launched(const Variables& env, const char* name, const char* size, const char* rank, const char* local_size,
                  const char* local_rank) {
  Launcher found{name, {}, false};
  World& world = found.world;
  world.size = env.number(size, 1, kMostRanks);
  world.rank = env.number(rank, 0, world.size - 1);
  world.local_size = env.number(local_size, 1, world.size, 0);
  world.local_rank = env.number(local_rank, 0, (world.local_size ? world.local_size : world.size) - 1, 0);
  return found;
}

/// A step that srun started: a shell inside salloc and a batch script have no step or one of Slurm's special ones.
bool is_slurm_task(const Variables& env) {
  constexpr std::uint32_t kFirstSpecialStep = 0xFFFFFFF0u;
  const std::string step = env.first_of({"SLURM_STEP_ID", "SLURM_STEPID"});
  if (!env.has("SLURM_PROCID") || step.empty()) return false;
  return std::strtoull(step.c_str(), nullptr, 10) < kFirstSpecialStep;
}

Launcher from_slurm(const Variables& env) {
  const char* size = env.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  Launcher found = launched(env, "srun", size, "SLURM_PROCID", "", "SLURM_LOCALID");
  World& world = found.world;
  const std::string per_node = env.first_of({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  world.local_size = tasks_on_node(per_node, env.number("SLURM_NODEID", 0, kMostRanks, 0));
  const int nodes =
      env.number(env.has("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES", 1, kMostRanks, 0);
  if (nodes == 1) world.local_size = world.size;
  if (world.local_size != world.size) {
    world.address = first_host(env.first_of({"SLURM_STEP_NODELIST", "SLURM_NODELIST"}));  // task 0 runs there
    if (world.address.empty()) world.address = env.text("SLURM_LAUNCH_NODE_IPADDR");
  }
  return found;
}

/// Innermost first: a launcher's variables reach all that runs below it, other launchers among them.
Launcher find_launcher(const Variables& env) {
  const auto torchrun = [&](const char* name) {
    return launched(env, name, "WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE", "LOCAL_RANK");
  };
  Launcher found;
  if (env.has("TORCHELASTIC_RUN_ID")) return torchrun("torchrun");
  if (env.has("OMPI_COMM_WORLD_SIZE")) {
    found = launched(env, "mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                     "OMPI_COMM_WORLD_LOCAL_RANK");
    found.speaks_mpi = true;
  } else if (env.has("WORLD_SIZE")) {
    found = torchrun("the launcher that set WORLD_SIZE");
  } else if (is_slurm_task(env)) {
    found = from_slurm(env);
    found.speaks_mpi = env.has("PMIX_RANK") || env.has("PMI_RANK");
  } else if (env.has("PMI_RANK")) {
    found = launched(env, "mpiexec", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID");
    found.speaks_mpi = true;
  }
  return found;
}

World here(World::Transport transport, int size) {
  World world;
  world.transport = transport;
  world.size = world.local_size = size;
  return world;
}

/// Without a launcher, or as the only one that it started.
World alone(const Config& config, bool mpi_in_build) {
  const std::string& transport = config.exchange.transport;
  const int ranks = std::max(1, config.run.ranks);
  if (transport == "mpi" && !mpi_in_build)
    throw Error(Fault::usage,
                "exchange.transport mpi: this build has no MPI; use tcp, or build where MPI is installed");
  if (transport == "auto" || transport == "local") return here(World::Transport::local, ranks);
  if (ranks > 1)
    throw Error(Fault::usage, cat("exchange.transport ", transport, " with run.ranks ", ranks,
                                  ": no launcher has started this process as "
                                  "one of ",
                                  ranks, "; ",
                                  transport == "mpi" ? cat("start it as `mpirun -np ", ranks, " graphscale ...`")
                                                     : "set RANK and WORLD_SIZE, as torchrun does",
                                  ", or leave exchange.transport out: the ranks are then threads"));
  return here(transport == "mpi" ? World::Transport::mpi : World::Transport::tcp, 1);
}

/// Where rank 0 listens, and the word that the ranks of this job share.
void find_meeting_point(World& world, const Launcher& launcher, const Config& config, const Variables& env) {
  const std::string known[] = {config.exchange.address, env.text("MASTER_ADDR"), world.address};
  const auto found = std::find_if(std::begin(known), std::end(known), [](const std::string& a) { return !a.empty(); });
  world.address = found == std::end(known) ? "" : *found;
  if (world.address.empty() && world.local_size == world.size) world.address = "127.0.0.1";
  if (world.address.empty())
    throw Error(Fault::usage, cat("tcp ranks need to know where rank 0 is, and ", launcher.name,
                                  " does not say: set MASTER_ADDR or --address to its host, the same on all ranks"));
  world.port = env.number("MASTER_PORT", 1, 65534, 0);
  if (world.port == 0) {
    world.port = config.exchange.port;
  } else if (env.text("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    ++world.port;  // torchrun itself listens at MASTER_PORT
  }
  world.job = config.exchange.job;
  if (world.job.empty()) world.job = env.text("TORCHELASTIC_RUN_ID");
  if (world.job.empty() && env.has("SLURM_JOB_ID"))
    world.job = cat(env.text("SLURM_JOB_ID"), ".", env.first_of({"SLURM_STEP_ID", "SLURM_STEPID"}));
  if (world.job.empty()) world.job = env.text("PMIX_NAMESPACE");
  if (world.job.size() > kLongestJob)
    throw Error(Fault::usage, cat("exchange.job: ", world.job.size(), " bytes; at most ", kLongestJob));
}

World as_launched(const Launcher& launcher, const Config& config, const Variables& env, bool mpi_in_build) {
  const std::string& transport = config.exchange.transport;
  World world = launcher.world;
  if (config.run.ranks > 0 && config.run.ranks != world.size)
    throw Error(Fault::usage, cat("run.ranks ", config.run.ranks, " contradicts ", launcher.name, ", which started ",
                                  world.size, " ranks; leave run.ranks out"));
  if (transport == "local")
    throw Error(Fault::usage, cat("exchange.transport local: its ranks are threads of one process, but ", launcher.name,
                                  " started ", world.size, " processes; leave exchange.transport out"));
  if (transport == "mpi" && !mpi_in_build)
    throw Error(Fault::usage,
                "exchange.transport mpi: this build has no MPI; use tcp, or build where MPI is installed");
  const bool by_mpi = transport == "mpi" || (transport == "auto" && launcher.speaks_mpi && mpi_in_build);
  world.transport = by_mpi ? World::Transport::mpi : World::Transport::tcp;
  if (by_mpi) {
    world.address.clear();
  } else {
    find_meeting_point(world, launcher, config, env);
  }
  if (world.local_size == 0) {  // nobody said: all here where rank 0 is here for all
    const bool all_here = !by_mpi && is_loopback(world.address);
    world.local_size = all_here ? world.size : std::max(1, world.local_rank + 1);
    if (all_here) world.local_rank = world.rank;
  }
  return world;
}

}  // namespace

std::string first_host(const std::string& node_list) {
  const std::size_t open = node_list.find('[');
  const std::size_t end = node_list.find(',');
  if (open == std::string::npos || end < open) return node_list.substr(0, end);
  const std::size_t number_end = node_list.find_first_of("-,]", open);
  const std::size_t close = node_list.find(']', open);
  if (close == std::string::npos) return "";
  const std::size_t rest_end = node_list.find_first_of(",[", close);
  return node_list.substr(0, open) + node_list.substr(open + 1, number_end - open - 1) +
         node_list.substr(close + 1, rest_end == std::string::npos ? rest_end : rest_end - close - 1);
}

int tasks_on_node(const std::string& tasks_per_node, int node) {
  std::istringstream list(tasks_per_node);
  for (std::string part; std::getline(list, part, ',');) {
    const int tasks = std::atoi(part.c_str());
    const std::size_t times_at = part.find("(x");
    const int times = times_at == std::string::npos ? 1 : std::atoi(part.c_str() + times_at + 2);
    if (tasks <= 0 || times <= 0) return 0;
    if (node < times) return tasks;
    node -= times;
  }
  return 0;
}

World find_world(const Config& config, const Environment& environment, bool mpi_in_build) {
  const Variables env(environment);
  const Launcher launcher = find_launcher(env);
  if (launcher.name.empty() || launcher.world.size == 1) return alone(config, mpi_in_build);
  return as_launched(launcher, config, env, mpi_in_build);
}

World find_world(const Config& config) {
  return find_world(
      config, [](const char* name) -> const char* { return std::getenv(name); }, has_mpi());
}

}  // namespace gs
