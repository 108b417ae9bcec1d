// A checkpoint's manifest, changed by a test.
#pragma once

#include <xxhash.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace gs {

/// The manifest's text with the checksum that its contents have.
inline std::string with_checksum(nlohmann::ordered_json manifest) {
  const auto dump = [&] { return manifest.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace); };
  manifest.erase("checksum");
  const std::string text = dump();
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  manifest["checksum"] = hash;
  return dump();
}

}  // namespace gs
