#include "src/exchange/nccl_library.hpp"

#if defined(GS_NCCL)
#include <dlfcn.h>

namespace gs {
namespace {

constexpr const char* kFile = "libnccl.so.2";
constexpr int kOldest = NCCL_VERSION(2, 18, 1);  // non-blocking communicators that can be finalised and aborted

template <class Function>
void find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) throw Error(Fault::device, cat(kFile, " has no ", name, ": install NCCL 2.18 or newer"));
}

NcclLibrary load() {
  void* file = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (!file)
    throw Error(Fault::device, cat("no NCCL is found (", dlerror(),
                                   "): install it (Debian, Ubuntu: libnccl2), or put "
                                   "its folder on LD_LIBRARY_PATH"));
  NcclLibrary nccl;
  find(file, nccl.get_version, "ncclGetVersion");
  int version = 0;
  nccl.get_version(&version);
  if (version < kOldest)
    throw Error(Fault::device, cat(kFile, " is NCCL version code ", version, "; ", kOldest, " or newer is needed"));
  find(file, nccl.get_error_string, "ncclGetErrorString");
  find(file, nccl.get_last_error, "ncclGetLastError");
  find(file, nccl.get_unique_id, "ncclGetUniqueId");
  find(file, nccl.comm_init_rank_config, "ncclCommInitRankConfig");
  find(file, nccl.comm_get_async_error, "ncclCommGetAsyncError");
  find(file, nccl.comm_finalize, "ncclCommFinalize");
  find(file, nccl.comm_destroy, "ncclCommDestroy");
  find(file, nccl.comm_abort, "ncclCommAbort");
  find(file, nccl.group_start, "ncclGroupStart");
  find(file, nccl.group_end, "ncclGroupEnd");
  find(file, nccl.send, "ncclSend");
  find(file, nccl.recv, "ncclRecv");
  find(file, nccl.all_reduce, "ncclAllReduce");
  return nccl;
}

}  // namespace

const NcclLibrary& nccl_library() {
  static const NcclLibrary nccl = load();
  return nccl;
}

}  // namespace gs
#endif
