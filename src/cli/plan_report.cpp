#include "src/cli/plan_report.hpp"

#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

namespace gs::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string decimal_bytes(double bytes) {
  if (bytes < 1e9) return human_count(bytes) + (bytes < 1000 ? " B" : "B");
  return with_commas(Offset(std::llround(bytes / 1e9))) + " GB";
}

/// Both tables of all ranks, replicas not counted.
struct TableBytes {
  int tables = 2;
  double rows = 0, state = 0;
};
TableBytes table_bytes_of(const PlanSubject& subject) {
  const Config& config = subject.config;
  const TablesShape shape = tables_shape(config, subject.size.nodes, 1, dense_rows_of(config, subject.size.relations));
  const double rows = shape.tables() * double(shape.dense_rows + subject.size.nodes);
  const int columns = kernels::state_columns(shape.optimizer, config.model.dim);
  const Offset row = ShardTable::bytes_a_row(config.model.dim, shape.type, 0);
  const Offset both = ShardTable::bytes_a_row(config.model.dim, shape.type, columns);
  return {shape.tables(), rows * double(row), rows * double(both - row)};
}

void print_line(const std::string& what, const std::string& text) {
  std::cout << what << std::string(what.size() < 26 ? 26 - what.size() : 1, ' ') << text << "\n";
}

void print_subject(const PlanSubject& subject) {
  print_line("graph", cat(with_commas(subject.size.nodes), " nodes, ", with_commas(subject.size.arcs), " arcs",
                          subject.size.weighted ? ", weighted" : ""));
  const TableBytes all = table_bytes_of(subject);
  print_line("embeddings", cat(all.tables == 1 ? "1 table of " : "2 tables of ", subject.config.model.dim, " columns ",
                               subject.config.model.dtype, ": rows ", decimal_bytes(all.rows), " + ",
                               subject.config.training.optimizer, " state ", decimal_bytes(all.state), " = ",
                               decimal_bytes(all.rows + all.state)));
  print_line("ranks", cat(subject.ranks, ", ", subject.ranks_per_machine, " a machine, on ",
                          subject.device.is_cuda() ? "cuda" : "cpu"));
  if (subject.device.is_cuda()) print_line("memory of a device", human_bytes(double(subject.device_bytes)));
  print_line("host memory of a rank", human_bytes(double(subject.host_share())));
}

const char* tier_name(const PlanSubject& subject, Tier tier) {
  return !subject.device.is_cuda() ? "" : tier == Tier::host ? "host    " : "device  ";
}

/// Of a role, "that ...".
std::string verb_of(const std::string& role) {
  return role == "stores and computes" ? "store and compute"
         : role == "stores"            ? "store"
         : role == "computes"          ? "compute"
                                       : "idle";
}

void print_role(const PlanSubject& subject, const PlanRole& role) {
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

void print_traffic(const PlanSubject& subject, const PlanForecast& expected) {
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

void print_time(const PlanSubject& subject, const PlanForecast& expected) {
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

/// What a run does that no figure of the plan holds.
std::vector<std::string> not_counted(const PlanSubject& subject) {
  const Config& config = subject.config;
  std::vector<std::string> sentences;
  if (config.sampler.topology == "partitioned" && walk_rule(config).second_order())
    sentences.push_back("what second-order walkers ask of other ranks (sampler.p, sampler.q)");
  if (!config.eval.valid.empty())
    sentences.push_back(subject.is_exchanged()
                            ? "validations (eval.valid): the whole table in rank 0's host memory, and time"
                            : "validations (eval.valid): scores and rows of a block, and time");
  if (config.checkpoint.keep > 0 && (config.checkpoint.every_steps > 0 || config.checkpoint.every_minutes > 0)) {
    const TableBytes all = table_bytes_of(subject);
    sentences.push_back(cat("checkpoints as training goes: a copy of the rows in host memory, ",
                            decimal_bytes((all.rows + all.state) / subject.ranks),
                            " a rank, while it is written; without room for it training waits for the disk"));
  }
  return sentences;
}

Json json_of(const PlanRole& role, const std::string& why) {
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

}  // namespace

void print_lines(const PlanSubject& subject, const std::vector<PlanRole>& roles, const PlanForecast& expected,
                 const std::vector<std::string>& ways) {
  print_subject(subject);
  for (const PlanRole& role : roles) print_role(subject, role);
  print_traffic(subject, expected);
  print_time(subject, expected);
  for (const std::string& what : not_counted(subject)) print_line("not counted", what);
  for (const std::string& way : ways) print_line("fits with", way);
}

void print_json(const PlanSubject& subject, const std::vector<PlanRole>& roles, const PlanForecast& expected,
                const std::vector<std::string>& ways) {
  const TableBytes all = table_bytes_of(subject);
  const StepTraffic& t = expected.traffic;
  Json parts = Json::array(), stages = Json::array();
  bool fits = true;
  for (const PlanRole& role : roles) {
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
                 {"stages", stages},
                 {"not_counted", not_counted(subject)}};
  std::cout << out.dump(2) << "\n";
}

}  // namespace gs::cli
