#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <new>

#include "graphscale/cli.hpp"

#include "src/cli/commands.hpp"
#include "src/cli/help_page.hpp"
#include "src/cli/usage.hpp"

namespace gs {
namespace cli {
namespace {

// CLI11 takes an argument in brackets, "[a,b]", for a list of two; here it is a name like any other. A byte put behind
// it keeps it whole while the line is parsed, and is taken off before anyone sees the value.
constexpr char kKeptWhole = '\x01';

std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> reversed;  // as CLI11 wants them
  for (int i = argc - 1; i > 0; --i) {
    reversed.emplace_back(argv[i]);
    if (reversed.back().size() > 1 && reversed.back().back() == ']') reversed.back() += kKeptWhole;
  }
  return reversed;
}

void restore_bracketed(std::string& value) {
  if (value.size() > 1 && value.back() == kKeptWhole) value.pop_back();
}

void add_common_options(CLI::App& command, Common& common) {
  if (!command.get_option_no_throw("--threads"))
    command.add_option("--threads", common.threads, "CPU threads; 0: all that this process may use")
        ->check(CLI::Range(0, 4096))
        ->option_text("N");
  if (!command.get_option_no_throw("--quiet"))
    command.add_flag_callback(
        "--quiet", [&common] { set_quiet(common.quiet = true); }, "only warnings and errors");
}

void finish(CLI::App& command, Common& common) {
  for (CLI::App* subcommand : command.get_subcommands({})) {
    subcommand->group("Commands");
    finish(*subcommand, common);
  }
  if (command.get_subcommands({}).empty())
    add_common_options(command, common);
  else
    command.require_subcommand(1);
  for (CLI::Option* option : command.get_options())
    option->transform([](std::string value) { return restore_bracketed(value), value; }, "");
}

void add_commands(CLI::App& program, Common& common) {
  CLI::App& graph = *program.add_subcommand("graph", "Make, inspect and split graph stores");
  add_graph_ingest(graph, common);
  add_graph_store(graph, common);
  add_graph_diff(graph);
  add_train(program, common);
  add_plan(program, common);
  add_eval(program, common);
  add_query(program, common);
  add_export(program, common);
  add_options(program, common);
  finish(program, common);
}

std::string version_line() {
#if defined(GS_CUDA)
  return cat("graphscale ", kVersion, " (CPU, CUDA)\n");
#else
  return cat("graphscale ", kVersion, " (CPU)\n");
#endif
}

int run(int argc, char** argv) {
  Common common;
  CLI::App program("Trains one vector for every node of a graph", "graphscale");
  program.formatter(std::make_shared<HelpPage>());
  program.set_help_flag("-h,--help", "print this page");
  program.set_version_flag("--version", version_line(), "print the version and what it was built for");
  add_commands(program, common);
  program.footer(
      "`graphscale COMMAND --help` explains a command. Exit status: 0; 1 internal, 2 usage or configuration,\n"
      "3 input, 4 memory, 5 device, 6 communication, 7 output.");

  try {
    program.parse(arguments_of(argc, argv));
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what();
  } catch (const CLI::Success&) {  // --help
    std::cout << program.help();
  } catch (const CLI::RequiredError& error) {
    const CLI::App& command = chosen_command(program);
    if (command.get_subcommands({}).empty() || !command.remaining().empty())
      throw Error(Fault::usage, usage_sentence(program, error));
    std::cerr << program.help();  // a command was left out: the list of them is the answer
    return int(Fault::usage);
  } catch (const CLI::ParseError& error) {
    throw Error(Fault::usage, usage_sentence(program, error));
  }
  return 0;
}

/// A closed stdin, stdout or stderr would give its number to the next file that is opened, and prints would go there.
/// It is opened here such that using it still fails.
void occupy_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && ::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) != number)
      throw Error(Fault::output, cat("/dev/null: cannot be opened: ", std::strerror(errno)));
}

void flush_stdout() {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::cout.good() && !std::ferror(stdout)) return;
  throw Error(Fault::output,
              cat("stdout: writing failed: ", errno ? std::strerror(errno) : "is the disk full, or its reader gone?"));
}

/// Control characters as \xNN: whatever a name or a path holds, an error is one line.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    char code[5];
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F)
      line += c;
    else if (c != kKeptWhole)
      line.append(code, std::size_t(std::snprintf(code, sizeof code, "\\x%02X", static_cast<unsigned>(c) & 0xFF)));
  }
  return line;
}

int fail(Fault fault, const std::string& sentence) {
  log_error(one_line(sentence));
  return int(fault);
}

}  // namespace

int Common::thread_count() const { return threads > 0 ? threads : hardware_threads(); }

}  // namespace cli

int run_command_line(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an output error with its status, not a silent death
  try {
    cli::occupy_standard_descriptors();
    const int status = cli::run(argc, argv);
    cli::flush_stdout();
    return status;
  } catch (const Error& error) {
    return cli::fail(error.fault, error.what());
  } catch (const std::bad_alloc&) {
    return cli::fail(Fault::memory,
                     "memory ran out in a place that had not been planned for; give the process more, or "
                     "choose a smaller graph or model");
  } catch (const std::exception& error) {
    return cli::fail(Fault::internal, cat("internal: ", error.what()));
  }
}

}  // namespace gs
