// How `plan` prints what was planned, on stdout.
#pragma once

#include "src/cli/plan_subject.hpp"

namespace gs::cli {

/// Lines for people: what there is, each role's memory, a step's traffic and time, and `ways`, of ways_to_fit.
void print_lines(const PlanSubject& subject, const std::vector<PlanRole>& roles, const PlanForecast& expected,
                 const std::vector<std::string>& ways);

/// The same as one JSON object.
void print_json(const PlanSubject& subject, const std::vector<PlanRole>& roles, const PlanForecast& expected,
                const std::vector<std::string>& ways);

}  // namespace gs::cli
