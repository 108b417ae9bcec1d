// What every fuzz target is made of: its input as a file, and a call that may refuse it and do nothing else wrong.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "graphscale/files.hpp"

/// libFuzzer's entry. Each X_fuzz.cpp defines it; the test that replays tests/data/fuzz compiles them under other
/// names.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace gs::fuzz {

/// Ends the program where `holds` is false: for what must be true of whatever a reader accepted.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "fuzz: not so: " << what << std::endl;
  std::abort();
}

/// An empty folder of this process.
inline const fs::path& folder() {
  struct Folder {
    fs::path path = fs::temp_directory_path() / cat("graphscale-fuzz-", ::getpid());
    Folder() { fs::remove_all(path), fs::create_directories(path); }
    ~Folder() {
      std::error_code left_behind;
      fs::remove_all(path, left_behind);
    }
  };
  static const Folder folder;
  return folder.path;
}

inline void write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline fs::path file_of(const std::string& name, std::string_view bytes) {
  write_file(folder() / name, bytes);
  return folder() / name;
}

/// An input: first bytes that choose (0 where there are none), then a file's contents.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}
  int below(int count) {
    if (rest_.empty()) return 0;
    const int chosen = int(std::uint8_t(rest_[0])) % count;
    rest_.remove_prefix(1);
    return chosen;
  }
  bool flag() { return below(2) == 1; }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// To refuse the input is an answer. Any other exception is a finding, and so is an Error that calls it a fault of the
/// program or a lack of memory.
template <class Read>
int may_refuse(Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.fault == Fault::internal || error.fault == Fault::memory) throw;
  }
  return 0;
}

}  // namespace gs::fuzz
