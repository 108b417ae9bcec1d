#include "src/config/assign.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace gs::config {
namespace {

[[noreturn]] void refuse(const Written& value, const std::string& what) {
  throw Error(Fault::usage, value.place + ": " + what);
}

/// A flag's text may be of any type; a JSON value has one already.
void require_form(const Written& value, Written::Form wanted, const char* wanted_name) {
  if (value.form == Written::Form::flag || value.form == wanted) return;
  std::string found = value.text;
  if (value.form == Written::Form::string) found = "\"" + found + "\" is a string";
  if (value.form == Written::Form::number) found += " is a number";
  if (value.form == Written::Form::boolean) found += " is a boolean";
  const bool only_quotes = value.form == Written::Form::string && wanted == Written::Form::number;
  refuse(value, cat(found, "; expected ", wanted_name, only_quotes ? ", written without quotes" : ""));
}

[[noreturn]] void refuse_range(const Written& value, const Option& option) {
  refuse(value, cat(value.text, " is out of range; expected ", range_text(option)));
}

bool is_integer(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

template <class Integer>
void read_integer(const Written& value, const Option& option, Integer& field) {
  require_form(value, Written::Form::number, "an integer");
  if (!is_integer(value.text)) refuse(value, value.text + " is not an integer");
  Integer read{};
  const auto [end, status] = std::from_chars(value.text.data(), value.text.data() + value.text.size(), read);
  // A minus before an unsigned number and more digits than fit are failures of from_chars: both lie outside the range.
  if (status != std::errc() || double(read) < option.min || double(read) > option.max) refuse_range(value, option);
  field = read;
}

void read_value(const Written& value, const Option& option, int& field) { read_integer(value, option, field); }
void read_value(const Written& value, const Option& option, Offset& field) { read_integer(value, option, field); }
void read_value(const Written& value, const Option& option, std::uint64_t& field) {
  read_integer(value, option, field);
}

void read_value(const Written& value, const Option& option, double& field) {
  require_form(value, Written::Form::number, "a number");
  const char* const last = value.text.data() + value.text.size();
  double read = 0;
  const auto [end, status] = std::from_chars(value.text.data(), last, read);
  if (status == std::errc::invalid_argument || end != last) refuse(value, value.text + " is not a number");
  if (status != std::errc() || !std::isfinite(read))
    refuse(value, value.text + " is not a finite number that 64 bits can hold");
  if (read < option.min || read > option.max) refuse_range(value, option);
  field = read;
}

void read_value(const Written& value, const Option&, bool& field) {
  if (value.form != Written::Form::string)  // JSON may say "yes" too
    require_form(value, Written::Form::boolean, "true or false");
  field = parse_bool(value.text, value.place);
}

void read_value(const Written& value, const Option& option, std::string& field) {
  require_form(value, Written::Form::string, "a string");
  const std::vector<std::string> choices(option.choices.begin(), option.choices.end());
  if (!choices.empty() && std::find(choices.begin(), choices.end(), value.text) == choices.end()) {
    const std::string near = nearest_name(value.text, choices);
    refuse(value, cat("\"", value.text, "\" is not a valid value; expected ", range_text(option),
                      near.empty() ? "" : cat("; did you mean ", near, "?")));
  }
  field = value.text;
}

}  // namespace

void assign(Config& config, const std::string& name, const Written& value) {
  each_option(config, [&](const char* candidate, auto& field, const Option& option) {
    if (name == candidate) read_value(value, option, field);
  });
}

}  // namespace gs::config

namespace gs {

bool parse_bool(const std::string& text, const std::string& place) {
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  for (const char* yes : {"true", "yes", "1", "on"})
    if (lower == yes) return true;
  for (const char* no : {"false", "no", "0", "off"})
    if (lower == no) return false;
  throw Error(Fault::usage,
              cat(place, ": \"", text, "\" is no boolean; expected true, false, yes, no, 1, 0, on or off"));
}

}  // namespace gs
