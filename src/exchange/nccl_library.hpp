// NCCL, found when it is first asked for: one binary runs with and without it. Its types are those of the nccl.h that
// this build saw; builds without CUDA or without nccl.h have no NCCL.
#pragma once

#include "graphscale/core.hpp"

#if defined(GS_CUDA) && __has_include(<nccl.h>)
#define GS_NCCL 1
#include <nccl.h>

namespace gs {

/// The functions in use, under their names without "nccl".
struct NcclLibrary {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclCommFinalize) comm_finalize;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) recv;
  decltype(&ncclAllReduce) all_reduce;
};

/// Throws device: no libnccl.so.2 (in the loader's words), or one that is too old.
const NcclLibrary& nccl_library();

}  // namespace gs
#endif
