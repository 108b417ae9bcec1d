// Device memory from GPU to GPU. NCCL is told not to block; all waiting is ours, with a deadline, an eye on NCCL's own
// errors and an ear on the control for ranks that leave.
#include "graphscale/exchange.hpp"

#include "src/exchange/failures.hpp"
#include "src/exchange/nccl_library.hpp"

#if defined(GS_NCCL)
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdlib>

#include "src/exchange/patience.hpp"
#endif

namespace gs {

#if defined(GS_NCCL)

namespace {

constexpr double kAborting_s = 30;  ///< for ncclCommAbort, which waits for kernels that look at its flag

/// Throws comm with NCCL's own words; `comm` may be null.
void check(const NcclLibrary& nccl, ncclResult_t result, ncclComm_t comm, const char* what) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* details = nccl.get_last_error(comm);
  throw Error(Fault::comm, cat(what, ": ", nccl.get_error_string(result), details && *details ? ": " : "",
                               details ? details : "", "; NCCL_DEBUG=WARN says more"));
}

class NcclComm final : public Comm {
 public:
  NcclComm(Comm& control, double timeout_s, const Exec& exec)
      : Comm(control.rank(), control.size()),
        nccl_(nccl_library()),
        control_(control),
        timeout_s_(timeout_s),
        exec_(exec) {}
  ~NcclComm() override;
  const char* transport() const override { return "nccl"; }
  Device device() const override { return exec_.device; }
  using Comm::all_reduce;
  void all_reduce(Span<float> values) override;
  void abort(const std::string& reason) noexcept override;

  /// Collective.
  void connect(const ncclUniqueId& id);

 protected:
  void exchange(const std::vector<Span<const char>>& send, const std::vector<Span<char>>& receive) override;
  void copy_own(void* to, const void* from, Offset bytes) override;

 private:
  void run(const char* what, const std::function<void()>& queue);
  void check(ncclResult_t result, const char* what) const { gs::check(nccl_, result, comm_, what); }
  bool is_settled(const char* what) const;
  bool is_done(const char* what) const;
  void wait_until(const std::function<bool()>& ready, const char* what);
  void give_up() noexcept;
  cudaStream_t stream() const { return static_cast<cudaStream_t>(exec_.stream); }

