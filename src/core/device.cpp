#include "src/core/device.hpp"

#include <cstring>
#include <fstream>

#if defined(GS_CUDA)
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#endif

namespace gs {

std::string to_string(Device device) { return device.is_cuda() ? cat("cuda:", device.index) : "cpu"; }

Device choose_device(const std::string& name) {
  if (name == "cpu") return {};
  if (name == "auto") {
    const std::string obstacle = cuda_obstacle(0);
    if (obstacle.empty()) return {Device::Kind::cuda, 0};
    log_info("using the CPU: " + obstacle);
    return {};
  }
  int index = 0;
  if (name != "cuda") {
    if (name.rfind("cuda:", 0) != 0 || name.size() < 6 || name.size() > 8 ||
        name.find_first_not_of("0123456789", 5) != std::string::npos)
      throw Error(Fault::usage, "run.device: " + name + " is none of auto, cpu, cuda, cuda:N");
    index = std::stoi(name.substr(5));
  }
  const std::string obstacle = cuda_obstacle(index);
  if (!obstacle.empty()) throw Error(Fault::device, cat("device ", name, ": ", obstacle, "; or use --device cpu"));
  return {Device::Kind::cuda, index};
}

int usable_gpus() {
  int count = 0;
  while (cuda_obstacle(count).empty()) ++count;
  return count;
}

std::string describe(Device device) {
  if (device.is_cuda()) return cuda_description(device.index);
  std::ifstream in("/proc/cpuinfo");
  std::string line, model = "CPU";
  while (std::getline(in, line))
    if (line.rfind("model name", 0) == 0 && line.find(':') != std::string::npos) {
      model = line.substr(line.find(':') + 2);
      break;
    }
#if defined(__AVX512F__)
  return model + ", AVX-512";
#elif defined(__AVX2__)
  return model + ", AVX2";
#else
  return model + ", SSE2";
#endif
}

bool holds_code_for(const std::string& architectures, int major, int minor) {
  std::istringstream list(architectures);
  for (std::string entry; std::getline(list, entry, ',');) {
    if (entry == "native" || entry == "all" || entry == "all-major") return true;
    const int number = std::stoi(entry), entry_major = number / 10, entry_minor = number % 10;
    const bool has_ptx = entry.find("-real") == std::string::npos;
    const bool has_code = entry.find("-virtual") == std::string::npos;
    if (has_code && entry_major == major && entry_minor <= minor) return true;
    if (has_ptx && number <= 10 * major + minor) return true;
  }
  return false;
}

#if defined(GS_CUDA)

namespace {

/// Throws device with the operation and CUDA's own words.
void check(cudaError_t status, const char* operation) {
  if (status != cudaSuccess)
    throw Error(Fault::device, cat(operation, ": ", cudaGetErrorName(status), ": ", cudaGetErrorString(status)));
}

void log_failure(cudaError_t status, const char* operation) noexcept {
  if (status != cudaSuccess) log_error(cat(operation, ": ", cudaGetErrorName(status)));
}

std::string version_text(int version) { return cat(version / 1000, ".", version % 1000 / 10); }

}  // namespace

std::string cuda_obstacle(int index) {
  int driver = 0, runtime = 0, count = 0;
  (void)cudaRuntimeGetVersion(&runtime);
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return cat("no NVIDIA driver is loaded (this build needs one for CUDA ", version_text(runtime), " or newer)");
  const cudaError_t status = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();  // the failure is reported here, not by the next launch
  if (status == cudaErrorInsufficientDriver)
    return cat("the NVIDIA driver serves CUDA ", version_text(driver), ", this build needs ", version_text(runtime),
               ": update the driver");
  if (status != cudaSuccess) return cat("no usable GPU: ", cudaGetErrorString(status));
  if (index >= count) return cat("there is no GPU ", index, ": ", count, " visible");
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return cat("GPU ", index, " does not answer");
  if (!holds_code_for(GS_CUDA_ARCHITECTURES, properties.major, properties.minor))
    return cat("GPU ", index, " (", properties.name, ") is sm_", properties.major, properties.minor,
               ", and this build holds code for ", GS_CUDA_ARCHITECTURES,
               ": rebuild with -DCMAKE_CUDA_ARCHITECTURES=", properties.major, properties.minor);
  return "";
}

std::string cuda_description(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return cat(properties.name, ", sm_", properties.major, properties.minor, ", ",
             human_bytes(double(properties.totalGlobalMem)), ", ", properties.multiProcessorCount, " multiprocessors");
}

Offset cuda_available_bytes(int device) {
  std::size_t free = 0, total = 0;
  check(cudaSetDevice(device), "cudaSetDevice");
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return Offset(free);
}

std::string pci_address(Device device) {
  char address[32] = "";
  if (device.is_cuda()) check(cudaDeviceGetPCIBusId(address, sizeof address, device.index), "cudaDeviceGetPCIBusId");
  return address;
}

void* cuda_allocate(int device, Offset bytes) {
  void* memory = nullptr;
  check(cudaSetDevice(device), "cudaSetDevice");
  const cudaError_t status = cudaMalloc(&memory, std::size_t(bytes));
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // not sticky: the caller names the purpose
    return nullptr;
  }
  check(status, "cudaMalloc");
  // The legacy stream would not order this against our non-blocking streams: wait for it.
  check(cudaMemset(memory, 0, std::size_t(bytes)), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaMemset");
  return memory;
}

void cuda_release(void* memory) noexcept { log_failure(cudaFree(memory), "cudaFree"); }

void* cuda_allocate_mapped(int device, Offset bytes) {
  void* memory = nullptr;
  check(cudaSetDevice(device), "cudaSetDevice");
  const cudaError_t status = cudaHostAlloc(&memory, std::size_t(bytes), cudaHostAllocMapped | cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  check(status, "cudaHostAlloc");
  std::memset(memory, 0, std::size_t(bytes));
  return memory;
}

void cuda_release_mapped(void* memory) noexcept { log_failure(cudaFreeHost(memory), "cudaFreeHost"); }

StageRange::StageRange(const char* name) { nvtxRangePushA(name); }
StageRange::~StageRange() { nvtxRangePop(); }

Stream::Stream(Device device) {
  if (!device.is_cuda()) return;
  cudaStream_t stream = nullptr;
  check(cudaSetDevice(device.index), "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  handle_ = stream;
}

Stream::~Stream() {
  if (handle_) log_failure(cudaStreamDestroy(static_cast<cudaStream_t>(handle_)), "cudaStreamDestroy");
}

void wait(const Exec& exec) {
  if (exec.device.is_cuda()) check(cudaStreamSynchronize(static_cast<cudaStream_t>(exec.stream)), "wait for the GPU");
}

void copy_bytes(void* to, const void* from, Offset bytes, const Exec& exec) {
  if (bytes == 0) return;
  if (!exec.device.is_cuda()) {
    std::memcpy(to, from, std::size_t(bytes));
    return;
  }
  check(cudaMemcpyAsync(to, from, std::size_t(bytes), cudaMemcpyDefault, static_cast<cudaStream_t>(exec.stream)),
        "cudaMemcpyAsync");
}

void clear_bytes(void* memory, Offset bytes, const Exec& exec) {
  if (bytes == 0) return;
  if (!exec.device.is_cuda()) {
    std::memset(memory, 0, std::size_t(bytes));
    return;
  }
  check(cudaMemsetAsync(memory, 0, std::size_t(bytes), static_cast<cudaStream_t>(exec.stream)), "cudaMemsetAsync");
}

#else

namespace {
constexpr const char* kNoCuda = "this build has no CUDA (rebuild with -DGS_CUDA=ON where nvcc is)";
}

std::string cuda_obstacle(int) { return kNoCuda; }
std::string cuda_description(int) { throw Error(Fault::device, kNoCuda); }
std::string pci_address(Device) { return ""; }
Offset cuda_available_bytes(int) { throw Error(Fault::device, kNoCuda); }
void* cuda_allocate(int, Offset) { throw Error(Fault::device, kNoCuda); }
void cuda_release(void*) noexcept {}
void* cuda_allocate_mapped(int, Offset) { throw Error(Fault::device, kNoCuda); }
void cuda_release_mapped(void*) noexcept {}
StageRange::StageRange(const char*) {}
StageRange::~StageRange() {}
Stream::Stream(Device device) {
  if (device.is_cuda()) throw Error(Fault::device, kNoCuda);
}
Stream::~Stream() = default;
void wait(const Exec&) {}
void copy_bytes(void* to, const void* from, Offset bytes, const Exec&) {
  if (bytes > 0) std::memcpy(to, from, std::size_t(bytes));
}
void clear_bytes(void* memory, Offset bytes, const Exec&) {
  if (bytes > 0) std::memset(memory, 0, std::size_t(bytes));
}

#endif

}  // namespace gs
