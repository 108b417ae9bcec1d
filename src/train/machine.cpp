#include "src/train/machine.hpp"

#include <dlfcn.h>

namespace gs {
namespace {

// Of nvml.h, whose interface is stable.
constexpr int kSuccess = 0;
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;
};

struct Nvml {
  int (*init)() = nullptr;
  int (*find_card)(const char* pci_address, void** card) = nullptr;
  int (*utilization)(void* card, Utilization* out) = nullptr;
  int (*memory)(void* card, Memory* out) = nullptr;
  bool is_ready = false;
};

template <class Function>
bool find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

const Nvml& nvml() {
  static const Nvml loaded = [] {
    Nvml it;
    void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    it.is_ready = library && find(library, it.init, "nvmlInit_v2") &&
                  find(library, it.find_card, "nvmlDeviceGetHandleByPciBusId_v2") &&
                  find(library, it.utilization, "nvmlDeviceGetUtilizationRates") &&
                  find(library, it.memory, "nvmlDeviceGetMemoryInfo") && it.init() == kSuccess;
    return it;
  }();
  return loaded;
}

}  // namespace

Card::Card(Device device) {
  if (!device.is_cuda() || !nvml().is_ready) return;
  if (nvml().find_card(pci_address(device).c_str(), &handle_) != kSuccess) handle_ = nullptr;
}

std::optional<CardUse> Card::use() const {
  if (!handle_) return {};
  CardUse use;
  Utilization utilization{};
  Memory memory{};
  if (nvml().utilization(handle_, &utilization) == kSuccess) use.busy_share = utilization.gpu / 100.0;
  if (nvml().memory(handle_, &memory) == kSuccess)
    use.used_bytes = Offset(memory.used), use.total_bytes = Offset(memory.total);
  return use;
}

}  // namespace gs
