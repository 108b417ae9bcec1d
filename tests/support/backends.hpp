// The backends that this machine can run, so that one test body meets them all.
#pragma once

#include <gtest/gtest.h>

#include "kernels/ops.hpp"

namespace gs {

enum class Backend { cpu, emulated, cuda };

inline const char* name_of(Backend backend) {
  return backend == Backend::cpu ? "cpu" : backend == Backend::emulated ? "emulated" : "cuda";
}

/// A device, its memory and its operations. On CUDA the tests' values travel through `Values`.
struct TestDevice {
  explicit TestDevice(Backend backend, int threads = 1)
      : device{backend == Backend::cuda ? Device::Kind::cuda : Device::Kind::cpu, 0},
        ledger(device),
        stream(device),
        exec{device, threads, stream.get(), &ledger},
        ops(backend == Backend::emulated ? kernels::emulated::ops() : kernels::ops(exec)) {}

  Device device;
  MemoryLedger ledger;
  Stream stream;
  Exec exec;
  const kernels::Ops& ops;
};

/// Values on a test device between guard values; `host` checks the guards and brings the values back.
template <class T>
class Values {
 public:
  static constexpr Offset kGuard = 64 / Offset(sizeof(T)) > 0 ? 64 / Offset(sizeof(T)) : 1;

  Values(TestDevice& on, std::vector<T> values) : on_(on), size_(Offset(values.size())) {
    std::vector<T> all(std::size_t(2 * kGuard), guard());
    all.insert(all.begin() + kGuard, values.begin(), values.end());
    buffer_ = Buffer<T>(on.ledger, Offset(all.size()), "test values");
    copy_bytes(buffer_.data(), all.data(), Offset(all.size() * sizeof(T)), on.exec);
    wait(on.exec);
  }
  Values(TestDevice& on, Offset count, T value) : Values(on, std::vector<T>(std::size_t(count), value)) {}

  Span<T> span() const { return {buffer_.data() + kGuard, size_}; }

  std::vector<T> host() const {
    std::vector<T> all(std::size_t(size_ + 2 * kGuard));
    wait(on_.exec);
    copy_bytes(all.data(), buffer_.data(), Offset(all.size() * sizeof(T)), on_.exec);
    wait(on_.exec);
    for (Offset i = 0; i < kGuard; ++i) {
      EXPECT_EQ(std::memcmp(&all[std::size_t(i)], &guard_, sizeof(T)), 0) << "a guard before the values was written";
      EXPECT_EQ(std::memcmp(&all[all.size() - 1 - std::size_t(i)], &guard_, sizeof(T)), 0)
          << "a guard after the values was written";
    }
    return {all.begin() + kGuard, all.end() - kGuard};
  }

 private:
  static T guard() {
    T value;
    std::memset(static_cast<void*>(&value), 0x5A, sizeof value);
    return value;
  }
  TestDevice& on_;
  Offset size_;
  T guard_ = guard();
  Buffer<T> buffer_;
};

/// A suite over the backends; those that this machine lacks are skipped with the reason.
class OnBackends : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (GetParam() != Backend::cuda) return;
    try {
      choose_device("cuda");
    } catch (const Error& error) {
      GTEST_SKIP() << "cuda: " << error.what();
    }
  }
};

inline std::string backend_name(const testing::TestParamInfo<Backend>& info) { return name_of(info.param); }

#define GS_ON_ALL_BACKENDS(suite)                                                                             \
  INSTANTIATE_TEST_SUITE_P(Backends, suite,                                                                   \
                           testing::Values(::gs::Backend::cpu, ::gs::Backend::emulated, ::gs::Backend::cuda), \
                           ::gs::backend_name)

}  // namespace gs
