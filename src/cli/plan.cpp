#include "src/cli/commands.hpp"
#include "src/cli/plan_report.hpp"

namespace gs::cli {
namespace {

void run_plan(const PlanArguments& arguments) {
  const PlanSubject subject = subject_of(arguments);
  const std::vector<PlanRole> roles = roles_of(subject);
  const PlanForecast expected = forecast(subject, roles);
  const std::string why = first_misfit(subject, roles);
  const std::vector<std::string> ways = why.empty() ? std::vector<std::string>() : ways_to_fit(subject);
  (arguments.json ? print_json : print_lines)(subject, roles, expected, ways);
  if (!why.empty()) throw Error(Fault::memory, cat(why, ways.empty() ? "" : cat("; it fits with ", ways.front())));
}

}  // namespace

void add_plan(CLI::App& app, Common&) {
  const auto arguments = std::make_shared<PlanArguments>();
  CLI::App& command = *app.add_subcommand("plan", "Say what a run would hold, move and take, before it is started");
  command.add_option("--graph", arguments->graph, "graph store; its first steps are sampled for the traffic")
      ->option_text("STORE");
  command.add_option("--graph-version", arguments->version, "version of the store; default: the current one")
      ->option_text("VERSION");
  command.add_option("--nodes", arguments->size.nodes, "instead of a store: how many nodes")
      ->check(CLI::Range(Offset(1), kMaxRows))
      ->option_text("N");
  command.add_option("--arcs", arguments->size.arcs, "and how many arcs; an undirected edge is two")
      ->check(CLI::Range(Offset(1), (Offset(1) << kernels::kFirstArcBits) - 1))
      ->option_text("N");
  command
      .add_option("--relations", arguments->size.relations,
                  "and of a knowledge graph how many relations; arcs are triples")
      ->check(CLI::Range(Offset(1), kMaxRows))
      ->option_text("N");
  command.add_flag("--weights", arguments->size.weighted, "and that its edges have weights");
  command
      .add_option("--device-memory", arguments->device_memory, "memory of each GPU, as in 80GiB; default: what is free")
      ->option_text("SIZE");
  command
      .add_option("--host-memory", arguments->host_memory,
                  "memory of each machine, as in 700GB; default: what is free here")
      ->option_text("SIZE");
  command
      .add_option("--ranks-per-machine", arguments->ranks_per_machine,
                  "ranks that share a machine; default: all of them, or 1 where --host-memory is given")
      ->check(CLI::Range(1, 4096))
      ->option_text("N");
  const auto rate = [&](const char* name, double& value, const char* help, const char* unit) {
    command.add_option(name, value, help)->check(CLI::Range(1e-6, 1e30))->option_text(unit);
  };
  rate("--memory-gbps", arguments->memory_gbps, "bandwidth of a rank's device memory, for the estimate of time",
       "GB/S");
  rate("--flops", arguments->flops, "float32 operations of a rank a second", "N");
  rate("--link-gbps", arguments->link_gbps, "bandwidth of a rank's link to others, each way", "GBIT/S");
  rate("--host-link-gbps", arguments->host_link_gbps, "bandwidth between a GPU and host memory", "GB/S");
  command.add_flag("--json", arguments->json, "one JSON object; num_edges counts arcs");
  add_config_options(command, arguments->config);
  command.callback([arguments] { run_plan(*arguments); });
}

}  // namespace gs::cli
