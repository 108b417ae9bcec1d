// What there is to configure, and what was configured, in words and in JSON.
#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "src/config/assign.hpp"

namespace gs {
namespace {

using Json = nlohmann::ordered_json;

/// An option's name cut at its dot.
std::pair<std::string, std::string> split_name(const std::string& name) {
  const std::size_t dot = name.find('.');
  return {name.substr(0, dot), name.substr(dot + 1)};
}

std::string flag_of(std::string name) {
  for (char& c : name)
    if (c == '_') c = '-';
  return name;
}

std::string value_text(const std::string& value) { return value; }
std::string value_text(bool value) { return value ? "true" : "false"; }
std::string value_text(int value) { return std::to_string(value); }
std::string value_text(Offset value) { return std::to_string(value); }
std::string value_text(std::uint64_t value) { return std::to_string(value); }
std::string value_text(double value) { return config::number_text(value); }

/// A bound as JSON: whole for integers, to the last digit.
Json bound(double value, bool whole) {
  if (!whole) return value;
  if (value < 0) return std::int64_t(value);
  return value < 0x1p64 ? std::uint64_t(value) : ~std::uint64_t{0};
}

/// A pattern for "true", "Yes" ... in any case; JSON Schema has no switch for that.
std::string boolean_pattern() {
  std::string pattern = "^(";
  for (const char* word : {"true", "false", "yes", "no", "on", "off", "1", "0"}) {
    if (pattern.size() > 2) pattern += '|';
    for (const char* c = word; *c; ++c)
      pattern += std::isalpha(*c) ? cat('[', char(std::toupper(*c)), *c, ']') : std::string(1, *c);
  }
  return pattern + ")$";
}

template <class T>
Json option_schema(const T& value, const Option& option) {
  Json schema{{"description", option.help}, {"type", config::type_name(value)}, {"default", value}};
  if constexpr (std::is_same_v<T, bool>) {
    schema["type"] = {"boolean", "string"};
    schema["pattern"] = boolean_pattern();
  } else if constexpr (std::is_arithmetic_v<T>) {
    schema["minimum"] = bound(option.min, std::is_integral_v<T>);
    schema["maximum"] = bound(option.max, std::is_integral_v<T>);
  } else if (!option.choices.empty()) {
    schema["enum"] = option.choices;
  }
  return schema;
}

/// What each option is by default where it is not as of the first kind: by name, then kind.
using KindDefaults = std::map<std::string, std::vector<std::pair<std::string, Json>>>;

KindDefaults kind_defaults() {
  std::map<std::string, Json> usual;
  KindDefaults defaults;
  std::vector<const char*> kinds;
  const Config config;
  each_option(config, [&](const char* name, const auto& value, const Option& option) {
    usual[name] = value;
    if (std::string(name) == "model.kind") kinds = option.choices;
  });
  for (const char* kind : kinds) {
    const Config of_kind = default_config(kind);
    each_option(of_kind, [&](const char* name, const auto& value, const Option&) {
      if (std::string(name) != "model.kind" && Json(value) != usual[name]) defaults[name].emplace_back(kind, value);
    });
  }
  return defaults;
}

/// As " (transe, rotate 1; distmult, complex 256)".
std::string kinds_text(const std::vector<std::pair<std::string, Json>>& defaults) {
  std::string text;
  for (auto kind = defaults.begin(); kind != defaults.end(); ++kind) {
    const auto same = [&](const auto& other) { return other.second == kind->second; };
    if (std::any_of(defaults.begin(), kind, same)) continue;
    std::string kinds;
    for (auto other = kind; other != defaults.end(); ++other)
      if (same(*other)) kinds += cat(kinds.empty() ? "" : ", ", other->first);
    const std::string value = kind->second.is_number()   ? config::number_text(kind->second.get<double>())
                              : kind->second.is_string() ? kind->second.get<std::string>()
                                                         : kind->second.dump();
    text += cat(text.empty() ? " (" : "; ", kinds, " ", value);
  }
  return text.empty() ? "" : text + ")";
}

}  // namespace

namespace config {

std::string number_text(double value) {
  if (value >= 0x1p64) return std::to_string(~std::uint64_t{0});  // the end of a 64-bit range
  if (value == double(std::int64_t(value)) && std::abs(value) < 1e15) return std::to_string(std::int64_t(value));
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value, std::chars_format::general).ptr);
}

