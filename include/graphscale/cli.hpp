// The command line: `graphscale COMMAND ...`.
#pragma once

#include "graphscale/core.hpp"

namespace gs {

/// Runs one command; data to stdout, everything else to stderr, an error as one line. Returns the exit status: 0, or a
/// Fault's number; also output where stdout did not take all that was written.
int run_command_line(int argc, char** argv);

}  // namespace gs
