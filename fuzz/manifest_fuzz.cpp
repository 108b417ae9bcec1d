// manifest.json of a small checkpoint, with the checksum that its contents have.
#include "graphscale/checkpoint.hpp"

#include "fuzz/graphs.hpp"
#include "tests/support/manifest.hpp"

namespace {

gs::fs::path small_checkpoint() {
  using namespace gs;
  const fs::path run = fuzz::folder() / "run";
  if (const std::vector<fs::path> made = list_checkpoints(run); !made.empty()) return made[0];
  fs::create_directory(run);
  const auto names = names_of(fuzz::name_list({"a", "b", "c"})), none = names_of({});
  std::vector<float> values(3 * 16, 0.5f);
  RunState state;
  state.config.model.dim = 2, state.nodes = 3, state.totals.steps = 7;
  CheckpointWriter writer(run, 0, 1, 1, 1, *names, *none);
  const fs::path folder = writer.begin(state);
  writer.write(folder, state, {{{}, {{kVectors, Rows<float>(values.data(), 3, 2, 16)}}}}, {}, Exec{}, false);
  writer.wait();
  const auto result = writer.take_result();
  fuzz::require(result && result->error.empty(), "a checkpoint is written");
  return list_checkpoints(run).at(0);
}

/// As it came where it is no JSON object.
std::string sealed(std::string_view bytes) {
  const auto json = nlohmann::ordered_json::parse(bytes, nullptr, false);
  return json.is_object() ? gs::with_checksum(json) : std::string(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs;
  static const fs::path folder = small_checkpoint();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  return fuzz::may_refuse([&] {
    std::ofstream(folder / "manifest.json") << sealed(bytes);
    const Checkpoint checkpoint(folder);
    checkpoint.verify(1);
    std::vector<float> row(std::size_t(checkpoint.dim()));
    for (Offset node = 0; node < checkpoint.state().nodes; ++node) checkpoint.read_vector(node, row.data());
  });
}
