// Labels of nodes, and splits of labelled nodes.
#include "graphscale/eval.hpp"

#include "fuzz/graphs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs;
  fuzz::Input input(data, size);
  const bool split = input.flag();
  const auto names = names_of(fuzz::name_list({"a", "b", "c"}));
  return fuzz::may_refuse([&] {
    const fs::path path = fuzz::file_of("input", input.rest());
    if (split) {
      const Labels labels = read_labels(fuzz::file_of("labels", "a x\nb y\nc x\n"), *names);
      const LabelSplit parts = read_split(path, *names, labels);
      for (const auto* part : {&parts.train, &parts.test})
        for (const Offset position : *part)
          fuzz::require(position >= 0 && position < labels.count(), "split of labels");
      return;
    }
    const Labels labels = read_labels(path, *names);
    for (Offset i = 0; i < labels.count(); ++i)
      for (const int label : labels.of(i)) fuzz::require(label < labels.num_classes(), "labels have names");
  });
}
