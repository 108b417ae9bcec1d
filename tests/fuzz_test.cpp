// Every file of tests/data/fuzz/TARGET through fuzz/TARGET_fuzz.cpp: what once went wrong, and inputs that reach far.
#include <map>

#include "tests/support/folder.hpp"

#define FUZZ_TARGET(name) extern "C" int name(const std::uint8_t* data, std::size_t size);
#include "targets.inc"
#undef FUZZ_TARGET

namespace gs {
namespace {

using Target = int (*)(const std::uint8_t*, std::size_t);

std::map<std::string, Target> targets() {
  std::map<std::string, Target> named;
#define FUZZ_TARGET(name) named[#name] = name;
#include "targets.inc"
#undef FUZZ_TARGET
  return named;
}

class Corpus : public testing::TestWithParam<std::pair<const std::string, Target>> {};

TEST_P(Corpus, IsReadOrRefused) {
  const auto& [name, target] = GetParam();
  const fs::path folder = fs::path(GS_TEST_DATA) / "fuzz" / name.substr(0, name.rfind("_fuzz"));
  int files = 0;

  testing::internal::CaptureStderr();  // a warning a file says nothing here
  for (const auto& entry : fs::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    const std::string bytes = bytes_of(entry.path());
    EXPECT_NO_THROW(target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
    ++files;
  }
  testing::internal::GetCapturedStderr();

  EXPECT_GT(files, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Corpus, testing::ValuesIn(targets()), [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace gs
