#include "src/cli/plan_subject.hpp"

#include <algorithm>

namespace gs::cli {
namespace {

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

Device device_of(const Config& config, const PlanArguments& arguments) {
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

MachineRates rates_of(const PlanArguments& arguments, const Config& config, Device device, int ranks_here) {
  const double threads = config.run.threads > 0 ? config.run.threads : double(hardware_threads()) / ranks_here;
  MachineRates rates = device.is_cuda() ? h200_rates() : cpu_rates(threads);
  constexpr double kGiga = 1e9, kBits = 8;
  if (arguments.memory_gbps > 0) rates.memory_bytes = arguments.memory_gbps * kGiga;
  if (arguments.flops > 0) rates.flops = arguments.flops;
  if (arguments.link_gbps > 0) rates.link_bytes = arguments.link_gbps * kGiga / kBits;
  if (arguments.host_link_gbps > 0) rates.host_link_bytes = arguments.host_link_gbps * kGiga;
  return rates;
}

RankPlan plan_of(const PlanSubject& subject, int rank) {
  const RankPart part = subject.placement ? subject.placement->part_of(rank, subject.graph->csr())
                                          : expected_part(subject.config, subject.size, subject.ranks, rank);
  return plan_rank(subject.config, subject.size, part, subject.device, subject.device_share());
}

bool can_sample(const PlanSubject& subject) {
  if (!subject.placement) return false;
  WalkRule rule = walk_rule(subject.config);
  rule.weighted = rule.weighted && subject.size.weighted;
  const Offset bytes = WalkTopology::bytes(subject.size.nodes, subject.size.arcs, rule);
  return 2 * bytes < available_bytes({});
}

}  // namespace

PlanSubject subject_of(const PlanArguments& arguments) {
  PlanSubject subject;
  subject.config = parts_of(read_config(arguments.config.file, arguments.config.settings)).back();
  if (arguments.graph.empty() == (arguments.size.nodes == 0))
    throw Error(Fault::usage, "plan: give either --graph STORE, or --nodes N and --arcs M");
  subject.ranks = std::max(1, subject.config.run.ranks);
  subject.size = arguments.size;
  if (!arguments.graph.empty()) {
    subject.graph = std::make_shared<const Graph>(Graph::open(arguments.graph, arguments.version));
    const Csr csr = subject.graph->csr();
    subject.size = size_of(csr);
    if (subject.is_exchanged()) subject.placement = Placement::make(subject.config, csr, subject.ranks);
  }
  if (is_knowledge_graph_model(subject.config.model.kind) && subject.size.relations == 0)
    throw Error(Fault::usage, cat("model.kind ", subject.config.model.kind,
                                  " learns triples: give a store of triples, ", "or --nodes, --arcs and --relations"));
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

std::vector<PlanRole> roles_of(const PlanSubject& subject) {
  std::vector<PlanRole> roles;
  if (!subject.is_exchanged()) {
    PlanRole alone{"in place", 1, 0, {}};
    static_cast<Plan&>(alone.plan) = plan_training(subject.config, subject.size, subject.device);
    return {alone};
  }
  for (int rank = 0; rank < subject.ranks; ++rank) {
    RankPlan plan = plan_of(subject, rank);
    const std::string name = plan.part.stores && plan.part.computes ? "stores and computes"
                             : plan.part.stores                     ? "stores"
                             : plan.part.computes                   ? "computes"
                                                                    : "idle";
    auto role = std::find_if(roles.begin(), roles.end(), [&](const PlanRole& r) { return r.name == name; });
    if (role == roles.end()) role = roles.insert(roles.end(), {name, 0, rank, plan});
    ++role->ranks;
    if (plan.total_bytes() > role->plan.total_bytes()) role->largest = rank, role->plan = std::move(plan);
  }
  return roles;
}

std::string misfit(const PlanSubject& subject, const PlanRole& role) {
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

std::string first_misfit(const PlanSubject& subject, const std::vector<PlanRole>& roles) {
  for (const PlanRole& role : roles)
    if (std::string why = misfit(subject, role); !why.empty()) return why;
  return "";
}

std::vector<std::string> ways_to_fit(const PlanSubject& given) {
  PlanSubject subject = given;
  subject.placement.reset();
  std::vector<std::string> ways;
  const auto look = [&](const std::string& way, const std::function<void(PlanSubject&)>& change) {
    PlanSubject changed = subject;
    change(changed);
    const bool fits = first_misfit(changed, roles_of(changed)).empty();
    if (fits) ways.push_back(way);
    return fits;
  };
  const auto partitioned = [](PlanSubject& s) { s.config.sampler.topology = "partitioned"; };
  const auto half = [](PlanSubject& s) { s.config.model.dtype = "fp16"; };
  if (subject.device.is_cuda()) look("sampler.topology uva", [](PlanSubject& s) { s.config.sampler.topology = "uva"; });
  if (subject.ranks > 1) look("sampler.topology partitioned", partitioned);
  if (subject.config.model.dtype == "fp32") look("model.dtype fp16", half);
  for (Offset walks = roles_of(subject).front().plan.step_walks / 2; subject.is_exchanged() && walks >= 64; walks /= 2)
    if (look(cat("training.step_walks ", walks), [&](PlanSubject& s) { s.config.training.step_walks = int(walks); }))
      break;
  if (ways.empty() && subject.ranks > 1)
    look("sampler.topology partitioned and model.dtype fp16", [&](PlanSubject& s) { partitioned(s), half(s); });
  if (!subject.config.ranks.storage.empty() || !subject.config.ranks.compute.empty()) return ways;
  for (const bool with_parts : {false, true}) {
    for (int ranks = std::max(2, 2 * subject.ranks); ranks <= 4096; ranks *= 2) {
      const auto more = [&](PlanSubject& s) {
        s.ranks = s.config.run.ranks = ranks;
        if (with_parts) partitioned(s);
      };
      if (look(cat(ranks, " ranks", with_parts ? " and sampler.topology partitioned" : ""), more)) return ways;
    }
  }
  return ways;
}

PlanForecast forecast(const PlanSubject& subject, const std::vector<PlanRole>& roles) {
  const auto busiest =
      std::find_if(roles.begin(), roles.end(), [](const PlanRole& role) { return role.plan.part.computes; });
  const RankPlan& plan = busiest == roles.end() ? roles.front().plan : busiest->plan;
  PlanForecast expected;
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

}  // namespace gs::cli
