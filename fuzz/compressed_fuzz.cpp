// gzip and zstd, read in pieces of a size that the input chooses.
#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs;
  fuzz::Input input(data, size);
  std::vector<char> piece(std::size_t(1) << input.below(17));
  return fuzz::may_refuse([&] {
    ByteSource source(fuzz::file_of("input", input.rest()));
    while (source.read(piece.data(), Offset(piece.size())) > 0) {
    }
  });
}
