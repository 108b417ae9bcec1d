#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "graphscale/files.hpp"

#include "src/files/descriptor.hpp"

namespace gs {
namespace files {

void throw_system(Fault fault, const fs::path& path, const char* what, int error) {
  throw Error(fault, cat(path.string(), ": ", what, ": ", std::strerror(error)));
}

int Descriptor::close() noexcept {
  const int number = std::exchange(number_, -1);
  return number >= 0 && ::close(number) != 0 ? errno : 0;
}

Descriptor open_input(const fs::path& path, struct stat& status) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0)
    throw_system(Fault::input, path, "cannot be read", errno);
  if (S_ISDIR(status.st_mode)) throw Error(Fault::input, cat(path.string(), ": is a folder; a file is expected"));
  return file;
}

Offset read_fully(const Descriptor& file, const fs::path& path, char* into, Offset capacity) {
  Offset done = 0;
  while (done < capacity) {
    const ssize_t count = ::read(file.number(), into + done, std::size_t(capacity - done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system(Fault::input, path, "reading failed", errno);
    if (count == 0) break;
    done += count;
  }
  return done;
}

}  // namespace files

MappedFile::MappedFile(const fs::path& path) {
  struct stat status {};
  const files::Descriptor file = files::open_input(path, status);
  if (!S_ISREG(status.st_mode))
    throw Error(Fault::input, cat(path.string(), ": is not a regular file, so it cannot be mapped"));
  if (status.st_size == 0) return;
  void* memory = ::mmap(nullptr, std::size_t(status.st_size), PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (memory == MAP_FAILED) files::throw_system(Fault::input, path, "cannot be mapped", errno);
  data_ = static_cast<const char*>(memory), size_ = status.st_size;
}

MappedFile::~MappedFile() {
  if (data_ && ::munmap(const_cast<char*>(data_), std::size_t(size_)) != 0)
    log_warn(cat("a mapped file could not be released: ", std::strerror(errno)));
}

std::string read_text(const fs::path& path) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // a few bytes of gzip may stand for any number
  ByteSource source(path);
  std::string text;
  std::vector<char> block(1 << 16);
  while (const Offset count = source.read(block.data(), Offset(block.size())))
    if (text.append(block.data(), std::size_t(count)).size() > kMostBytes)
      throw Error(Fault::input, cat(path.string(),
                                    ": has more than 64 MiB of text: this is not the small file that is "
                                    "expected here"));
  return text;
}

}  // namespace gs
