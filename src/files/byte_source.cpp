#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>

#include "graphscale/files.hpp"

#include "src/files/descriptor.hpp"

namespace gs {
namespace {

constexpr Offset kBlockBytes = 1 << 18;  // of the file, read at a time where it is decompressed
constexpr Offset kMagicBytes = 10;

enum class Format { plain, gzip, zstd };

/// What the first bytes say. Throws input for the archives that are recognised and not read.
Format format_of(std::string_view first, const fs::path& path) {
  struct Archive {
    std::string_view magic, name;
  };
  static constexpr std::array<Archive, 4> kUnread{{{{"\xFD"
                                                     "7zXZ\0",
                                                     6},
                                                    "xz"},
                                                   {"BZh91AY&SY", "bzip2"},
                                                   {"PK\x03\x04", "zip"},
                                                   {"7z\xBC\xAF\x27\x1C", "7z"}}};
  for (const Archive& archive : kUnread)
    if (first.substr(0, archive.magic.size()) == archive.magic)
      throw Error(Fault::input, cat(path.string(), ": is ", archive.name,
                                    " data, which is not read; unpack it, or pack it with gzip or zstd"));
  if (first.substr(0, 3) == "\x1F\x8B\x08") return Format::gzip;
  if (first.substr(0, 4) == "\x28\xB5\x2F\xFD") return Format::zstd;
  const bool skippable_frame = first.size() >= 4 && (first[0] & 0xF0) == 0x50 && first.substr(1, 3) == "\x2A\x4D\x18";
  return skippable_frame ? Format::zstd : Format::plain;
}

}  // namespace

struct ByteSource::State {
  fs::path path;
  files::Descriptor file;
  Offset file_bytes = 0, read_bytes = 0;
  Format format = Format::plain;
  std::vector<char> block;  // [begin, end) of it is read and not yet used
  Offset begin = 0, end = 0;
  z_stream inflater{};
  ZSTD_DStream* zstd = nullptr;
  bool inflater_ready = false;
  bool inside = false;  // a gzip member or zstd frame has begun and not ended

  explicit State(const fs::path& p) : path(p) {
    struct stat status {};
    file = files::open_input(p, status);
    file_bytes = S_ISREG(status.st_mode) ? Offset(status.st_size) : 0;
    block.resize(std::size_t(kMagicBytes));
    end = read_bytes = files::read_fully(file, path, block.data(), kMagicBytes);
    format = format_of({block.data(), std::size_t(end)}, path);
    if (format != Format::plain) block.resize(std::size_t(kBlockBytes));
    if (format == Format::gzip) {
      constexpr int kGzipOnly = 16;
      if (inflateInit2(&inflater, kGzipOnly + MAX_WBITS) != Z_OK)
        throw Error(Fault::memory, cat(path.string(), ": no memory for the gzip decoder"));
      inflater_ready = inside = true;
    } else if (format == Format::zstd) {
      zstd = ZSTD_createDStream();
      if (!zstd) throw Error(Fault::memory, cat(path.string(), ": no memory for the zstd decoder"));
    }
  }
  State(const State&) = delete;
  ~State() {
    if (inflater_ready) inflateEnd(&inflater);
    ZSTD_freeDStream(zstd);
  }

  /// True while there is unused input in the block, after reading more where there was none.
  bool refill() {
    if (begin < end) return true;
    begin = 0;
    end = files::read_fully(file, path, block.data(), Offset(block.size()));
    read_bytes += end;
    return end > 0;
  }

  [[noreturn]] void fail(const std::string& what) const { throw Error(Fault::input, cat(path.string(), ": ", what)); }
  Offset consumed() const { return read_bytes - (end - begin); }

  Offset read_plain(char* into, Offset capacity) {
    const Offset buffered = std::min(capacity, end - begin);
    std::memcpy(into, block.data() + begin, std::size_t(buffered));
    begin += buffered;
    const Offset count = files::read_fully(file, path, into + buffered, capacity - buffered);
    read_bytes += count;
    return buffered + count;
  }

  /// Between members: skips the zero bytes that tapes and block devices leave. False at the end of the file.
  bool next_member() {
    while (refill()) {
      const char* first = std::find_if(block.data() + begin, block.data() + end, [](char c) { return c != 0; });
      begin = first - block.data();
      if (begin == end) continue;
      inflateReset(&inflater);
      return inside = true;
    }
    return false;
  }

  Offset read_gzip(char* into, Offset capacity) {
    Offset done = 0;
    while (done < capacity) {
      if (!inside && !next_member()) break;
      if (!refill()) fail(cat("gzip data is truncated after ", consumed(), " bytes"));
      const Offset room = std::min<Offset>(capacity - done, 1 << 30);
      inflater.next_in = reinterpret_cast<Bytef*>(block.data() + begin), inflater.avail_in = uInt(end - begin);
      inflater.next_out = reinterpret_cast<Bytef*>(into + done), inflater.avail_out = uInt(room);
      const int status = inflate(&inflater, Z_NO_FLUSH);
      begin = end - Offset(inflater.avail_in), done += room - Offset(inflater.avail_out);
      if (status == Z_STREAM_END) {
        inside = false;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail(cat("gzip data is damaged near byte ", consumed(), ": ",
                 inflater.msg ? inflater.msg : "the decoder stopped"));
      }
    }
    return done;
  }

  Offset read_zstd(char* into, Offset capacity) {
    ZSTD_outBuffer out{into, std::size_t(capacity), 0};
    while (out.pos < out.size) {
      // A frame whose input is used up may still hold output in the decoder, so it is asked once more at the end.
      const bool more = refill();
      if (!more && !inside) break;
      ZSTD_inBuffer in{block.data(), std::size_t(end), std::size_t(begin)};
      const std::size_t before = out.pos, status = ZSTD_decompressStream(zstd, &out, &in);
      begin = Offset(in.pos);
      if (ZSTD_isError(status))
        fail(cat("zstd data is damaged near byte ", consumed(), ": ", ZSTD_getErrorName(status)));
      inside = status != 0;
      if (!more && inside && out.pos == before) fail(cat("zstd data is truncated after ", consumed(), " bytes"));
    }
    return Offset(out.pos);
  }
};

ByteSource::ByteSource(const fs::path& path) : state_(new State(path)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

Offset ByteSource::read(char* into, Offset capacity) {
  switch (state_->format) {
    case Format::gzip:
      return state_->read_gzip(into, capacity);
    case Format::zstd:
      return state_->read_zstd(into, capacity);
    case Format::plain:
      break;
  }
  return state_->read_plain(into, capacity);
}

Offset ByteSource::file_bytes() const { return state_->file_bytes; }
Offset ByteSource::consumed_bytes() const { return state_->consumed(); }
bool ByteSource::compressed() const { return state_->format != Format::plain; }

}  // namespace gs
