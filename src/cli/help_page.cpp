#include "src/cli/help_page.hpp"

namespace gs::cli {
namespace {

constexpr std::size_t kNameColumns = 30, kPageColumns = 100;

/// "  name   sentence", the sentence wrapped at blanks and indented below itself.
std::string entry(const std::string& name, const std::string& sentence) {
  std::string text = "  " + name;
  std::size_t column = text.size();
  const auto indent = [&] {
    text += '\n' + std::string(kNameColumns, ' ');
    column = kNameColumns;
  };
  if (column + 2 > kNameColumns) {
    indent();
  } else {
    text.resize(kNameColumns, ' ');
    column = kNameColumns;
  }
  for (std::size_t start = 0; start < sentence.size();) {
    const std::size_t end = std::min(sentence.find(' ', start), sentence.size());
    const std::size_t length = end - start;
    if (column > kNameColumns && column + 1 + length > kPageColumns) indent();
    if (column > kNameColumns) text += ' ', ++column;
    text.append(sentence, start, length);
    column += length;
    start = end + 1;
  }
  return text + '\n';
}

}  // namespace

HelpPage::HelpPage() {
  label("Positionals", "Arguments");
  label("SUBCOMMAND", "COMMAND");
}

std::string HelpPage::make_description(const CLI::App* command) const { return command->get_description() + ".\n\n"; }

std::string HelpPage::make_help(const CLI::App* command, std::string name, CLI::AppFormatMode mode) const {
  return CLI::detail::find_and_replace(Formatter::make_help(command, name, mode), "\n\n\n", "\n\n");
}

std::string HelpPage::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
}

std::string HelpPage::make_option_opts(const CLI::Option* option) const {
  const bool takes_value = option->get_type_size() != 0 && !option->get_positional();
  const std::string value = option->get_option_text().empty() ? option->get_type_name() : option->get_option_text();
  return (takes_value ? " " + value : "") + (option->get_required() && !option->get_positional() ? " (required)" : "");
}

std::string HelpPage::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

}  // namespace gs::cli
