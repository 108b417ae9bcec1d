#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <random>

#include "graphscale/files.hpp"

#include "src/files/descriptor.hpp"

namespace gs {
namespace {

using files::throw_system;

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr std::string_view kTemporaryMark = ".tmp-";

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// "/data/runs/" and "/data/runs" are one place; a link stands for what it points to.
fs::path settled(const fs::path& path) {
  const fs::path plain = path.has_filename() ? path : path.parent_path();
  std::error_code error;
  return fs::is_symlink(plain, error) ? fs::weakly_canonical(plain, error) : plain;
}

/// ".NAME.tmp-HOST-PID-RANDOM" beside `path`: the same file system, so that the rename is atomic.
fs::path temporary_beside(const fs::path& path) {
  char random[9];
  std::snprintf(random, sizeof random, "%08x", std::random_device{}());
  return folder_of(path) /
         cat(".", path.filename().string(), kTemporaryMark, host_name(), "-", ::getpid(), "-", random);
}

/// True for a name that `temporary_beside` made, on any host.
bool is_temporary(const std::string& name) {
  return !name.empty() && name[0] == '.' && name.rfind(kTemporaryMark) != std::string::npos;
}

/// True for one that it made on this host in a process that is gone.
bool left_by_dead_process(const std::string& name) {
  const std::size_t mark = name.rfind(kTemporaryMark), random = name.rfind('-');
  const std::size_t pid = random == std::string::npos || random == 0 ? random : name.rfind('-', random - 1);
  if (!is_temporary(name) || pid == std::string::npos) return false;
  const std::size_t host = mark + kTemporaryMark.size();
  if (pid < host || name.substr(host, pid - host) != host_name()) return false;
  int process = 0;
  const auto parsed = std::from_chars(name.data() + pid + 1, name.data() + random, process);
  if (parsed.ec != std::errc() || parsed.ptr != name.data() + random || process <= 0) return false;
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

/// Makes a rename in `folder` survive a power cut.
void sync_folder(const fs::path& folder) {
  const files::Descriptor handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.number() < 0) throw_system(Fault::output, folder, "cannot be opened to be synced", errno);
  if (::fsync(handle.number()) != 0 && errno != EINVAL)  // EINVAL: a file system that has no such thing
    throw_system(Fault::output, folder, "fsync failed", errno);
}

void require_parent(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(folder_of(path), error);
  if (!fs::exists(status))
    throw Error(Fault::output, cat(path.string(), ": the folder ", folder_of(path).string(), " does not exist"));
  if (!fs::is_directory(status))
    throw Error(Fault::output, cat(path.string(), ": ", folder_of(path).string(), " is not a folder"));
}

/// A file past RLIMIT_FSIZE is then an error of write() that is reported, not a signal that kills.
void report_file_size_limit() {
  static const bool once = (::signal(SIGXFSZ, SIG_IGN), true);
  (void)once;
}

}  // namespace

struct OutputFile::State {
  fs::path path, temporary;  // temporary: empty once committed or removed
  files::Descriptor file;
  std::vector<char> buffer;

  ~State() { discard(); }

  void discard() noexcept {
    file.close();
    if (!temporary.empty() && ::unlink(temporary.c_str()) != 0)
      log_warn(cat(temporary.string(), ": could not be removed: ", std::strerror(errno)));
    temporary.clear();
  }

  [[noreturn]] void fail(const char* what, int error) {
    discard();
    throw_system(Fault::output, path, what, error);
  }

  void write_through(const char* bytes, std::size_t count) {
    while (count > 0) {
      const ssize_t written = ::write(file.number(), bytes, count);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("writing failed", errno);
      bytes += written, count -= std::size_t(written);
    }
  }

