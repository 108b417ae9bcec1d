// Triples, as ingest makes a graph of them and as they are read against the names of one.
#include "fuzz/graphs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs;
  fuzz::Input input(data, size);
  const bool against_names = input.flag();
  return fuzz::may_refuse([&] {
    if (!against_names) {
      IngestOptions options;
      options.triples = true;
      return fuzz::ingest_bytes(input.rest(), options);
    }
    const auto entities = names_of(fuzz::name_list({"a", "b", "c"})), relations = names_of(fuzz::name_list({"r", "s"}));
    const Triples triples = read_triples(fuzz::file_of("input", input.rest()), *entities, *relations);
    for (std::size_t i = 0; i < triples.heads.size(); ++i)
      fuzz::require(triples.heads[i] < 3 && triples.relations[i] < 2 && triples.tails[i] < 3, "triples are of names");
  });
}
