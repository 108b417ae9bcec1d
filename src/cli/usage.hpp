// What is wrong with a command line, in one sentence.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace gs::cli {

/// The last command that the line named: `graph ingest` of `graphscale graph ingest --foo`; the program where none.
const CLI::App& chosen_command(const CLI::App& program);

/// A flag or command that is unknown comes first, with the nearest valid one; else what CLI11 objects to.
std::string usage_sentence(const CLI::App& program, const CLI::ParseError& error);

}  // namespace gs::cli
