// What the control groups of this process allow it: its own and those around it, each with limits of its own.
#pragma once

#include <limits>
#include <string>

#include "graphscale/core.hpp"

namespace gs {

inline constexpr Offset kUnlimited = std::numeric_limits<Offset>::max();

HostMemory cgroup_memory();  ///< of the group that leaves least; kUnlimited where none has a limit

double cgroup_processors();  ///< processor seconds a second; infinity where there is no quota

/// The number behind `key` in a file of lines `key number [unit]`.
Offset number_of(const std::string& path, const std::string& key, Offset otherwise);

}  // namespace gs
