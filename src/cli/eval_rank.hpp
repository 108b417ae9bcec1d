// eval rank: a page of its own.
#pragma once

#include "src/cli/commands.hpp"

namespace gs::cli {

void add_rank(CLI::App& eval, Common& common);

}  // namespace gs::cli
