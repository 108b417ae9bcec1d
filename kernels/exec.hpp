// Where a body runs: the only <<< and the only parallel loops of kernels/.
//
// Every kernels/X.cu is compiled once a backend, in a namespace of its own so that the linker merges nothing:
//   cuda      nvcc; a block's threads are a team
//   cpu       the host compiler; a team is one thread, loops are SIMD
//   emulated  the host compiler; a team is four real threads with a barrier: a missing sync is a race that TSan finds
#pragma once

#include <type_traits>

#include "graphscale/core.hpp"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#define GS_DEV __device__ __forceinline__
#else
#include <barrier>
#define GS_DEV inline __attribute__((always_inline))
#endif

namespace gs::kernels::GS_BACKEND {

inline constexpr Offset kNone = -1;

/// Four floats that move as one 16-byte access.
struct alignas(16) Pack4 {
  float x, y, z, w;
};
inline constexpr int kPack = 4;

#if defined(__CUDACC__)

inline constexpr bool kStaged = true;  ///< rows are copied into the team's scratch before they are used
inline constexpr int kFlock = 1;       ///< walkers that one thread moves together
inline constexpr int kThreads = 256;   ///< of a block; 8 warps hide shared-memory latency at 3 blocks a multiprocessor
inline constexpr int kMaxBlocks = 1 << 16;

struct Team {
  char* scratch;
  GS_DEV int rank() const { return int(threadIdx.x); }
  GS_DEV int size() const { return int(blockDim.x); }
  GS_DEV void sync() const { __syncthreads(); }
};

GS_DEV void prefetch(const void*) {}  // other warps hide the latency

GS_DEV void add_to(float* target, float value) { atomicAdd(target, value); }

/// Four additive writes; one vector reduction on sm_90 and newer.
GS_DEV void add_to(float* target, Pack4 v) {
#if __CUDA_ARCH__ >= 900
  atomicAdd(reinterpret_cast<float4*>(target), make_float4(v.x, v.y, v.z, v.w));
#else
  atomicAdd(target, v.x), atomicAdd(target + 1, v.y), atomicAdd(target + 2, v.z), atomicAdd(target + 3, v.w);
#endif
}

inline void check_launch(const char* op, Offset work) {
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess)
    throw Error(Fault::device, cat(op, ": launch over ", work, " items: ", cudaGetErrorName(status)));
}

template <class Body>
__global__ void flock_kernel(Body body, Offset count) {
  const Offset step = Offset(gridDim.x) * blockDim.x;
  for (Offset i = Offset(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) body(i, 1);
}

/// body(first, count) for flocks of at most kFlock items that cover [0, items), in any order.
template <class Body>
void for_each_flock(const char* op, Offset items, const Body& body, const Exec& exec) {
  if (items == 0) return;  // an empty grid is a launch error
  const Offset blocks = (items + kThreads - 1) / kThreads;
  flock_kernel<<<unsigned(blocks < kMaxBlocks ? blocks : kMaxBlocks), kThreads, 0,
                 static_cast<cudaStream_t>(exec.stream)>>>(body, items);
  check_launch(op, items);
}

template <class Body>
__global__ void __launch_bounds__(kThreads, 2) team_kernel(Body body, Offset items) {
  extern __shared__ __align__(16) char scratch[];
  const Team team{scratch};
  for (Offset i = blockIdx.x; i < items; i += gridDim.x) {
    body(team, i, kNone);
    team.sync();  // the next item reuses the scratch
  }
}

/// The most scratch a team can have, in bytes.
inline Offset scratch_limit(const Exec& exec) {
  int bytes = 0;
  const cudaError_t status = cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, exec.device.index);
  if (status != cudaSuccess) throw Error(Fault::device, cat("shared memory limit: ", cudaGetErrorName(status)));
  return bytes;
}

