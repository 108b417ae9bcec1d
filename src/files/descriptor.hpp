// A POSIX file descriptor and the sentences of its failures; seen by this room only.
#pragma once

#include <sys/stat.h>

#include "graphscale/files.hpp"

namespace gs::files {

/// Throws "PATH: WHAT: the system's reason".
[[noreturn]] void throw_system(Fault fault, const fs::path& path, const char* what, int error);

/// Sole owner of a descriptor; -1 is none. Moves, never copies. Outputs close theirs by hand, to see the status.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept { return std::swap(number_, other.number_), *this; }
  ~Descriptor() { close(); }
  int number() const { return number_; }
  int close() noexcept;  ///< errno of the close, 0 on success or where nothing was open

 private:
  int number_ = -1;
};

/// Opens for reading and fills `status`. Throws input: missing, unreadable, a folder.
Descriptor open_input(const fs::path& path, struct stat& status);

/// Fills [into, into + capacity) as far as the file goes. Throws input.
Offset read_fully(const Descriptor& file, const fs::path& path, char* into, Offset capacity);

}  // namespace gs::files
