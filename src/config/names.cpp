// Names of options: what a name stands for, and what a wrong one may have meant.
#include <algorithm>
#include <numeric>

#include "src/config/assign.hpp"

namespace gs {
namespace {

std::string section_of(const std::string& name) { return name.substr(0, name.find('.')); }
std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::vector<std::string> full_names() {
  std::vector<std::string> names;
  const Config config;
  each_option(config, [&](const char* name, const auto&, const Option&) { names.push_back(name); });
  return names;
}

}  // namespace

std::string option_name(const std::string& name) {
  std::string wanted = name;
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  for (const std::string& candidate : full_names())
    if (wanted == candidate || wanted == last_part(candidate)) return candidate;
  return "";
}

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table: `row[j]` is the distance between a's first i and b's first j characters.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above), above.swap(row);
    row[0] = int(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& names) {
  std::string nearest;
  int least = 0;
  for (const std::string& candidate : names) {
    const int distance = edit_distance(name, candidate);
    // One edit in three characters: a slip of the finger, not another word.
    const bool near = distance <= std::max(1, int(std::max(name.size(), candidate.size())) / 3);
    if (near && (nearest.empty() || distance < least)) nearest = candidate, least = distance;
  }
  return nearest;
}

namespace config {

std::string unknown_option(const std::string& name) {
  const std::string elsewhere = option_name(last_part(name));
  if (!elsewhere.empty())
    return cat("no such option; ", last_part(elsewhere), " belongs to section ", section_of(elsewhere), ": write ",
               elsewhere);

  std::vector<std::string> candidates = full_names();
  std::string near = nearest_name(name, candidates);
  if (near.empty()) {  // a slip in the last part, and perhaps the wrong section or none
    std::transform(candidates.begin(), candidates.end(), candidates.begin(), last_part);
    near = nearest_name(last_part(name), candidates);
  }
  return near.empty() ? "no such option; `graphscale options` lists them all"
                      : cat("no such option; did you mean ", option_name(near), "?");
}

std::vector<std::string> section_names() {
  std::vector<std::string> sections;
  for (const std::string& name : full_names())
    if (sections.empty() || sections.back() != section_of(name)) sections.push_back(section_of(name));
  return sections;
}

}  // namespace config
}  // namespace gs
