// The command line: `graphscale COMMAND ...`.
#pragma once

#include "graphscale/core.hpp"

namespace gs {

/// Runs one command; data to stdout, everything else to stderr. Returns the exit status (0, or a Fault's number).
int run_command_line(int argc, char** argv);

}  // namespace gs