  void flush() {
    write_through(buffer.data(), buffer.size());
    buffer.clear();
  }
};

OutputFile::OutputFile(const fs::path& path) : state_(new State) {
  report_file_size_limit();
  state_->path = settled(path);
  require_parent(state_->path);
  std::error_code error;
  const fs::file_status status = fs::status(state_->path, error);
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw Error(Fault::output, cat(path.string(), ": exists and is not a regular file; choose another name"));
  sweep_leftovers(folder_of(state_->path));
  const fs::path temporary = temporary_beside(state_->path);
  state_->file = files::Descriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (state_->file.number() < 0) throw_system(Fault::output, path, "cannot be written", errno);
  state_->temporary = temporary;
  state_->buffer.reserve(kBufferBytes);
}

OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

const fs::path& OutputFile::path() const { return state_->path; }

void OutputFile::write(const void* bytes, Offset count) {
  const char* first = static_cast<const char*>(bytes);
  std::vector<char>& buffer = state_->buffer;
  if (buffer.size() + std::size_t(count) > kBufferBytes) state_->flush();
  if (std::size_t(count) >= kBufferBytes)
    state_->write_through(first, std::size_t(count));
  else
    buffer.insert(buffer.end(), first, first + count);
}

void OutputFile::commit() {
  State& s = *state_;
  s.flush();
  if (::fsync(s.file.number()) != 0 && errno != EINVAL) s.fail("fsync failed", errno);
  if (const int error = s.file.close()) s.fail("closing failed", error);
  if (::rename(s.temporary.c_str(), s.path.c_str()) != 0) s.fail("renaming into place failed", errno);
  s.temporary.clear();
  sync_folder(folder_of(s.path));
}

void write_text(const fs::path& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

OutputFolder::OutputFolder(const fs::path& path) : final_(settled(path)) {
  require_parent(final_);
  std::error_code error;
  if (fs::exists(fs::symlink_status(final_, error)))
    throw Error(Fault::output, cat(path.string(), ": exists already; choose another name or remove it"));
  sweep_leftovers(folder_of(final_));
  const fs::path temporary = temporary_beside(final_);
  if (::mkdir(temporary.c_str(), 0777) != 0) throw_system(Fault::output, path, "cannot be made", errno);
  temporary_ = temporary;
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : temporary_(std::exchange(other.temporary_, {})), final_(std::move(other.final_)) {}

OutputFolder::~OutputFolder() {
  if (temporary_.empty()) return;
  std::error_code error;
  fs::remove_all(temporary_, error);
  if (error) log_warn(cat(temporary_.string(), ": could not be removed: ", error.message()));
}

void OutputFolder::commit() {
  if (!commit_as(final_)) throw Error(Fault::output, cat(final_.string(), ": has come into being in the meantime"));
}

bool OutputFolder::commit_as(const fs::path& path) {
  GS_EXPECT(!temporary_.empty(), path.string(), ": is committed already");
  sync_folder(temporary_);
  if (::rename(temporary_.c_str(), path.c_str()) != 0) {
    if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) return false;
    throw_system(Fault::output, path, "renaming into place failed", errno);
  }
  temporary_.clear();
  sync_folder(folder_of(path));
  return true;
}

FolderLock::FolderLock(const fs::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      is_held_(descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) {
  if (is_held_ || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  throw Error(Fault::output, cat(folder.string(), ": another process is writing there; wait for its end, or stop it"));
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void sweep_leftovers(const fs::path& folder, bool of_any_host) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (of_any_host ? !is_temporary(name) : !left_by_dead_process(name)) continue;
    std::error_code removal;
    fs::remove_all(entry->path(), removal);
    log_info(cat(entry->path().string(), ": left by a process that is gone; ",
                 removal ? "could not be removed: " + removal.message() : "removed"));
  }
}

void remove_folder(const fs::path& path) {
  const fs::path hidden = temporary_beside(path);
  if (::rename(path.c_str(), hidden.c_str()) != 0) {
    if (errno == ENOENT) return;
    throw_system(Fault::output, path, "cannot be removed", errno);
  }
  std::error_code error;
  fs::remove_all(hidden, error);
  if (error) throw Error(Fault::output, cat(hidden.string(), ": cannot be removed: ", error.message()));
}

void replace_folder(const fs::path& next, const fs::path& path) {
  const auto rename = [&](unsigned flags) {
    return ::renameat2(AT_FDCWD, next.c_str(), AT_FDCWD, path.c_str(), flags) == 0;
  };
  if (rename(RENAME_EXCHANGE)) {
    sync_folder(folder_of(path));
    return remove_folder(next);
  }
  const fs::path hidden = temporary_beside(path);
  const bool must_hide = errno == EINVAL;  // a file system that does not exchange, as NFS
  if (must_hide && ::rename(path.c_str(), hidden.c_str()) != 0)
    throw_system(Fault::output, path, "cannot be replaced", errno);
  if (!rename(0)) throw_system(Fault::output, path, "renaming into place failed", errno);
  sync_folder(folder_of(path));
  if (must_hide) remove_folder(hidden);
}

void check_writable(const fs::path& path) {
  const fs::path place = settled(path);
  std::error_code error;
  const fs::file_status status = fs::status(place, error);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
    throw Error(Fault::output, cat(path.string(), ": is neither a file nor a folder; choose another name"));
  require_parent(place);
  sweep_leftovers(folder_of(place));
  // Permission bits do not say it all (root, read-only mounts, quotas): a file is made and removed.
  const fs::path probe = temporary_beside(fs::is_directory(status) ? place / "probe" : place);
  const files::Descriptor made(::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (made.number() < 0) throw_system(Fault::output, path, "cannot be written", errno);
  if (::unlink(probe.c_str()) != 0) throw_system(Fault::output, probe, "cannot be removed", errno);
}

Offset free_bytes(const fs::path& path) {
  std::error_code error;
  fs::path place = fs::absolute(path, error);
  while (!fs::exists(place, error) && place.has_relative_path()) place = place.parent_path();
  struct statvfs status {};
  if (::statvfs(place.c_str(), &status) != 0) throw_system(Fault::output, place, "its free space is unknown", errno);
  return Offset(status.f_bavail) * Offset(status.f_frsize);
}

}  // namespace gs
