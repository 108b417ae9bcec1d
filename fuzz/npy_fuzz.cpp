// Arrays: their values, as edges and as a table of vectors.
#include "graphscale/checkpoint.hpp"

#include "fuzz/graphs.hpp"

namespace {

template <class T>
void read_all(const gs::NpyArray& array) {
  if (array.dtype() != gs::dtype_of<T>()) return;
  gs::Offset unequal = 0;
  for (const T value : array.values<T>()) unequal += value == value ? 0 : 1;
  gs::fuzz::require(unequal <= array.rows() * array.columns(), "as many values as the shape says");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const fs::path path = fuzz::file_of("input.npy", bytes), names = fuzz::file_of("names.txt", "a\nb\n");
  fuzz::may_refuse([&] {
    const NpyArray array(path);
    read_all<std::uint8_t>(array), read_all<std::uint32_t>(array), read_all<std::uint64_t>(array);
    read_all<std::int32_t>(array), read_all<std::int64_t>(array), read_all<float>(array), read_all<double>(array);
  });
  fuzz::may_refuse([&] { Embeddings::open(path, names); });
  return fuzz::may_refuse([&] { fuzz::ingest_bytes(bytes, {}); });
}
