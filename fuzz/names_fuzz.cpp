// names.txt beside a table of as many rows as the input chooses.
#include "graphscale/checkpoint.hpp"

#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs;
  fuzz::Input input(data, size);
  const Offset rows = input.below(8);
  const fs::path array = fuzz::folder() / cat(rows, ".npy");
  if (!fs::exists(array)) {
    NpyWriter out(array, Dtype::f32, {rows, 1});
    const std::vector<float> zeros(std::size_t(rows), 0);
    out.write(zeros.data(), rows * Offset(sizeof(float)));
    out.commit();
  }
  return fuzz::may_refuse([&] {
    const Embeddings embeddings = Embeddings::open(array, fuzz::file_of("names.txt", input.rest()));
    for (Offset row = 0; row < rows; ++row)
      fuzz::require(embeddings.names().find(embeddings.names().name(row)) == RowId(row), "names are found");
    embeddings.names().similar(input.rest().substr(0, 8), 3);
  });
}
