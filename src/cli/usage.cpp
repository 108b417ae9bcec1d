#include "src/cli/usage.hpp"

#include "graphscale/config.hpp"

namespace gs::cli {
namespace {

std::string full_name(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent ? full_name(*parent) + " " : "") + command.get_name();
}

std::string hint(const CLI::App& command, const std::string& near) {
  return near.empty() ? "; see `" + full_name(command) + " --help`" : "; did you mean " + near + "?";
}

std::string unknown_flag(const CLI::App& command, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& flag : option->get_lnames()) flags.push_back("--" + flag);
  return "unknown option " + name + hint(command, nearest_name(name, flags));
}

std::string unknown_argument(const CLI::App& command, const std::string& argument) {
  if (argument.size() > 1 && argument.front() == '-') return unknown_flag(command, argument);
  std::vector<std::string> commands;
  for (const CLI::App* subcommand : command.get_subcommands({})) commands.push_back(subcommand->get_name());
  return (commands.empty() ? "unexpected argument " : "unknown command ") + argument +
         hint(command, nearest_name(argument, commands));
}

}  // namespace

const CLI::App& chosen_command(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

std::string usage_sentence(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* command = &program;
  while (command->remaining().empty() && !command->get_subcommands().empty())
    command = command->get_subcommands().back();
  const std::string place = full_name(*command) + ": ";
  if (const std::vector<std::string> unknown = command->remaining(); !unknown.empty())
    return place + unknown_argument(*command, unknown.front());

  const std::string what = error.what();
  const std::string_view missing = ": 1 required ";  // "--dim: 1 required INT missing"
  if (const std::size_t end = what.find(missing); end != std::string::npos)
    return place + what.substr(0, end) + " needs a value" + hint(*command, "");
  return place + what + hint(*command, "");
}

}  // namespace gs::cli
