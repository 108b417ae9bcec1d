// NCCL as far as this machine goes: without a card up to the making of a communicator; with one the conformance of
// device memory, by as many ranks as there are GPUs, and by two processes that share one.
#include <sys/wait.h>

#include <cstdlib>

#include "graphscale/exchange.hpp"

#include "src/exchange/nccl_library.hpp"
#include "tests/support/comm_conformance.hpp"
#include "tests/support/folder.hpp"

namespace gs {
namespace {

/// Why no rank can have a GPU here; empty: they can.
std::string obstacle() {
  if (!has_nccl()) return "no NCCL in this build or on this machine";
  try {
    choose_device("cuda");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

int gpu_count() {
  int count = 0;
  while (count < 8) try {
      choose_device(cat("cuda:", count));
      ++count;
    } catch (const Error&) {
      break;
    }
  return count;
}

/// A rank's GPU.
struct Gpu {
  explicit Gpu(int index)
      : device{Device::Kind::cuda, index}, ledger(device), stream(device), exec{device, 1, stream.get(), &ledger} {}

  Buffer<char> upload(const std::vector<char>& bytes) {
    Buffer<char> buffer(ledger, Offset(bytes.size()), "test bytes");
    copy_bytes(buffer.data(), bytes.data(), buffer.size(), exec);
    wait(exec);
    return buffer;
  }
  std::vector<char> download(const Buffer<char>& buffer) {
    std::vector<char> bytes(std::size_t(buffer.size()));
    copy_bytes(bytes.data(), buffer.data(), buffer.size(), exec);
    wait(exec);
    return bytes;
  }

  Device device;
  MemoryLedger ledger;
  Stream stream;
  Exec exec;
};

/// conformance::check_all_to_all in a GPU's memory.
void check_all_to_all(Comm& comm, Gpu& gpu, const std::function<Offset(int from, int to)>& bytes) {
  constexpr Offset kGuard = 64;
  const int me = comm.rank();
  std::vector<Offset> send_bytes, receive_bytes;
  std::vector<char> send, expected(kGuard, 'g');
  for (int r = 0; r < comm.size(); ++r) {
    send_bytes.push_back(bytes(me, r));
    receive_bytes.push_back(bytes(r, me));
    for (Offset i = 0; i < send_bytes.back(); ++i) send.push_back(conformance::byte_of(me, r, i, 0));
    for (Offset i = 0; i < receive_bytes.back(); ++i) expected.push_back(conformance::byte_of(r, me, i, 0));
  }
  expected.insert(expected.end(), kGuard, 'g');
  const Buffer<char> from = gpu.upload(send), to = gpu.upload(std::vector<char>(expected.size(), 'g'));

  comm.all_to_all(from.data(), send_bytes, to.data() + kGuard, receive_bytes);

  EXPECT_TRUE(gpu.download(to) == expected) << "rank " << me;
}

/// Sums near those in the order of ranks, and the same bits on all.
void check_all_reduce(Comm& comm, Comm& control, Gpu& gpu, Offset n) {
  std::vector<double> expected(std::size_t(n), 0), scale(std::size_t(n), 0);
  for (int r = 0; r < comm.size(); ++r) {
    const std::vector<float> part = conformance::summands<float>(r, n);
    for (std::size_t i = 0; i < part.size(); ++i) expected[i] += part[i], scale[i] += std::abs(part[i]);
  }
  const std::vector<float> own = conformance::summands<float>(comm.rank(), n);
  Buffer<float> values(gpu.ledger, n, "test values");
  copy_bytes(values.data(), own.data(), n * Offset(sizeof(float)), gpu.exec);

  comm.all_reduce(values.span());

  std::string sums(std::size_t(n) * sizeof(float), '\0');
  copy_bytes(sums.data(), values.data(), Offset(sums.size()), gpu.exec);
  wait(gpu.exec);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    float sum = 0;
    std::memcpy(&sum, sums.data() + i * sizeof sum, sizeof sum);
    ASSERT_NEAR(sum, expected[i], 1e-6 * comm.size() * scale[i]) << i;  // a rounding of 2^-24 for each of size adds
  }
  for (const std::string& other : control.gather_texts(sums)) EXPECT_TRUE(other == sums) << "rank " << comm.rank();
}

void conform(Comm& control, const Config& config, int gpu_index) {
  Gpu gpu(gpu_index);
  const std::unique_ptr<Comm> comm = open_nccl(control, config, gpu.exec);
  EXPECT_STREQ(comm->transport(), "nccl");
  EXPECT_TRUE(comm->device().is_cuda());
  const int size = comm->size();
  check_all_to_all(*comm, gpu, [](int from, int to) { return Offset(100 * from + 10 * to); });
  check_all_to_all(*comm, gpu, [](int, int) { return 0; });
  check_all_to_all(*comm, gpu, [](int from, int to) { return from == 0 && to != 0 ? 1000 : 0; });
  check_all_to_all(*comm, gpu, [&](int from, int to) { return to == size - 1 && from != to ? 3 : 0; });
  check_all_to_all(*comm, gpu, [&](int from, int to) { return to == (from + 1) % size ? 77 : 0; });
  check_all_to_all(*comm, gpu, [](int from, int to) { return (7 << 20) + 13 + from - to; });
  for (const Offset n : {0, 1, 1000, 100003}) check_all_reduce(*comm, control, gpu, n);
}

World threads(int size) {
  World world;
  world.size = size;
  return world;
}

TEST(Nccl, WithoutACardStartsUpToTheCommunicatorAndSaysWhyNotFurther) {
  if (!has_nccl()) {
    const std::unique_ptr<Comm> alone = std::move(open_local(1, 60)[0]);
    const Exec exec{{Device::Kind::cuda, 0}, 1, nullptr, nullptr};
    EXPECT_SAYS(sentence_of(Fault::device, [&] { open_nccl(*alone, Config(), exec); }), "NCCL");
    return;
  }
  if (obstacle().empty()) GTEST_SKIP() << "this machine has a card";

  const std::string sentence = sentence_of(Fault::comm, [] {
    run_ranks(threads(2), Config(), [](Comm& comm) { open_nccl(comm, Config(), {{Device::Kind::cuda, 0}}); });
  });

  EXPECT_SAYS(sentence, "start NCCL: unhandled cuda error");  // NCCL's words
  EXPECT_SAYS(sentence, "CUDA driver");                       // CUDA's
}

TEST(NcclOnCuda, RefusesTwoRanksOnOneGpu) {
  if (!obstacle().empty()) GTEST_SKIP() << obstacle();
  ::unsetenv("NCCL_HOSTID");

  EXPECT_SAYS(sentence_of(Fault::device,
                          [] { run_ranks(threads(2), Config(), [](Comm& comm) { conform(comm, Config(), 0); }); }),
              "ranks 0 and 1 name the same GPU, cuda:0");
}

TEST(NcclOnCuda, ConformsWithARankOnEveryGpu) {
  if (!obstacle().empty()) GTEST_SKIP() << obstacle();

  run_ranks(threads(gpu_count()), Config(), [](Comm& comm) { conform(comm, Config(), comm.rank()); });
}

class NcclProcessesOnCuda : public InFolder {};

/// NCCL takes two processes on one GPU where each is told that it has a machine of its own.
TEST_F(NcclProcessesOnCuda, ConformWhereTheyShareAGpu) {
  if (const char* rank = std::getenv("RANK")) {
    ::setenv("NCCL_HOSTID", rank, 1);
    const Config config;
    run_ranks(find_world(config), config, [&](Comm& comm) { conform(comm, config, 0); });
    return;
  }
  if (!obstacle().empty()) GTEST_SKIP() << obstacle();

  const std::string program = fs::read_symlink("/proc/self/exe");
  const int status =
      std::system(cat("cd '", folder_.string(),
                      "' && export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=", 20000 + ::getpid() % 10000,
                      " NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1; run() { RANK=$1 "
                      "LOCAL_RANK=$1 timeout -k 5 120 '",
                      program,
                      "' --gtest_filter=NcclProcessesOnCuda.* >$1.log 2>&1; }; run 1 & "
                      "run 0; first=$?; wait $! && exit $first")
                      .c_str());

  EXPECT_EQ(status, 0) << bytes_of(folder_ / "0.log") << bytes_of(folder_ / "1.log");
}

}  // namespace
}  // namespace gs
