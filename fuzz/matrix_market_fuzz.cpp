// MatrixMarket files behind the first words of their banner.
#include "fuzz/graphs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gs::fuzz::Input input(data, size);
  const gs::IngestOptions options = gs::fuzz::choose_options(input);
  const std::string file = gs::cat("%%MatrixMarket matrix coordinate ", input.rest());
  return gs::fuzz::may_refuse([&] { gs::fuzz::ingest_bytes(file, options); });
}
