// One written value into one option; seen by this room only.
#pragma once

#include "graphscale/config.hpp"

namespace gs::config {

/// A value as it was written, before it is known what it should be.
struct Written {
  enum class Form { flag, number, string, boolean, other };  ///< flag: the command line's untyped text; others: JSON's
  Form form = Form::flag;
  std::string text;   ///< without JSON's quotes, else letter by letter as written
  std::string place;  ///< "--dim", "run.json: /model/dim"
};

/// Sets the option of that full name. Throws usage: wrong type, not finite, out of range, not one of the choices.
void assign(Config& config, const std::string& name, const Written& value);

/// Why `name` (full, or a last part) is no option and what may have been meant; '.' between section and option.
std::string unknown_option(const std::string& name);

/// As in OptionText.
std::string range_text(const Option& option);

std::vector<std::string> section_names();

constexpr const char* type_name(int) { return "integer"; }
constexpr const char* type_name(Offset) { return "integer"; }
constexpr const char* type_name(std::uint64_t) { return "integer"; }
constexpr const char* type_name(double) { return "number"; }
constexpr const char* type_name(bool) { return "boolean"; }
inline const char* type_name(const std::string&) { return "string"; }

/// 1e9 as "1000000000", 0.01 as "0.01": shortest that reads back.
std::string number_text(double value);

}  // namespace gs::config
