// A folder of a test's own, and the sentence of an error.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "graphscale/files.hpp"

#define EXPECT_SAYS(sentence, part) EXPECT_PRED2(::gs::says, sentence, part)

namespace gs {

/// A fixture with an empty folder of the test's own, removed with it.
class InFolder : public testing::Test {
 protected:
  InFolder() : folder_(fs::path(testing::TempDir()) / cat("graphscale-", ::getpid(), "-", test_name())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~InFolder() override { fs::remove_all(folder_); }

  fs::path make(const std::string& name, std::string_view bytes) const {
    fs::remove(folder_ / name);  // truncating a file makes some file systems flush it
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  std::vector<std::string> listing() const {  ///< names in the folder, sorted
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  const fs::path folder_;

 private:
  static std::string test_name() {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    std::string name = cat(test.test_suite_name(), "-", test.name());
    std::replace(name.begin(), name.end(), '/', '-');  // of parametrised tests
    return name;
  }
};

inline std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The sentence of the Error that `act` throws, which must be of `fault`.
template <class Act>
std::string sentence_of(Fault fault, Act&& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(int(error.fault), int(fault)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

inline bool says(const std::string& sentence, const std::string& part) {
  return sentence.find(part) != std::string::npos;
}

}  // namespace gs
