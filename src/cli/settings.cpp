#include "src/cli/settings.hpp"

namespace gs::cli {
namespace {

/// Adds one flag for an option; a group of "" hides it from the help page.
void add_flag_of(CLI::App& command, const OptionText& option, const std::string& flag, const std::string& group,
                 ConfigArguments& given) {
  const auto keep = [&given, name = option.name, flag](const CLI::results_t& values) {
    for (const std::string& value : values) given.settings.push_back({name, value, flag});
    return true;
  };
  const std::string range = option.range.empty() ? "" : "; " + option.range;
  CLI::Option* const added =
      command.add_option(flag, keep, cat(option.help, " [default ", option.default_value, range, "]"))
          ->group(group)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);  // read_config refuses a second one by name
  if (option.type == "boolean")
    added->expected(0, 1)->default_str("true")->option_text("[yes|no]");
  else
    added->expected(1)->option_text(option.type == "string" ? "NAME" : "N");
}

void add_set(CLI::App& command, ConfigArguments& given) {
  const auto keep = [&given](const CLI::results_t& assignments) {
    for (const std::string& assignment : assignments) {
      const std::size_t equals = assignment.find('=');
      if (equals == std::string::npos || equals == 0)
        throw Error(Fault::usage, cat("--set ", assignment, ": expected SECTION.NAME=VALUE, as in model.dim=64"));
      const std::string name = assignment.substr(0, equals);
      given.settings.push_back({name, assignment.substr(equals + 1), "--set " + name});
    }
    return true;
  };
  command.add_option("--set", keep, "any option by its full name, as in model.dim=64; may be given several times")
      ->group("Configuration (file, then flags; `graphscale options` explains each)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("SECTION.NAME=VALUE");
}

}  // namespace

void add_config_options(CLI::App& command, ConfigArguments& given) {
  command.add_option("--config", given.file, "JSON file of options by section")
      ->group("Configuration (file, then flags; `graphscale options` explains each)")
      ->option_text("FILE");
  add_set(command, given);
  for (const OptionText& option : option_texts()) {
    add_flag_of(command, option, "--" + option.flag, "Section " + option.section, given);
    add_flag_of(command, option, "--" + option.name, "", given);
  }
}

}  // namespace gs::cli
