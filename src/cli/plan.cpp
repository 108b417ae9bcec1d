#include "graphscale/plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "src/cli/commands.hpp"
#include "src/cli/settings.hpp"

namespace gs::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string graph, version, device_memory, host_memory;
  GraphSize size;
  int ranks_per_machine = 0;
  double memory_gbps = 0, flops = 0, link_gbps = 0, host_link_gbps = 0;
  bool json = false;
  ConfigArguments config;
};

/// "80GiB", "700GB", "1.5TB" or bytes.
Offset parse_bytes(const std::string& text, const std::string& place) {
  static const std::map<std::string, double> kUnits{
      {"", 1},      {"B", 1},         {"KB", 1e3},      {"MB", 1e6},      {"GB", 1e9},
      {"TB", 1e12}, {"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 0x1p40}};
  std::size_t digits = 0;
  double value = -1;
  try {
    value = std::stod(text, &digits);
  } catch (const std::exception&) {  // no number
  }
  std::string unit;
  for (std::size_t i = digits; i < text.size(); ++i)
    if (text[i] != ' ') unit += char(std::toupper(static_cast<unsigned char>(text[i])));
  const auto found = kUnits.find(unit);
  if (found == kUnits.end() || !(value * found->second >= 0 && value * found->second < 0x1p62))
    throw Error(Fault::usage, cat(place, ": \"", text, "\" is no size such as 80GiB or 700GB"));
  return Offset(value * found->second);
}

std::string decimal_bytes(double bytes) {
  if (bytes < 1e9) return human_count(bytes) + (bytes < 1000 ? " B" : "B");
  return with_commas(Offset(std::llround(bytes / 1e9))) + " GB";
}

/// Ranks that hold the same kinds of things, and the plan of the one that holds most.
struct Role {
  std::string name;
  int ranks = 0, largest = 0;
  RankPlan plan;
};

/// What is planned for, and what there is.
struct Subject {
  Config config;
  GraphSize size;
  std::shared_ptr<const Graph> graph;
  std::optional<Placement> placement;  // of the graph
  int ranks = 1, ranks_per_machine = 1;
  Device device;
  Offset device_bytes = 0, host_bytes = 0;  // of a GPU; of a machine
  MachineRates rates;

  bool is_exchanged() const { return ranks > 1 || needs_exchange(config); }
  /// A rank's own share of its machine's memory.
  Offset host_share() const { return host_bytes / ranks_per_machine; }
  Offset device_share() const { return device.is_cuda() ? device_bytes : host_share(); }
};

Device device_of(const Config& config, const Arguments& arguments) {
  const std::string& name = config.run.device;
  const Device gpu{Device::Kind::cuda, 0};
  if (name == "cpu") return {};
  if (!arguments.device_memory.empty()) return gpu;  // none is needed here
  if (name == "auto") return usable_gpus() > 0 ? gpu : Device{};
  if (usable_gpus() > 0) return choose_device(name);
  throw Error(Fault::usage, cat("run.device ", name,
                                ": there is no usable GPU here to ask for its memory; give it, as in "
                                "--device-memory 80GiB"));
}

MachineRates rates_of(const Arguments& arguments, const Config& config, Device device, int ranks_here) {
  const double threads = config.run.threads > 0 ? config.run.threads : double(hardware_threads()) / ranks_here;
  MachineRates rates = device.is_cuda() ? h200_rates() : cpu_rates(threads);
  constexpr double kGiga = 1e9, kBits = 8;
  if (arguments.memory_gbps > 0) rates.memory_bytes = arguments.memory_gbps * kGiga;
  if (arguments.flops > 0) rates.flops = arguments.flops;
  if (arguments.link_gbps > 0) rates.link_bytes = arguments.link_gbps * kGiga / kBits;
  if (arguments.host_link_gbps > 0) rates.host_link_bytes = arguments.host_link_gbps * kGiga;
  return rates;
}

Subject subject_of(const Arguments& arguments) {
  Subject subject;
  subject.config = read_config(arguments.config.file, arguments.config.settings);
  if (arguments.graph.empty() == (arguments.size.nodes == 0))
    throw Error(Fault::usage, "plan: give either --graph STORE, or --nodes N and --arcs M");
  subject.ranks = std::max(1, subject.config.run.ranks);
  subject.size = arguments.size;
  if (!arguments.graph.empty()) {
    subject.graph = std::make_shared<const Graph>(Graph::open(arguments.graph, arguments.version));
    const Csr csr = subject.graph->csr();
    subject.size = {csr.num_nodes(), csr.num_arcs(), !csr.weights.empty()};
    if (subject.is_exchanged()) subject.placement = Placement::make(subject.config, csr, subject.ranks);
  }
  if (subject.size.arcs == 0) throw Error(Fault::input, "the graph has no edges: there is nothing to walk");
  subject.device = device_of(subject.config, arguments);
  const bool is_given = !arguments.host_memory.empty();
  subject.ranks_per_machine = arguments.ranks_per_machine > 0 ? std::min(subject.ranks, arguments.ranks_per_machine)
                              : is_given                      ? 1
                                                              : subject.ranks;
  subject.host_bytes = is_given ? parse_bytes(arguments.host_memory, "--host-memory") : available_bytes({});
  if (subject.device.is_cuda())
    subject.device_bytes = arguments.device_memory.empty() ? available_bytes(subject.device)
                                                           : parse_bytes(arguments.device_memory, "--device-memory");
  subject.rates = rates_of(arguments, subject.config, subject.device, subject.ranks_per_machine);
  return subject;
}

RankPlan plan_of(const Subject& subject, int rank) {
  const RankPart part = subject.placement ? subject.placement->part_of(rank, subject.graph->csr())
                                          : expected_part(subject.config, subject.size, subject.ranks, rank);
  return plan_rank(subject.config, subject.size, part, subject.device, subject.device_share());
}

std::vector<Role> roles_of(const Subject& subject) {
  std::vector<Role> roles;
  if (!subject.is_exchanged()) {
    Role alone{"in place", 1, 0, {}};
    static_cast<Plan&>(alone.plan) = plan_training(subject.config, subject.size, subject.device);
    return {alone};
  }
  for (int rank = 0; rank < subject.ranks; ++rank) {
    RankPlan plan = plan_of(subject, rank);
    const std::string name = plan.part.stores && plan.part.computes ? "stores and computes"
                             : plan.part.stores                     ? "stores"
                             : plan.part.computes                   ? "computes"
                                                                    : "idle";
    auto role = std::find_if(roles.begin(), roles.end(), [&](const Role& r) { return r.name == name; });
    if (role == roles.end()) role = roles.insert(roles.end(), {name, 0, rank, plan});
    ++role->ranks;
    if (plan.total_bytes() > role->plan.total_bytes()) role->largest = rank, role->plan = std::move(plan);
  }
  return roles;
}

/// Why a role does not fit, or nothing.
std::string misfit(const Subject& subject, const Role& role) {
  try {
    if (subject.is_exchanged())
      check_rank_fits(role.plan, subject.device_share(), subject.host_share());
    else
      check_fits(role.plan, subject.device_share(), subject.host_share());
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string first_misfit(const Subject& subject, const std::vector<Role>& roles) {
  for (const Role& role : roles)
    if (std::string why = misfit(subject, role); !why.empty()) return why;
  return "";
}

/// Settings under which the run would fit, the smallest change first.
std::vector<std::string> ways_to_fit(const Subject& given) {
  Subject subject = given;
  subject.placement.reset();
  std::vector<std::string> ways;
  const auto look = [&](const std::string& way, const std::function<void(Subject&)>& change) {
    Subject changed = subject;
    change(changed);
    const bool fits = first_misfit(changed, roles_of(changed)).empty();
    if (fits) ways.push_back(way);
    return fits;
  };
  const auto partitioned = [](Subject& s) { s.config.sampler.topology = "partitioned"; };
  const auto half = [](Subject& s) { s.config.model.dtype = "fp16"; };
  if (subject.device.is_cuda()) look("sampler.topology uva", [](Subject& s) { s.config.sampler.topology = "uva"; });
  if (subject.ranks > 1) look("sampler.topology partitioned", partitioned);
  if (subject.config.model.dtype == "fp32") look("model.dtype fp16", half);
  for (Offset walks = roles_of(subject).front().plan.step_walks / 2; subject.is_exchanged() && walks >= 64; walks /= 2)
    if (look(cat("training.step_walks ", walks), [&](Subject& s) { s.config.training.step_walks = int(walks); })) break;
  if (ways.empty() && subject.ranks > 1)
    look("sampler.topology partitioned and model.dtype fp16", [&](Subject& s) { partitioned(s), half(s); });
  if (!subject.config.ranks.storage.empty() || !subject.config.ranks.compute.empty()) return ways;
  for (const bool with_parts : {false, true}) {
    for (int ranks = std::max(2, 2 * subject.ranks); ranks <= 4096; ranks *= 2) {
      const auto more = [&](Subject& s) {
        s.ranks = s.config.run.ranks = ranks;
        if (with_parts) partitioned(s);
      };
      if (look(cat(ranks, " ranks", with_parts ? " and sampler.topology partitioned" : ""), more)) return ways;
    }
  }
  return ways;
}

// ------------------------------------------------------------------------------------------------------------ output

struct Expected {
  StepCounts counts;
  StepTraffic traffic;
  StepTime time;
};

bool can_sample(const Subject& subject) {
  if (!subject.placement) return false;
  const Offset bytes = WalkTopology::bytes(subject.size.nodes, subject.size.arcs,
                                           subject.size.weighted && subject.config.sampler.weighted);
  return 2 * bytes < available_bytes({});
}

Expected expect(const Subject& subject, const RankPlan& plan) {
  Expected expected;
  if (!subject.is_exchanged()) {
    expected.time = expected_time(subject.config, subject.size, static_cast<const Plan&>(plan), subject.rates);
    return expected;
  }
  expected.counts = can_sample(subject) ? sampled_counts(subject.config, subject.graph->csr(), *subject.placement, plan,
                                                         hardware_threads())
                                        : expected_counts(subject.config, subject.size, plan);
  expected.traffic = traffic_of(plan, subject.config, expected.counts);
  expected.time = expected_time(subject.config, subject.size, plan, expected.counts, expected.traffic, subject.rates);
  return expected;
}

/// Both tables of all ranks, replicas not counted.
struct TableBytes {
  double rows = 0, state = 0;
};
TableBytes table_bytes_of(const Subject& subject) {
  const Config& config = subject.config;
  const TablesShape shape = tables_shape(config, subject.size.nodes, 1);
  const int columns = kernels::state_columns(shape.optimizer, config.model.dim);
  const Offset row = ShardTable::bytes_a_row(config.model.dim, shape.type, 0);
  const Offset both = ShardTable::bytes_a_row(config.model.dim, shape.type, columns);
  return {2.0 * double(subject.size.nodes) * double(row), 2.0 * double(subject.size.nodes) * double(both - row)};
}

void print_line(const std::string& what, const std::string& text) {
  std::cout << what << std::string(what.size() < 26 ? 26 - what.size() : 1, ' ') << text << "\n";
}

void print_subject(const Subject& subject) {
  print_line("graph", cat(with_commas(subject.size.nodes), " nodes, ", with_commas(subject.size.arcs), " arcs",
                          subject.size.weighted ? ", weighted" : ""));
  const TableBytes all = table_bytes_of(subject);
  print_line("embeddings", cat("2 tables of ", subject.config.model.dim, " columns ", subject.config.model.dtype,
                               ": rows ", decimal_bytes(all.rows), " + ", subject.config.training.optimizer, " state ",
                               decimal_bytes(all.state), " = ", decimal_bytes(all.rows + all.state)));
  print_line("ranks", cat(subject.ranks, ", ", subject.ranks_per_machine, " a machine, on ",
                          subject.device.is_cuda() ? "cuda" : "cpu"));
  if (subject.device.is_cuda()) print_line("memory of a device", human_bytes(double(subject.device_bytes)));
  print_line("host memory of a rank", human_bytes(double(subject.host_share())));
}

const char* tier_name(const Subject& subject, Tier tier) {
  return !subject.device.is_cuda() ? "" : tier == Tier::host ? "host    " : "device  ";
}

/// Of a role, "that ...".
std::string verb_of(const std::string& role) {
  return role == "stores and computes" ? "store and compute"
         : role == "stores"            ? "store"
         : role == "computes"          ? "compute"
                                       : "idle";
}

void print_role(const Subject& subject, const Role& role) {
  std::cout << "\n";
  print_line(cat("bytes of rank ", role.largest),
             subject.is_exchanged() ? cat("the largest of ", role.ranks, " that ", verb_of(role.name)) : role.name);
  for (const PlanEntry& entry : role.plan.entries)
    if (entry.bytes > 0)
      print_line("  " + entry.purpose, cat(tier_name(subject, entry.tier), human_bytes(double(entry.bytes))));
  for (const Tier tier : {Tier::device, Tier::host})
    if (subject.device.is_cuda())
      print_line("  total", cat(tier_name(subject, tier), human_bytes(double(role.plan.total_bytes(tier)))));
  if (!subject.device.is_cuda()) print_line("  total", human_bytes(double(role.plan.total_bytes())));
  if (subject.is_exchanged() && role.plan.part.local_rows > 0)
    print_line("  hot rows",
               cat(with_commas(role.plan.shape.hot_rows), " of ", with_commas(role.plan.part.local_rows)));
  const std::string why = misfit(subject, role);
  print_line("  fits", why.empty() ? "yes" : "no: " + why);
}

void print_traffic(const Subject& subject, const Expected& expected) {
  const StepCounts& counts = expected.counts;
  const StepTraffic& traffic = expected.traffic;
  if (!subject.is_exchanged() || subject.ranks == 1) return;
  const auto bytes = [](double count) { return human_bytes(count); };
  std::cout << "\n";
  print_line("wire, a rank and step",
             cat("sends ", bytes(traffic.sent_bytes()), ", receives ", bytes(traffic.received_bytes),
                 counts.is_sampled ? " (first steps sampled)" : " (from a model of degrees)"));
  print_line("  sends", cat("ids ", bytes(traffic.id_bytes), ", rows ", bytes(traffic.row_bytes), ", gradients ",
                            bytes(traffic.gradient_bytes), ", head ", bytes(traffic.head_bytes), ", walkers ",
                            bytes(traffic.walker_bytes), ", counts ", bytes(traffic.count_bytes)));
  const double unique = counts.head.rows + counts.head.centres + counts.local.rows + counts.local.centres +
                        counts.remote.rows + counts.remote.centres;
  print_line("  rows", cat(human_count(counts.requested_rows), " requested, ", human_count(unique), " unique, ",
                           human_count(counts.remote.rows + counts.remote.centres), " of other ranks"));
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 1 ? "%.3g ms" : "%.3g s", seconds < 1 ? seconds * 1e3 : seconds);
  return text;
}

void print_time(const Subject& subject, const Expected& expected) {
  const StepTime& time = expected.time;
  const MachineRates& rates = subject.rates;
  std::cout << "\n";
  print_line("time, estimated", cat("a step ", seconds_text(time.step_s), ", an epoch ", human_seconds(time.epoch_s()),
                                    " (", with_commas(time.steps_per_epoch), " steps); bottleneck ", time.bottleneck));
  for (const StageCost& stage : time.stages)
    print_line(cat("  ", stage.name), cat(seconds_text(stage.seconds()), ", bound by ", stage.bound()));
  print_line("  rates assumed",
             cat(rates.name, ": memory ", decimal_bytes(rates.memory_bytes), "/s, ", human_count(rates.flops),
                 "FLOP/s, walk steps ", human_count(rates.walk_steps), "/s, host link ",
                 decimal_bytes(rates.host_link_bytes), "/s, link ", human_count(rates.link_bytes * 8), "bit/s"));
}

Json json_of(const Role& role, const std::string& why) {
  Json entries = Json::array();
  for (const PlanEntry& entry : role.plan.entries)
    if (entry.bytes > 0)
      entries.push_back(
          {{"purpose", entry.purpose}, {"tier", entry.tier == Tier::host ? "host" : "device"}, {"bytes", entry.bytes}});
  return {{"role", role.name},
          {"ranks", role.ranks},
          {"largest_rank", role.largest},
          {"local_rows", role.plan.part.local_rows},
          {"hot_rows", role.plan.shape.hot_rows},
          {"entries", entries},
          {"device_bytes", role.plan.total_bytes(Tier::device)},
          {"host_bytes", role.plan.total_bytes(Tier::host)},
          {"fits", why.empty()}};
}

void print_json(const Subject& subject, const std::vector<Role>& roles, const Expected& expected,
                const std::vector<std::string>& ways) {
  const TableBytes all = table_bytes_of(subject);
  const StepTraffic& t = expected.traffic;
  Json parts = Json::array(), stages = Json::array();
  bool fits = true;
  for (const Role& role : roles) {
    const std::string why = misfit(subject, role);
    fits = fits && why.empty();
    parts.push_back(json_of(role, why));
  }
  for (const StageCost& stage : expected.time.stages)
    stages.push_back({{"stage", stage.name}, {"seconds", stage.seconds()}, {"bound", stage.bound()}});
  const Json out{{"num_nodes", subject.size.nodes},
                 {"num_edges", subject.size.arcs},
                 {"device", subject.device.is_cuda() ? "cuda" : "cpu"},
                 {"ranks", subject.ranks},
                 {"ranks_per_machine", subject.ranks_per_machine},
                 {"device_memory_bytes", subject.device_bytes},
                 {"host_memory_bytes", subject.host_bytes},
                 {"row_bytes", all.rows},
                 {"state_bytes", all.state},
                 {"fits", fits},
                 {"fits_with", ways},
                 {"step_walks", roles.front().plan.step_walks},
                 {"roles", parts},
                 {"sent_bytes_per_step",
                  {{"ids", t.id_bytes},
                   {"rows", t.row_bytes},
                   {"gradients", t.gradient_bytes},
                   {"head", t.head_bytes},
                   {"walkers", t.walker_bytes},
                   {"counts", t.count_bytes},
                   {"total", t.sent_bytes()}}},
                 {"received_bytes_per_step", t.received_bytes},
                 {"traffic_from", expected.counts.is_sampled ? "sampled steps" : "degree model"},
                 {"steps_per_epoch", expected.time.steps_per_epoch},
                 {"estimated_step_seconds", expected.time.step_s},
                 {"estimated_epoch_seconds", expected.time.epoch_s()},
                 {"bottleneck", expected.time.bottleneck},
                 {"stages", stages}};
  std::cout << out.dump(2) << "\n";
}

void run_plan(const Arguments& arguments) {
  const Subject subject = subject_of(arguments);
  const std::vector<Role> roles = roles_of(subject);
  const auto busiest =
      std::find_if(roles.begin(), roles.end(), [](const Role& role) { return role.plan.part.computes; });
  const Expected expected = expect(subject, busiest == roles.end() ? roles.front().plan : busiest->plan);
  const std::string why = first_misfit(subject, roles);
  const std::vector<std::string> ways = why.empty() ? std::vector<std::string>() : ways_to_fit(subject);
  if (arguments.json) {
    print_json(subject, roles, expected, ways);
  } else {
    print_subject(subject);
    for (const Role& role : roles) print_role(subject, role);
    print_traffic(subject, expected);
    print_time(subject, expected);
    for (const std::string& way : ways) print_line("fits with", way);
  }
  if (!why.empty()) throw Error(Fault::memory, cat(why, ways.empty() ? "" : cat("; it fits with ", ways.front())));
}

}  // namespace

void add_plan(CLI::App& app, Common&) {
  const auto arguments = std::make_shared<Arguments>();
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