/// body(team, i, next) for every i in [0, items), each by one team with `scratch_bytes` of scratch, in any order.
/// `next` is the item that the same team does after it, or kNone: what a CPU thread may ask memory for meanwhile.
template <class Body>
void for_each_team(const char* op, Offset items, Offset scratch_bytes, const Body& body, const Exec& exec) {
  if (items == 0) return;
  if (const cudaError_t status =
          cudaFuncSetAttribute(team_kernel<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(scratch_bytes));
      status != cudaSuccess)
    throw Error(Fault::device, cat(op, ": ", scratch_bytes, " bytes of shared memory: ", cudaGetErrorName(status)));
  team_kernel<<<unsigned(items < kMaxBlocks ? items : kMaxBlocks), kThreads, std::size_t(scratch_bytes),
                static_cast<cudaStream_t>(exec.stream)>>>(body, items);
  check_launch(op, items);
}

#else  // ------------------------------------------------------------------------------------ cpu and emulated

#if defined(GS_EMULATED)
inline constexpr bool kStaged = true;
inline constexpr int kFlock = 3;  // small and odd, so that ends of flocks are met
inline constexpr int kTeamThreads = 4;
#else
inline constexpr bool kStaged = false;
inline constexpr int kFlock =
    64;  // walkers in flight a thread: enough to hide memory latency (32 to 128 measure alike)
#endif

GS_DEV void prefetch(const void* address) { __builtin_prefetch(address); }

#if defined(GS_EMULATED)

class Team {
 public:
  Team(char* memory, int rank, std::barrier<>& barrier) : scratch(memory), rank_(rank), barrier_(&barrier) {}
  char* scratch;
  int rank() const { return rank_; }
  int size() const { return kTeamThreads; }
  void sync() const { barrier_->arrive_and_wait(); }

 private:
  int rank_;
  std::barrier<>* barrier_;
};

GS_DEV void add_to(float* target, float value) {
  std::atomic_ref<float>(*target).fetch_add(value, std::memory_order_relaxed);
}
GS_DEV void add_to(float* target, Pack4 v) {
  add_to(target, v.x), add_to(target + 1, v.y), add_to(target + 2, v.z), add_to(target + 3, v.w);
}

inline Offset scratch_limit(const Exec&) { return 96 << 10; }  // small, so that tests meet rows cut into slabs

template <class Body>
void for_each_team(const char*, Offset items, Offset scratch_bytes, const Body& body, const Exec&) {
  std::vector<Pack4> scratch(std::size_t(scratch_bytes / Offset(sizeof(Pack4)) + 1));
  std::barrier<> barrier(kTeamThreads);
  on_threads(kTeamThreads, [&](int rank) {
    const Team team(reinterpret_cast<char*>(scratch.data()), rank, barrier);
    for (Offset i = 0; i < items; ++i) {
      body(team, i, kNone);
      team.sync();
    }
  });
}

#else

struct Team {
  char* scratch;
  int rank() const { return 0; }
  int size() const { return 1; }
  void sync() const {}
};

GS_DEV void add_to(float* target, float value) { *target += value; }

inline Offset scratch_limit(const Exec&) { return 1 << 20; }

/// Threads take pieces of kPiece items.
template <class Body>
void for_each_team(const char*, Offset items, Offset scratch_bytes, const Body& body, const Exec& exec) {
  constexpr Offset kPiece = 32;  // long enough that the one item a piece without prefetch is lost in the noise
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<std::vector<Line>> scratch(std::size_t(exec.threads));
  parallel_for(exec.threads, items, kPiece, [&](Offset first, Offset last, int thread) {
    auto& lines = scratch[std::size_t(thread)];
    if (lines.empty()) lines.resize(std::size_t(scratch_bytes / 64 + 1));
    const Team team{lines.data()->bytes};
    for (Offset i = first; i < last; ++i) body(team, i, i + 1 < last ? i + 1 : kNone);
  });
}

#endif

template <class Body>
void for_each_flock(const char*, Offset items, const Body& body, const Exec& exec) {
  parallel_for(exec.threads, items, 16 * kFlock, [&](Offset first, Offset last, int) {
    for (Offset i = first; i < last; i += kFlock) body(i, int(last - i < kFlock ? last - i : kFlock));
  });
}

#endif

}  // namespace gs::kernels::GS_BACKEND
