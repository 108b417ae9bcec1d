#include "graphscale/train.hpp"

#include <nlohmann/json.hpp>

#include "src/cli/commands.hpp"
#include "src/cli/settings.hpp"

namespace gs::cli {
namespace {

struct TrainArguments {
  std::string graph, version, run;
  bool overwrite = false, resume = false;
  ConfigArguments config;
};

/// The configuration as it takes effect, a line a section.
void log_config(const Config& config) {
  const auto sections = nlohmann::ordered_json::parse(to_json(config));
  for (const auto& [section, options] : sections.items()) {
    std::string line;
    for (const auto& [name, value] : options.items())
      line += cat(line.empty() ? "" : ", ", name, " ", value.is_string() ? value.get<std::string>() : value.dump());
    log_info(cat("config: ", section, ": ", line));
  }
}

void run_train(const TrainArguments& arguments) {
  const fs::path run = arguments.run;
  const Existing existing = arguments.resume      ? Existing::resume
                            : arguments.overwrite ? Existing::overwrite
                                                  : Existing::refuse;
  std::string file = arguments.config.file, version = arguments.version;
  if (arguments.resume) {  // as the run began
    if (file.empty() && fs::exists(run / kConfigFile)) file = (run / kConfigFile).string();
    if (version.empty()) version = graph_version_of(run);
  }
  const Config config = read_config(file, arguments.config.settings);
  const World world = find_world(config);
  if (world.rank > 0) set_quiet(true);  // rank 0 speaks for all
  if (world.transport == World::Transport::local) check_run_folder(run, existing);
  log_config(config);
  for (const std::string& idle : idle_options(config)) log_warn(idle);
  const Graph graph = Graph::open(arguments.graph, version);
  catch_stop_signals();
  train(graph, arguments.graph, config, run, existing);
}

}  // namespace

void add_train(CLI::App& app, Common&) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "Train embeddings of a graph store into a run folder");
  command->add_option("--graph", arguments->graph, "graph store, as `graph ingest` made it")
      ->required()
      ->option_text("STORE");
  command->add_option("--graph-version", arguments->version, "version of the store; default: the current one")
      ->option_text("VERSION");
  command->add_option("--out", arguments->run, "run folder: config.json, metrics.jsonl, embeddings/, checkpoints/")
      ->required()
      ->option_text("RUN");
  command->add_flag("--overwrite", arguments->overwrite, "replace an earlier run in --out");
  command
      ->add_flag(
          "--resume", arguments->resume,
          "go on with the run in --out at its newest sound checkpoint, with its config.json where no --config is "
          "given; begins the run where there is none")
      ->excludes("--overwrite");
  add_config_options(*command, arguments->config);
  command->callback([arguments] { run_train(*arguments); });
}

}  // namespace gs::cli
