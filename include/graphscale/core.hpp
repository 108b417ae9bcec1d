// Words that every room speaks: ids, views, errors, devices, memory, threads, progress.
//
// Shape letters, the same in the whole project: [n] rows of a table or batch, [dim] columns, [t] tiles, [l] nodes of a
// walk, [s] negatives shared by a tile, [k] negatives a pair or answers to a query.
//
// Three id spaces, never just "id":  node  a name as the input wrote it (bytes);  row  its dense number, 0 the highest
// degree;  slot  a position among one batch's rows.
//
// This header is read by nvcc too: no spdlog, no nlohmann-json, nothing heavy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__CUDACC__)
#define GS_HD __host__ __device__
#define GS_UNROLL _Pragma("unroll")
#else
#define GS_HD
#define GS_UNROLL _Pragma("GCC unroll 16")
#endif

namespace gs {

inline constexpr const char* kVersion = "0.1.0";  ///< as in CMakeLists.txt

using RowId = std::uint32_t;  ///< a node's row in every table; at most kMaxRows of them
using Offset = std::int64_t;  ///< counts and positions of arcs, rows, bytes: always 64 bits
inline constexpr Offset kMaxRows = 0xFFFFFFFELL;
inline constexpr RowId kNoRow = 0xFFFFFFFFu;  ///< "no node here": the rest of a walk that ended early

/// A view of `size` values; owns nothing.
template <class T>
struct Span {
  T* data = nullptr;
  Offset size = 0;

  Span() = default;
  GS_HD Span(T* first, Offset count) : data(first), size(count) {}
  template <class U, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
  GS_HD Span(Span<U> other) : data(other.data), size(other.size) {}
  Span(std::vector<std::remove_const_t<T>>& v) : data(v.data()), size(Offset(v.size())) {}
  template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
  Span(const std::vector<std::remove_const_t<T>>& v) : data(v.data()), size(Offset(v.size())) {}

  GS_HD T& operator[](Offset i) const { return data[i]; }
  GS_HD T* begin() const { return data; }
  GS_HD T* end() const { return data + size; }
  GS_HD bool empty() const { return size == 0; }
  GS_HD Span subspan(Offset from, Offset count) const { return {data + from, count}; }
};

/// A view of a table [count, dim], row-major, `stride` values from one row to the next (stride >= dim: rows are padded
/// to whole vectors inside the program; the padding is never exported).
template <class T>
struct Rows {
  T* data = nullptr;
  Offset count = 0;
  int dim = 0;
  Offset stride = 0;

  Rows() = default;
  GS_HD Rows(T* first, Offset rows, int columns, Offset step) : data(first), count(rows), dim(columns), stride(step) {}
  template <class U, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
  GS_HD Rows(Rows<U> o) : data(o.data), count(o.count), dim(o.dim), stride(o.stride) {}

  GS_HD T* row(Offset i) const { return data + i * stride; }
  GS_HD T& operator()(Offset i, int column) const { return data[i * stride + column]; }
};

/// Columns from one row of a float table to the next: dim rounded up to 64 bytes.
GS_HD constexpr Offset padded_stride(int dim) { return (Offset(dim) + 15) / 16 * 16; }

// ---------------------------------------------------------------------------------------------------------- errors

/// What went wrong, as the process's exit status.
enum class Fault { internal = 1, usage = 2, input = 3, memory = 4, device = 5, comm = 6, output = 7 };

/// One sentence: the thing, what was found, what was expected, what to do.
class Error : public std::runtime_error {
 public:
  Error(Fault kind, const std::string& sentence) : std::runtime_error(sentence), fault(kind) {}
  Fault fault;
};

/// The arguments, written one after another.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Checks an argument at the edge of a room.
#define GS_EXPECT(condition, ...)                                                       \
  do {                                                                                  \
    if (!(condition)) throw ::gs::Error(::gs::Fault::internal, ::gs::cat(__VA_ARGS__)); \
  } while (false)

// ------------------------------------------------------------------------------------------------------------- log

/// Lines on stderr with time and level; data goes to stdout, never through these. Safe from any thread.
void log_info(const std::string& line);
void log_warn(const std::string& line);
void log_error(const std::string& line);
void set_quiet(bool quiet);  ///< true: only warnings and errors, and no progress lines

std::string human_bytes(double bytes);      ///< "1.5 GiB"
std::string human_count(double count);      ///< "12.3 M"
std::string human_seconds(double seconds);  ///< "2 h 05 min", "3.2 s"
std::string with_commas(Offset count);      ///< "1,049,866"
double now_s();                             ///< monotonic clock, seconds

/// Progress of one long phase: a line at once on a terminal each 0.5 s, into a pipe each 10 s, the last one at 100 %
/// with the mean rate. `advance` may be called from any thread. total 0: unknown, no share and no ETA.
class Progress {
 public:
  /// phase "ingest", unit "lines"; rates are printed as "12.3 M lines/s"
  Progress(std::string phase, std::string unit, Offset total);
  ~Progress();  ///< prints nothing: an unfinished phase was ended by an error
  void advance(Offset done,
               const std::string& note = "");  ///< done more; `note` (loss, lr ...) goes into the next line
  void set_total(Offset total);
  void start_at(Offset done);                 ///< so much was done before, at no known rate
  void finish(const std::string& note = "");  ///< prints the 100 % line

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// --------------------------------------------------------------------------------------------------------- signals

/// After this, SIGINT, SIGTERM and SIGUSR1 only set a flag that long loops poll with `stop_requested`; a second one
/// kills.
void catch_stop_signals();
bool stop_requested();

// --------------------------------------------------------------------------------------------------- devices, memory

struct Device {
  enum class Kind { cpu, cuda } kind = Kind::cpu;
  int index = 0;
  bool is_cuda() const { return kind == Kind::cuda; }
};
std::string to_string(Device device);  ///< "cpu", "cuda:0"

/// What `name` ("auto", "cpu", "cuda", "cuda:N") stands for here. auto: the first usable GPU, else the CPU with one
/// line on why. Throws device: cuda asked for and no driver, no card, no CUDA in this build, or a card whose
/// architecture was not built (lists what was built and how to rebuild).
Device choose_device(const std::string& name);

/// GPUs that this build can use here: cuda:0 .. cuda:N - 1.
int usable_gpus();

/// One line for humans: the CPU's model and vector width, or the GPU's name and memory.
std::string describe(Device device);

/// Bytes this process may still take: of the host the least of MemAvailable, the cgroup's and RLIMIT_AS's remainders;
/// of a GPU what is free.
Offset available_bytes(Device device);

Offset resident_bytes();  ///< of this process, in memory now
/// Of the machine or the cgroup, whichever leaves less: bytes at most, and those that nobody has taken.
struct HostMemory {
  Offset limit = 0, left = 0;
};
HostMemory host_memory();

/// Where a GPU sits, as "0000:3b:00.0"; empty on the CPU.
std::string pci_address(Device device);

/// Who holds how much of one kind of memory, by purpose. Safe from any thread.
class MemoryLedger {
 public:
  /// mapped: pinned host memory that a GPU reads and writes at the same addresses (UVA); plain host memory on the CPU.
  explicit MemoryLedger(Device device, bool mapped = false) : device_(device), mapped_(mapped && device.is_cuda()) {}

