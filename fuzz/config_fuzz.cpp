// Configuration files.
#include "graphscale/config.hpp"

#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  return fuzz::may_refuse([&] {
    const std::string written = to_json(read_config(fuzz::file_of("config.json", bytes), {}));
    const std::string again = to_json(read_config(fuzz::file_of("config.json", written), {}));
    fuzz::require(again == written, "a configuration reads back as it was written");
  });
}
