// One function a command family, each in a file of its own; it adds its subcommand to the program and sets what runs.
// What runs throws gs::Error, writes its data to stdout (std::cout or stdio) and returns nothing.
#pragma once

#include <CLI/CLI.hpp>

namespace gs::cli {

/// Options that every command has (`--threads`, `--quiet`), filled before a command runs. They are added to each
/// command after it was made, unless it has an option of that name itself.
struct Common {
  int threads = 0;  ///< as given; 0: all that this process may use
  bool quiet = false;
  int thread_count() const;  ///< threads, or hardware_threads()
};

/// A check of options: CLI11 itself reads "-1" as 2^64 - 1.
inline std::string whole_number(const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? "" : text + " is not a whole number from 0 on";
}

void add_graph_ingest(CLI::App& graph, Common& common);  ///< graph ingest
void add_graph_store(CLI::App& graph, Common& common);   ///< graph generate, info, versions, rollback, split
void add_graph_diff(CLI::App& graph);                    ///< graph diff
void add_train(CLI::App& app, Common& common);
void add_plan(CLI::App& app, Common& common);
void add_eval(CLI::App& app, Common& common);  ///< eval classify, eval link, eval rank
void add_query(CLI::App& app, Common& common);
void add_export(CLI::App& app, Common& common);
void add_options(CLI::App& app, Common& common);

}  // namespace gs::cli
