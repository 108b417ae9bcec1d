// The few calls of core that differ between a build with CUDA and one without.
#pragma once

#include "graphscale/core.hpp"

namespace gs {

Offset cuda_available_bytes(int device);
void* cuda_allocate(int device, Offset bytes);         ///< zeroed; nullptr where it does not fit
void cuda_release(void* memory) noexcept;              ///< a failure goes to the log
void* cuda_allocate_mapped(int device, Offset bytes);  ///< the same of pinned host memory
void cuda_release_mapped(void* memory) noexcept;

/// Do `architectures` ("80-real,90", as CMake lists them) hold code for compute capability major.minor? Machine code
/// runs on its own major version from its minor on; PTX on everything newer.
bool holds_code_for(const std::string& architectures, int major, int minor);

/// Empty where GPU `index` can run this program, else the reason in one line.
std::string cuda_obstacle(int index);
std::string cuda_description(int index);

}  // namespace gs