std::string range_text(const Option& option) {
  if (option.min < option.max)
    return cat(number_text(option.min), " to ", number_text(option.max), *option.unit ? " " : "", option.unit);
  std::string text;
  for (std::size_t i = 0; i < option.choices.size(); ++i)
    text += cat(i == 0 ? "" : i + 1 == option.choices.size() ? " or " : ", ", option.choices[i]);
  return text;
}

}  // namespace config

std::vector<OptionText> option_texts() {
  std::vector<OptionText> texts;
  const Config config;
  each_option(config, [&](const char* name, const auto& value, const Option& option) {
    const auto [section, last] = split_name(name);
    texts.push_back({name, section, flag_of(last), config::type_name(value), value_text(value),
                     config::range_text(option), option.help});
  });
  return texts;
}

std::string to_json(const Config& config) {
  Json json;
  each_option(config, [&](const char* name, const auto& value, const Option&) {
    const auto [section, last] = split_name(name);
    json[section][last] = value;
  });
  return json.dump(2) + "\n";
}

std::vector<std::string> idle_options(const Config& config) {
  std::map<std::string, std::string> usual;
  const Config of_kind = default_config(config.model.kind);
  each_option(of_kind, [&](const char* name, const auto& value, const Option&) { usual[name] = value_text(value); });
  std::vector<std::string> sentences;
  each_option(config, [&](const char* name, const auto& value, const Option& option) {
    if (!*option.kinds || cat(" ", option.kinds, " ").find(cat(" ", config.model.kind, " ")) != std::string::npos)
      return;
    if (value_text(value) != usual[name])
      sentences.push_back(cat(name, " ", value_text(value), " has no effect: model.kind ", config.model.kind,
                              " does not read it (read by: ", option.kinds, ")"));
  });
  return sentences;
}

std::string options_text() {
  std::string text;
  KindDefaults of_kinds = kind_defaults();
  for (const OptionText& option : option_texts())
    text += cat(text.empty() ? "" : "\n", option.name, " (--", option.flag, "), ", option.type,
                option.range.empty() ? "" : ", " + option.range, ", default ", option.default_value,
                kinds_text(of_kinds[option.name]), "\n    ", option.help, "\n");
  return text;
}

std::string options_json() {
  Json list = Json::array();
  const Config config;
  KindDefaults of_kinds = kind_defaults();
  each_option(config, [&](const char* name, const auto& value, const Option& option) {
    Json entry{{"name", name},
               {"flag", "--" + flag_of(split_name(name).second)},
               {"type", config::type_name(value)},
               {"default", value}};
    if (option.min < option.max) {
      const bool whole = std::is_integral_v<std::decay_t<decltype(value)>>;
      entry["min"] = bound(option.min, whole), entry["max"] = bound(option.max, whole), entry["unit"] = option.unit;
    }
    if (!option.choices.empty()) entry["choices"] = option.choices;
    if (*option.kinds) entry["kinds"] = option.kinds;
    for (const auto& [kind, of_kind] : of_kinds[name]) entry["defaults"][kind] = of_kind;
    entry["help"] = option.help;
    list.push_back(std::move(entry));
  });
  return list.dump(2) + "\n";
}

std::string options_json_schema() {
  Json sections;
  const Config config;
  each_option(config, [&](const char* name, const auto& value, const Option& option) {
    const auto [section, last] = split_name(name);
    if (!sections.contains(section)) sections[section] = {{"type", "object"}, {"additionalProperties", false}};
    sections[section]["properties"][last] = option_schema(value, option);
  });
  const Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                    {"title", "GraphScale training configuration"},
                    {"type", "object"},
                    {"additionalProperties", false},
                    {"properties", std::move(sections)}};
  return schema.dump(2) + "\n";
}

}  // namespace gs
