// Whether a plan fits, and the one line that says why not.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "graphscale/plan.hpp"

namespace gs {
namespace {

/// Entries of 1 % or more, and what would save most.
Error refusal(const std::string& who, const Plan& plan, std::initializer_list<Tier> tiers, Offset needed,
              Offset available, const std::string& where, const std::string& else_do) {
  Offset total = 0;
  for (const Tier tier : tiers) total += plan.total_bytes(tier);
  std::map<std::string, Offset> by_remedy;
  std::string parts;
  for (const PlanEntry& entry : plan.entries) {
    if (std::find(tiers.begin(), tiers.end(), entry.tier) == tiers.end()) continue;
    if (entry.bytes > 0 && entry.bytes * 100 >= total)
      parts += cat(parts.empty() ? "" : ", ", entry.purpose, " ", human_bytes(double(entry.bytes)));
    if (!entry.remedy.empty()) by_remedy[entry.remedy] += entry.bytes;
  }
  std::string remedy;
  Offset most = 0;
  for (const auto& [what, bytes] : by_remedy)
    if (bytes > most) remedy = what + ", or ", most = bytes;
  return Error(Fault::memory, cat(who, human_bytes(double(needed)), where, " (", parts, ") and ",
                                  human_bytes(double(std::max<Offset>(0, available))), " are free: ", remedy, else_do));
}

constexpr const char* kMoreMemory = "use a machine with more memory";
constexpr const char* kMoreRanks = "use more ranks";

/// Ranks that share memory have the same: the machine's boot, and its name, which containers have of their own.
std::string machine_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string boot;
  in >> boot;
  return cat(host, "/", boot);
}

void check_device(const Plan& plan, Offset device_bytes, const char* who, const char* else_do) {
  const Offset needed = plan.total_bytes(Tier::device);
  if (plan.device.is_cuda() && needed > device_bytes)
    throw refusal(who, plan, {Tier::device}, needed, device_bytes, " on " + to_string(plan.device), else_do);
}

void check(const Plan& plan, Offset device_bytes, Offset host_bytes, const char* who, const char* else_do) {
  check_device(plan, device_bytes, who, else_do);
  if (!plan.device.is_cuda() && plan.total_bytes() > device_bytes)
    throw refusal(who, plan, {Tier::device, Tier::host}, plan.total_bytes(), device_bytes, " on cpu", else_do);
  if (const Offset needed = plan.total_bytes(Tier::host); plan.device.is_cuda() && needed > host_bytes)
    throw refusal(who, plan, {Tier::host}, needed, host_bytes, " of pinned host memory", else_do);
}

}  // namespace

void check_fits(const Plan& plan, Offset device_bytes, Offset host_bytes) {
  check(plan, device_bytes, host_bytes, "this run needs ", kMoreMemory);
}

void check_rank_fits(const RankPlan& plan, Offset device_bytes, Offset host_bytes) {
  check(plan, device_bytes, host_bytes, "a rank needs ", kMoreRanks);
}

void check_ranks_fit(const RankPlan& plan, Comm& comm) {
  const bool is_gpu = plan.device.is_cuda();
  const Offset mine = is_gpu ? plan.total_bytes(Tier::host) : plan.total_bytes();
  const Offset free_here = available_bytes({}), free_there = is_gpu ? available_bytes(plan.device) : 0;
  const std::string machine = machine_name();

  Offset needed = 0;
  int ranks_here = 0;
  for (const std::string& text : comm.gather_texts(cat(mine, " ", machine))) {
    std::istringstream in(text);
    Offset bytes = 0;
    std::string name;
    in >> bytes >> name;
    if (name == machine) needed += bytes, ++ranks_here;
  }
  check_device(plan, free_there, "this rank needs ", kMoreRanks);
  if (needed <= free_here) return;
  const std::string who = ranks_here == 1 ? "this rank needs " : cat(ranks_here, " ranks of this machine need ");
  const char* else_do = ranks_here == 1 ? kMoreRanks : "use more machines";
  const std::string where = cat(is_gpu ? " of pinned host memory" : " on cpu", ranks_here == 1 ? "" : ", this one ",
                                ranks_here == 1 ? "" : human_bytes(double(mine)));
  if (is_gpu) throw refusal(who, plan, {Tier::host}, needed, free_here, where, else_do);
  throw refusal(who, plan, {Tier::device, Tier::host}, needed, free_here, where, else_do);
}

}  // namespace gs
