// A store's meta.json: opened, listed, and followed to its parent.
#include "fuzz/graphs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs;
  fuzz::Input input(data, size);
  const fs::path store = fuzz::small_store(input.below(3));
  fuzz::write_file(store / "v0001" / "meta.json", input.rest());
  fuzz::may_refuse([&] { versions(store); });
  fuzz::may_refuse([&] { rollback(store, ""); });
  return fuzz::may_refuse([&] { fuzz::open_store(store); });
}
