// Configuration options as flags of a command.
#pragma once

#include <CLI/CLI.hpp>

#include "graphscale/config.hpp"

namespace gs::cli {

/// What a command line says about the configuration; for read_config.
struct ConfigArguments {
  std::string file;               ///< of --config, or empty
  std::vector<Setting> settings;  ///< one for each flag and --set
};

/// Adds --config FILE, --set SECTION.NAME=VALUE (any number of times) and two flags an option, --walk-length and
/// --sampler.walk_length, grouped by section; a boolean may stand alone. Values are kept as text: read_config judges
/// them. `given` is filled while the line is parsed; it must outlive that.
void add_config_options(CLI::App& command, ConfigArguments& given);

}  // namespace gs::cli