  /// [bytes] zeroed, aligned to 64 bytes (host; huge pages asked for from 4 MiB) or 256 (device, mapped).
  /// Throws memory: names the purpose, the bytes, the largest entries, and what to lower.
  void* allocate(Offset bytes, const std::string& purpose);
  void release(void* memory, Offset bytes, const std::string& purpose) noexcept;

  Device device() const { return device_; }
  Offset held_bytes(const std::string& purpose) const;
  std::map<std::string, Offset> held() const;
  Offset peak_bytes() const { return peak_; }

 private:
  std::string largest_entries(int count) const;

  Device device_;
  bool mapped_;
  mutable std::mutex mutex_;
  std::map<std::string, Offset> held_;
  Offset total_ = 0, peak_ = 0;
};

/// Where and how work runs. The contract of every function that takes one: its work starts after what was queued on
/// `stream` before the call and is done before what is queued after it; on the CPU it is done when the call returns.
struct Exec {
  Device device;
  int threads = 1;         ///< CPU threads of a parallel loop
  void* stream = nullptr;  ///< cudaStream_t on a GPU
  MemoryLedger* ledger = nullptr;
};

/// A named range on a profiler's time line (NVTX) from here to the end of the scope; nothing without CUDA.
class StageRange {
 public:
  explicit StageRange(const char* name);
  ~StageRange();
  StageRange(const StageRange&) = delete;
  StageRange& operator=(const StageRange&) = delete;
};

/// Sole owner of a stream of `device` (empty on the CPU). Moves, never copies.
class Stream {
 public:
  explicit Stream(Device device);
  Stream(Stream&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept { return std::swap(handle_, other.handle_), *this; }
  ~Stream();
  void* get() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

void wait(const Exec& exec);  ///< blocks until exec.stream is empty; throws device for any fault seen since

/// `bytes` between host and device memory in either direction, queued on exec.stream; plain memcpy on the CPU.
void copy_bytes(void* to, const void* from, Offset bytes, const Exec& exec);

/// `bytes` set to 0, queued on exec.stream.
void clear_bytes(void* memory, Offset bytes, const Exec& exec);

/// Sole owner of `size` values on one device, zeroed, with a purpose in the ledger. Moves, never copies.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(MemoryLedger& ledger, Offset size, std::string purpose)
      : ledger_(&ledger),
        size_(size),
        purpose_(std::move(purpose)),
        data_(static_cast<T*>(ledger.allocate(size * Offset(sizeof(T)), purpose_))) {}
  Buffer(Buffer&& o) noexcept { swap(o); }
  Buffer& operator=(Buffer&& o) noexcept {
    Buffer(std::move(o)).swap(*this);
    return *this;
  }
  ~Buffer() {
    if (data_) ledger_->release(data_, size_ * Offset(sizeof(T)), purpose_);
  }
  T* data() const { return data_; }
  Offset size() const { return size_; }
  Span<T> span() const { return {data_, size_}; }

 private:
  void swap(Buffer& o) noexcept {
    std::swap(ledger_, o.ledger_), std::swap(size_, o.size_), std::swap(purpose_, o.purpose_),
        std::swap(data_, o.data_);
  }
  MemoryLedger* ledger_ = nullptr;
  Offset size_ = 0;
  std::string purpose_;
  T* data_ = nullptr;
};

// --------------------------------------------------------------------------------------------------------- threads

/// body(thread) on `threads` threads, 0 of them the caller's; returns when all have; rethrows the first exception.
/// Throws memory, and calls no body, where the system has no more threads.
void on_threads(int threads, const std::function<void(int thread)>& body);

/// body(first, last, thread) over [0, count) in pieces of `grain`, taken by whichever thread is free.
void parallel_for(int threads, Offset count, Offset grain,
                  const std::function<void(Offset first, Offset last, int thread)>& body);

int hardware_threads();  ///< processors this process may use: by affinity and by its cgroups' quota

}  // namespace gs
