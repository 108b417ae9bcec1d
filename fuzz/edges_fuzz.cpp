// Edge lists of any delimiter, as ingest reads them.
#include "fuzz/graphs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gs::fuzz::Input input(data, size);
  const gs::IngestOptions options = gs::fuzz::choose_options(input);
  return gs::fuzz::may_refuse([&] { gs::fuzz::ingest_bytes(input.rest(), options); });
}
