// A store's CURRENT or one of its arrays, whose size meta.json confirms.
#include <nlohmann/json.hpp>

#include "fuzz/graphs.hpp"

namespace {

using namespace gs;

void open_with(const fs::path& store, int file, std::string_view bytes) {
  const fs::path version = store / "v0001", kept_meta = store / "meta.kept";
  std::error_code there_already;
  fs::copy_file(version / "meta.json", kept_meta, there_already);
  nlohmann::json meta = nlohmann::json::parse(read_text(kept_meta));
  const auto arrays = meta["array_bytes"].get<std::map<std::string, Offset>>();
  if (std::size_t(file) >= arrays.size()) {
    const std::string current = read_text(store / "CURRENT");
    fuzz::write_file(store / "CURRENT", bytes);
    fuzz::may_refuse([&] { fuzz::open_store(store); });
    fuzz::may_refuse([&] { rollback(store, ""); });
    return fuzz::write_file(store / "CURRENT", current);
  }

  const std::string name = std::next(arrays.begin(), file)->first, kept = read_text(version / name);
  fuzz::write_file(version / name, bytes);
  meta["array_bytes"][name] = bytes.size();
  fuzz::write_file(version / "meta.json", meta.dump());
  fuzz::may_refuse([&] { fuzz::open_store(store); });
  fuzz::write_file(version / name, kept);
  fs::copy_file(kept_meta, version / "meta.json", fs::copy_options::overwrite_existing);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const fs::path store = fuzz::small_store(input.below(3));
  const int file = input.below(8);
  open_with(store, file, input.rest());
  return 0;
}
