// Which names are numbers.
#pragma once

#include <optional>
#include <string_view>

#include "graphscale/core.hpp"

namespace gs {

/// The value of a canonical unsigned 64-bit decimal: digits only, no leading zero but "0" itself. Such a name and its
/// number stand for each other exactly; "007", "+7" and 2^64 are names like any other and give nullopt.
inline std::optional<std::uint64_t> canonical_number(std::string_view name) {
  if (name.empty() || name.size() > 20 || (name[0] == '0' && name.size() > 1)) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : name.substr(0, 19)) {
    const unsigned digit = unsigned(c) - '0';
    if (digit > 9) return std::nullopt;
    value = 10 * value + digit;
  }
  if (name.size() < 20) return value;
  const unsigned digit = unsigned(name[19]) - '0';
  constexpr std::uint64_t kMax = ~std::uint64_t{0};
  if (digit > 9 || value > kMax / 10 || (value == kMax / 10 && digit > kMax % 10)) return std::nullopt;
  return 10 * value + digit;
}

}  // namespace gs
