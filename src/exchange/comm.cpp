// What all transports share: every collective is made of exchanges of parts.
#include <cstring>

#include "graphscale/exchange.hpp"

#include "src/exchange/pieces.hpp"

namespace gs {
namespace {

// Below this one exchange of everything beats two of slices: messages cost some 10 us each, bytes nearly nothing.
constexpr Offset kSmallBytes = 8 << 10;
constexpr Offset kReducedBytes = 4 << 20;  // reduced at a time: bounds the memory for the others' parts
constexpr Offset kLongestText = 64 << 20;

using Parts = std::vector<Span<char>>;
using ConstParts = std::vector<Span<const char>>;

template <class T>
Span<char> bytes_of(Span<T> values) {
  return {reinterpret_cast<char*>(values.data), values.size * Offset(sizeof(T))};
}

/// sums [n] of the parts in the order of ranks; the first part's memory becomes the sums.
template <class T>
Span<T> add_in_order(const std::vector<Span<T>>& parts) {
  const Span<T> sums = parts[0];
  for (std::size_t r = 1; r < parts.size(); ++r) {
    const T* part = parts[r].data;
    for (Offset i = 0; i < sums.size; ++i) sums[i] += part[i];
  }
  return sums;
}

/// One after another in `data`, all but the own part, which is empty.
template <class Byte>
std::vector<Span<Byte>> parts_of(Byte* data, Span<const Offset> sizes, int own) {
  std::vector<Span<Byte>> parts;
  for (Offset r = 0; r < sizes.size; data += sizes[r++]) parts.emplace_back(data, r == own ? 0 : sizes[r]);
  return parts;
}

Offset sum_before(Span<const Offset> sizes, int rank) {
  Offset sum = 0;
  for (int r = 0; r < rank; ++r) sum += sizes[r];
  return sum;
}

}  // namespace

void Comm::copy_own(void* to, const void* from, Offset bytes) {
  if (bytes > 0) std::memmove(to, from, std::size_t(bytes));
}

void Comm::exchange_counted(const ConstParts& send, const Parts& receive) {
  if (size_ == 1) return;
  const double start_s = now_s();
  exchange(send, receive);
  traffic_.waiting_s += now_s() - start_s;
  ++traffic_.calls;
  for (const Span<const char>& part : send) traffic_.sent_bytes += part.size;
  for (const Span<char>& part : receive) traffic_.received_bytes += part.size;
}

void Comm::all_to_all(const void* send, Span<const Offset> send_bytes, void* receive,
                      Span<const Offset> receive_bytes) {
  GS_EXPECT(send_bytes.size == size_ && receive_bytes.size == size_, "all_to_all: ", send_bytes.size, " and ",
            receive_bytes.size, " parts for ", size_, " ranks");
  for (int r = 0; r < size_; ++r)
    GS_EXPECT(send_bytes[r] >= 0 && receive_bytes[r] >= 0, "all_to_all: a part of ", send_bytes[r], " and one of ",
              receive_bytes[r], " bytes");
  GS_EXPECT(send_bytes[rank_] == receive_bytes[rank_], "all_to_all: rank ", rank_, " sends itself ", send_bytes[rank_],
            " bytes and expects ", receive_bytes[rank_]);

  const char* from = static_cast<const char*>(send);
  char* to = static_cast<char*>(receive);
  copy_own(to + sum_before(receive_bytes, rank_), from + sum_before(send_bytes, rank_), send_bytes[rank_]);
  exchange_counted(parts_of(from, send_bytes, rank_), parts_of(to, receive_bytes, rank_));
}

template <class T>
void Comm::reduce_in_order(Span<T> values) {
  if (size_ == 1) return;
  const Offset most = kReducedBytes / Offset(sizeof(T));
  for (Offset first = 0; first < values.size; first += most)
    reduce_piece(values.subspan(first, next_piece(values.size, first, most)));
}

template <class T>
void Comm::reduce_piece(Span<T> values) {
  const bool whole = values.size * Offset(sizeof(T)) <= kSmallBytes;  // everyone sums everything
  const auto slice = [&](int r) {
    if (whole) return values;
    const auto [first, last] = even_piece(values.size, size_, r);
    return values.subspan(first, last - first);
  };
  const Span<T> mine = slice(rank_);

  scratch_.resize(std::size_t(bytes_of(mine).size * size_));
  std::vector<Span<T>> summands;
  ConstParts send;
  Parts receive;
  for (int r = 0; r < size_; ++r) {
    summands.push_back(r == rank_ ? mine : Span<T>(reinterpret_cast<T*>(scratch_.data()) + r * mine.size, mine.size));
    send.push_back(r == rank_ ? Span<char>() : bytes_of(slice(r)));
    receive.push_back(r == rank_ ? Span<char>() : bytes_of(summands.back()));
  }
  exchange_counted(send, receive);
  const Span<T> sums = add_in_order(summands);
  if (sums.data != mine.data) std::copy(sums.begin(), sums.end(), mine.begin());
  if (whole) return;

  for (int r = 0; r < size_; ++r) {
    send[std::size_t(r)] = r == rank_ ? Span<char>() : bytes_of(mine);
    receive[std::size_t(r)] = r == rank_ ? Span<char>() : bytes_of(slice(r));
  }
  exchange_counted(send, receive);
}

void Comm::all_reduce(Span<float> values) { reduce_in_order(values); }
void Comm::all_reduce(Span<double> values) { reduce_in_order(values); }
void Comm::all_reduce(Span<Offset> values) { reduce_in_order(values); }

void Comm::broadcast(void* data, Offset bytes, int root) {
  GS_EXPECT(root >= 0 && root < size_ && bytes >= 0, "broadcast: ", bytes, " bytes from rank ", root, " of ", size_);
  if (size_ == 1 || bytes == 0) return;
  const Span<char> all(static_cast<char*>(data), bytes);
  const bool whole = bytes <= kSmallBytes;
  const auto slice = [&](int r) {
    if (whole) return all;
    const auto [first, last] = even_piece(bytes, size_, r);
    return all.subspan(first, last - first);
  };

  ConstParts send((std::size_t(size_)));
  Parts receive((std::size_t(size_)));
  for (int r = 0; r < size_; ++r)
    if (rank_ == root && r != root) send[std::size_t(r)] = slice(r);
  if (rank_ != root) receive[std::size_t(root)] = slice(rank_);
  exchange_counted(send, receive);
  if (whole) return;

  // Each passes its slice on, so that the root sends everything about twice and not once a rank.
  for (int r = 0; r < size_; ++r) {
    send[std::size_t(r)] = r == rank_ || r == root ? Span<char>() : slice(rank_);
    receive[std::size_t(r)] = r == rank_ || rank_ == root ? Span<char>() : slice(r);
  }
  exchange_counted(send, receive);
}

void Comm::barrier() {
  std::vector<char> from(std::size_t(size_), 0), to(std::size_t(size_), 0);
  const std::vector<Offset> one(std::size_t(size_), 1);
  all_to_all(from.data(), one, to.data(), one);
}

std::vector<Offset> Comm::exchange_counts(Span<const Offset> counts) {
  GS_EXPECT(counts.size == size_, "exchange_counts: ", counts.size, " counts for ", size_, " ranks");
  std::vector<Offset> received((std::size_t(size_)));
  const std::vector<Offset> bytes(std::size_t(size_), Offset(sizeof(Offset)));
  all_to_all(counts.data, bytes, received.data(), bytes);
  return received;
}

std::vector<std::string> Comm::gather_texts(const std::string& text) {
  const Offset length = Offset(text.size());
  GS_EXPECT(length <= kLongestText, "gather_texts: a text of ", length, " bytes; at most ", kLongestText);
  const std::vector<Offset> lengths = exchange_counts(std::vector<Offset>(std::size_t(size_), length));

  std::vector<std::string> texts((std::size_t(size_)));
  ConstParts send;
  Parts receive;
  for (int r = 0; r < size_; ++r) {
    std::string& one = texts[std::size_t(r)];
    const Offset bytes = lengths[std::size_t(r)];
    if (bytes < 0 || bytes > kLongestText)
      throw Error(Fault::comm, cat("rank ", r, " announces a text of ", bytes, " bytes; at most ", kLongestText));
    one = r == rank_ ? text : std::string(std::size_t(bytes), '\0');
    send.push_back(r == rank_ ? Span<const char>() : Span<const char>(text.data(), length));
    receive.push_back(r == rank_ ? Span<char>() : Span<char>(one.data(), bytes));
  }
  exchange_counted(send, receive);
  return texts;
}

}  // namespace gs
