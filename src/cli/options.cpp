#include <iostream>

#include "graphscale/config.hpp"

#include "src/cli/commands.hpp"

namespace gs::cli {

void add_options(CLI::App& app, Common&) {
  struct Arguments {
    bool json = false, schema = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *app.add_subcommand("options", "List every option of a training run");
  CLI::Option* const json = command.add_flag("--json", arguments->json, "as a JSON array");
  command.add_flag("--json-schema", arguments->schema, "the JSON schema of a configuration file")->excludes(json);
  command.callback([arguments] {
    std::cout << (arguments->json ? options_json() : arguments->schema ? options_json_schema() : options_text());
  });
}

}  // namespace gs::cli
