// How a process learns which rank it is, from variables as launchers set them.
#include <gtest/gtest.h>

#include "tests/support/ranks.hpp"

namespace gs {
namespace {

using Variables = std::map<std::string, std::string>;

World world_of(const Variables& variables, const Config& config = {}, bool mpi_in_build = true) {
  const auto look_up = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return find_world(config, look_up, mpi_in_build);
}

std::string refusal(const Variables& variables, const Config& config = {}, bool mpi_in_build = true) {
  try {
    world_of(variables, config, mpi_in_build);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::usage) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "was taken";
  return "";
}

Config with(int ranks, const std::string& transport = "auto") {
  Config config;
  config.run.ranks = ranks;
  config.exchange.transport = transport;
  return config;
}

/// "transport rank/size local_rank/local_size address:port job"
std::string text_of(const World& w) {
  return cat(name_of(w.transport), " ", w.rank, "/", w.size, " ", w.local_rank, "/", w.local_size, " ", w.address, ":",
             w.port, " ", w.job);
}

Variables operator+(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

const Variables kMpirun{{"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_RANK", "3"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"PMIX_RANK", "3"},
                        {"PMIX_NAMESPACE", "prterun-7"}};
const Variables kMpich{{"PMI_SIZE", "4"}, {"PMI_RANK", "2"}, {"MPI_LOCALNRANKS", "4"}, {"MPI_LOCALRANKID", "2"}};
const Variables kTorchrun{{"RANK", "5"},
                          {"WORLD_SIZE", "8"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "4"},
                          {"MASTER_ADDR", "node0"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_RUN_ID", "run-1"}};
const Variables kSalloc{{"SLURM_JOB_ID", "77"},
                        {"SLURM_NTASKS", "4"},
                        {"SLURM_NNODES", "2"},
                        {"SLURM_NODELIST", "gpu[03-04]"},
                        {"SLURM_TASKS_PER_NODE", "2(x2)"}};
const Variables kSrun = kSalloc + Variables{{"SLURM_STEP_ID", "0"},
                                            {"SLURM_STEP_NUM_TASKS", "4"},
                                            {"SLURM_PROCID", "3"},
                                            {"SLURM_LOCALID", "1"},
                                            {"SLURM_NODEID", "1"},
                                            {"SLURM_STEP_NODELIST", "gpu[03-04]"},
                                            {"SLURM_STEP_NUM_NODES", "2"},
                                            {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                                            {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"}};

TEST(World, IsReadFromEveryLauncher) {
  const Variables few{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}};
  const struct {
    const char* name;
    Variables variables;
    Config config;
    const char* expected;
  } cases[] = {
      {"nobody", {}, {}, "local 0/1 0/1 :0 "},
      {"threads", {}, with(4), "local 0/4 0/4 :0 "},
      {"threads, said", {}, with(4, "local"), "local 0/4 0/4 :0 "},
      {"mpirun", kMpirun, {}, "mpi 3/4 1/2 :0 "},
      {"mpirun with its count", kMpirun, with(4), "mpi 3/4 1/2 :0 "},
      {"MPICH, Intel", kMpich, {}, "mpi 2/4 2/4 :0 "},
      {"MPICH over tcp", kMpich, with(0, "tcp"), "tcp 2/4 2/4 127.0.0.1:29400 "},
      {"torchrun", kTorchrun, {}, "tcp 5/8 1/4 node0:29500 run-1"},
      {"torchrun that listens itself",
       kTorchrun + Variables{{"TORCHELASTIC_USE_AGENT_STORE", "True"}},
       {},
       "tcp 5/8 1/4 node0:29501 run-1"},
      {"by hand on one machine", few, {}, "tcp 1/2 1/2 localhost:29400 "},
      {"torchrun below mpirun", kMpirun + kTorchrun, {}, "tcp 5/8 1/4 node0:29500 run-1"},
      {"srun without MPI", kSrun, {}, "tcp 3/4 1/2 gpu03:29400 77.0"},
      {"srun --mpi=pmix", kSrun + Variables{{"PMIX_RANK", "3"}}, {}, "mpi 3/4 1/2 :0 "},
      {"mpirun below salloc", kSalloc + kMpirun, {}, "mpi 3/4 1/2 :0 "},
      {"a shell in salloc", kSalloc, {}, "local 0/1 0/1 :0 "},
      {"a shell in salloc, threads", kSalloc, with(2), "local 0/2 0/2 :0 "},
      {"a batch script", kSalloc + Variables{{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}, {}, "local 0/1 0/1 :0 "},
      {"salloc's interactive step", kSrun + Variables{{"SLURM_STEP_ID", "4294967290"}}, {}, "local 0/1 0/1 :0 "},
      {"a launcher of one",
       {{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}},
       with(3),
       "local 0/3 0/3 :0 "},
      {"mpi of one", {}, with(0, "mpi"), "mpi 0/1 0/1 :0 "},
      {"tcp of one", {}, with(0, "tcp"), "tcp 0/1 0/1 :0 "},
  };
  for (const auto& one : cases) EXPECT_EQ(text_of(world_of(one.variables, one.config)), one.expected) << one.name;
}

TEST(World, TakesAddressPortAndJobFromTheConfigurationWhereGiven) {
  Config config;
  config.exchange.address = "10.1.2.3";
  config.exchange.port = 4444;
  config.exchange.job = "mine";

  EXPECT_EQ(text_of(world_of(kSrun, config)), "tcp 3/4 1/2 10.1.2.3:4444 mine");
  EXPECT_EQ(text_of(world_of(kTorchrun, config)), "tcp 5/8 1/4 10.1.2.3:29500 mine");  // MASTER_PORT is the launcher's
}

TEST(World, WithoutMpiInTheBuildMpirunsRanksTalkOverTcp) {
  const Variables one_machine = kMpirun + Variables{{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  EXPECT_EQ(text_of(world_of(one_machine, {}, false)), "tcp 3/4 1/4 127.0.0.1:29400 prterun-7");
  EXPECT_NE(refusal(kMpirun, {}, false).find("set MASTER_ADDR or --address"), std::string::npos);
  EXPECT_NE(refusal(one_machine, with(0, "mpi"), false).find("this build has no MPI"), std::string::npos);
  EXPECT_NE(refusal({}, with(0, "mpi"), false).find("this build has no MPI"), std::string::npos);
}

TEST(World, ContradictionsAreRefusedWithWhatToDo) {
  EXPECT_EQ(refusal(kMpirun, with(8)), "run.ranks 8 contradicts mpirun, which started 4 ranks; leave run.ranks out");
  EXPECT_NE(refusal(kMpirun, with(0, "local")).find("mpirun started 4 processes"), std::string::npos);
  EXPECT_NE(refusal({}, with(4, "mpi")).find("mpirun -np 4"), std::string::npos);
  EXPECT_NE(refusal({}, with(4, "tcp")).find("RANK and WORLD_SIZE"), std::string::npos);
}

TEST(World, VariablesThatAreMissingOrNoNumbersAreNamed) {
  const auto torchrun_with = [](const char* name, const char* value) { return kTorchrun + Variables{{name, value}}; };
  EXPECT_NE(refusal({{"WORLD_SIZE", "4"}}).find("RANK is not set"), std::string::npos);
  EXPECT_EQ(refusal(torchrun_with("RANK", "five")), "RANK: \"five\" is no whole number from 0 to 7");
  for (const char* bad : {"8", "-1", "5x", " 5", "99999999999"})
    EXPECT_TRUE(refusal(torchrun_with("RANK", bad)).starts_with("RANK: ")) << bad;
  EXPECT_TRUE(refusal(torchrun_with("WORLD_SIZE", "0")).starts_with("WORLD_SIZE: "));
  EXPECT_TRUE(refusal(torchrun_with("LOCAL_RANK", "4")).starts_with("LOCAL_RANK: "));
  EXPECT_TRUE(refusal(torchrun_with("MASTER_PORT", "70000")).starts_with("MASTER_PORT: "));
  EXPECT_TRUE(
      refusal(torchrun_with("TORCHELASTIC_RUN_ID", std::string(200, 'j').c_str())).starts_with("exchange.job: 200"));
}

TEST(World, ReadsSlurmsLists) {
  EXPECT_EQ(first_host("node7"), "node7");
  EXPECT_EQ(first_host("a,b[1-2]"), "a");
  EXPECT_EQ(first_host("gpu[03-07,9],login1"), "gpu03");
  EXPECT_EQ(first_host("r[1,5]n"), "r1n");
  EXPECT_EQ(first_host("x[2]"), "x2");
  EXPECT_EQ(first_host("x[2"), "");
  EXPECT_EQ(first_host(""), "");

  EXPECT_EQ(tasks_on_node("2(x3),1", 0), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 2), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 3), 1);
  EXPECT_EQ(tasks_on_node("2(x3),1", 4), 0);
  EXPECT_EQ(tasks_on_node("", 0), 0);
  EXPECT_EQ(tasks_on_node("x", 0), 0);
}

}  // namespace
}  // namespace gs
