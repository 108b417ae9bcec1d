// How help pages look: usage first, names on the left, wrapped sentences on the right.
#pragma once

#include <CLI/CLI.hpp>

namespace gs::cli {

class HelpPage : public CLI::Formatter {
 public:
  HelpPage();
  std::string make_description(const CLI::App* command) const override;
  std::string make_help(const CLI::App* command, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace gs::cli
