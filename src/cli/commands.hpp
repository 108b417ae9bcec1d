// One function a command family, each in a file of its own; it adds its subcommand to the program and sets what runs.
#pragma once

#include <CLI/CLI.hpp>

namespace gs::cli {

/// Options that every command has, filled before a command runs.
struct Common {
  int threads = 0;  ///< as given; 0: all that this process may use
  bool quiet = false;
  int thread_count() const;  ///< threads, or hardware_threads()
};

void add_graph_ingest(CLI::App& graph, Common& common);  ///< graph ingest
void add_graph_store(CLI::App& graph, Common& common);   ///< graph generate, info, versions, rollback, split
void add_train(CLI::App& app, Common& common);
void add_eval(CLI::App& app, Common& common);            ///< eval classify, eval link
void add_query(CLI::App& app, Common& common);
void add_export(CLI::App& app, Common& common);
void add_options(CLI::App& app, Common& common);

}  // namespace gs::cli
