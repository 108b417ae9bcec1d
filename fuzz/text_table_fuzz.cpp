// Lines of fields by each delimiter.
#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs;
  fuzz::Input input(data, size);
  const auto delimiter = Delimiter(input.below(4));
  return fuzz::may_refuse([&] {
    TextTable table(fuzz::file_of("input", input.rest()), delimiter);
    std::string copied;
    while (const auto* fields = table.next())
      for (const std::string_view field : *fields) copied.assign(field);
  });
}