  const NcclLibrary& nccl_;
  Comm& control_;
  double timeout_s_;
  Exec exec_;
  std::mutex mutex_;  ///< one thread at a time calls NCCL
  ncclComm_t comm_ = nullptr;
  std::atomic<bool> leaving_{false};
};

void check_cuda(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw Error(Fault::device, cat(what, ": ", cudaGetErrorName(status), ": ", cudaGetErrorString(status)));
}

void NcclComm::connect(const ncclUniqueId& id) {
  const char* what = "start NCCL";
  ncclConfig_t settings = NCCL_CONFIG_INITIALIZER;
  settings.blocking = 0;
  (void)cudaSetDevice(exec_.device.index);  // where that fails NCCL says why
  try {
    check(nccl_.comm_init_rank_config(&comm_, size(), id, rank(), &settings), what);
    wait_until([&] { return is_settled(what); }, what);
  } catch (...) {
    give_up();
    throw;
  }
}

NcclComm::~NcclComm() {
  if (comm_ && std::uncaught_exceptions() == 0) {
    const char* what = "end NCCL";
    try {
      check(nccl_.comm_finalize(comm_), what);
      wait_until([&] { return is_settled(what); }, what);
      const Watchdog watch(kAborting_s, "ncclCommDestroy does not return");
      check(nccl_.comm_destroy(std::exchange(comm_, nullptr)), what);
    } catch (const Error& error) {
      log_error(error.what());
    }
  }
  give_up();
}

void NcclComm::exchange(const std::vector<Span<const char>>& send, const std::vector<Span<char>>& receive) {
  run("all-to-all by NCCL", [&] {  // counts are size_t: parts of any size are one message
    for (std::size_t step = 1; step < send.size(); ++step) {
      const std::size_t to = (std::size_t(rank()) + step) % send.size();
      const std::size_t from = (std::size_t(rank()) + send.size() - step) % send.size();
      if (!send[to].empty())
        check(nccl_.send(send[to].data, std::size_t(send[to].size), ncclUint8, int(to), comm_, stream()), "ncclSend");
      if (!receive[from].empty())
        check(nccl_.recv(receive[from].data, std::size_t(receive[from].size), ncclUint8, int(from), comm_, stream()),
              "ncclRecv");
    }
  });
}

void NcclComm::all_reduce(Span<float> values) {
  if (size() == 1 || values.empty()) return;
  const double start_s = now_s();
  run("all-reduce by NCCL", [&] {
    check(nccl_.all_reduce(values.data, values.data, std::size_t(values.size), ncclFloat32, ncclSum, comm_, stream()),
          "ncclAllReduce");
  });
  const Offset moved = 2 * (size() - 1) * values.size * Offset(sizeof(float)) / size();  // of a ring
  traffic_.sent_bytes += moved, traffic_.received_bytes += moved;
  ++traffic_.calls, traffic_.waiting_s += now_s() - start_s;
}

void NcclComm::copy_own(void* to, const void* from, Offset bytes) {
  if (to != from) copy_bytes(to, from, bytes, exec_);
}

/// Queues on the stream as one group what `queue` asks of NCCL, and waits until it is done.
void NcclComm::run(const char* what, const std::function<void()>& queue) {
  const std::lock_guard lock(mutex_);
  if (!comm_) throw Error(Fault::comm, cat(what, ": this rank has left"));
  try {
    check_cuda(cudaSetDevice(exec_.device.index), what);
    check(nccl_.group_start(), "ncclGroupStart");
    queue();
    check(nccl_.group_end(), "ncclGroupEnd");
    wait_until([&] { return is_settled(what) && is_done(what); }, what);
  } catch (...) {
    give_up();  // kernels that still wait for others would never let go of the stream and its buffers
    throw;
  }
}

/// Nothing that was asked of NCCL is still on its way to the stream.
bool NcclComm::is_settled(const char* what) const {
  ncclResult_t state = ncclSuccess;
  check(nccl_.comm_get_async_error(comm_, &state), what);
  check(state, what);
  return state == ncclSuccess;
}

bool NcclComm::is_done(const char* what) const {
  const cudaError_t status = cudaStreamQuery(stream());
  if (status == cudaErrorNotReady) return false;
  check_cuda(status, what);
  return true;
}

void NcclComm::wait_until(const std::function<bool()>& ready, const char* what) {
  Patience patience(timeout_s_);
  while (!ready()) {
    if (leaving_) throw Error(Fault::comm, cat(what, ": this rank leaves"));
    control_.notice();
    if (patience.over()) {
      control_.barrier();  // throws with the name of a rank that is gone
      throw Error(Fault::comm, cat(what, ": no end after ", timeout_s_,
                                   " s (exchange.timeout_s), though all ranks "
                                   "answer: check the network that NCCL chose (NCCL_DEBUG=INFO)"));
    }
    patience.pause();
  }
}

void NcclComm::give_up() noexcept {
  if (!comm_) return;
  const Watchdog watch(kAborting_s, "ncclCommAbort does not return");
  (void)nccl_.comm_abort(std::exchange(comm_, nullptr));
}

void NcclComm::abort(const std::string& reason) noexcept {
  leaving_ = true;  // ends a call that another thread is inside
  {
    const std::lock_guard lock(mutex_);
    give_up();
  }
  control_.abort(reason);
}

/// A word that no other GPU in the world has; empty where CUDA does not tell.
std::string identity_of_gpu(int index) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
    (void)cudaGetLastError();
    return "";
  }
  return std::string(properties.uuid.bytes, sizeof properties.uuid.bytes);
}

/// NCCL refuses two ranks on one GPU, in words that do not name them.
void refuse_shared_gpus(Comm& control, Device device) {
  const std::string own = identity_of_gpu(device.index);
  const std::vector<std::string> all = control.gather_texts(own);
  if (std::getenv("NCCL_HOSTID")) return;  // NCCL is told that each rank has a machine of its own: for tests
  std::map<std::string, int> owners;
  for (int r = 0; r < control.size(); ++r) {
    const std::string& gpu = all[std::size_t(r)];
    const auto [owner, is_first] = owners.emplace(gpu, r);
    if (is_first || gpu.empty()) continue;
    throw Error(Fault::device,
                cat("ranks ", owner->second, " and ", r, " name the same GPU", gpu == own ? ", " : "",
                    gpu == own ? to_string(device) + " here" : "",
                    ": start no more ranks on a machine than it has GPUs, and leave run.device to them"));
  }
}

}  // namespace

bool has_nccl() {
  try {
    nccl_library();
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<Comm> open_nccl(Comm& control, const Config& config, const Exec& exec) {
  GS_EXPECT(exec.device.is_cuda(), "open_nccl: NCCL moves GPU memory, and this rank's device is ",
            to_string(exec.device));
  // A rank that fails throws; the others hear of it from the control.
  const NcclLibrary& nccl = nccl_library();
  refuse_shared_gpus(control, exec.device);
  ncclUniqueId id{};
  if (control.rank() == 0) check(nccl, nccl.get_unique_id(&id), nullptr, "ncclGetUniqueId");
  control.broadcast(&id, Offset(sizeof id), 0);
  auto comm = std::make_unique<NcclComm>(control, config.exchange.timeout_s, exec);
  comm->connect(id);
  return comm;
}

#else

bool has_nccl() { return false; }

std::unique_ptr<Comm> open_nccl(Comm&, const Config&, const Exec&) {
  throw Error(Fault::device, "this build has no NCCL: rebuild with -DGS_CUDA=ON where nvcc and nccl.h are");
}

#endif

}  // namespace gs
