#include "src/exchange/wire.hpp"

#include <algorithm>

#include "src/exchange/failures.hpp"
#include "src/exchange/pieces.hpp"

namespace gs {

constexpr double kLastWords_s = 0.2;  // reading what a lost rank had sent

// ---------------------------------------------------------------------------------------------------------- sending

Offset Outbox::send(const Socket& socket) {
  Offset sum = 0;
  while (is_sending()) {
    if (frame_at_ == 0)
      frame_ = {Frame::data, std::uint32_t(next_piece(message_.size, done_, kFrameBytes)), call_, message_.size};
    const Offset head = std::max<Offset>(Offset(sizeof frame_) - frame_at_, 0);
    const Offset body_at = std::max<Offset>(frame_at_ - Offset(sizeof frame_), 0);
    const Offset sent = send_some(socket, reinterpret_cast<const char*>(&frame_) + (Offset(sizeof frame_) - head), head,
                                  message_.data + done_ + body_at, Offset(frame_.bytes) - body_at);
    if (sent < 0) return -1;
    if (sent == 0) return sum;
    sum += sent;
    frame_at_ += sent;
    if (frame_at_ < Offset(sizeof frame_) + Offset(frame_.bytes)) continue;
    done_ += frame_.bytes, frame_at_ = 0;
    return sum;
  }
  return sum;
}

void Outbox::start_farewell(Frame::Kind kind, int rank, const std::string& sentence) {
  farewell_.clear();
  if (frame_at_ > 0) {
    const Offset whole = Offset(sizeof frame_) + Offset(frame_.bytes);
    farewell_.assign(std::size_t(whole - frame_at_), '\0');
    if (frame_at_ < Offset(sizeof frame_))
      farewell_.replace(0, sizeof frame_ - std::size_t(frame_at_), reinterpret_cast<const char*>(&frame_) + frame_at_,
                        sizeof frame_ - std::size_t(frame_at_));
  }
  const std::string text = sentence.substr(0, std::size_t(kLongestFarewell));
  const Frame last{kind, std::uint32_t(text.size()), call_, rank};
  farewell_.append(reinterpret_cast<const char*>(&last), sizeof last).append(text);
  message_ = {}, done_ = 0, frame_at_ = 0;
}

Offset Outbox::send_farewell(const Socket& socket) {
  const Offset sent = send_some(socket, farewell_.data(), Offset(farewell_.size()), nullptr, 0);
  farewell_.erase(0, sent < 0 ? std::string::npos : std::size_t(sent));
  return sent;
}

// -------------------------------------------------------------------------------------------------------- receiving

void Inbox::start(Offset call, Span<char> into) {
  call_ = call, into_ = into, done_ = 0;
  if (head_at_ == kHeadBytes) check_head();
}

void Inbox::check_head() const {
  const Offset bytes = frame_.bytes;
  if (frame_.kind == Frame::abort || frame_.kind == Frame::ended) {
    if (bytes <= kLongestFarewell) return;
  } else if (is_data() && bytes > 0 && bytes <= kFrameBytes) {
    if (is_discarding_ || (is_ahead() && !is_expecting())) return;
    if (frame_.call != call_)
      throw Error(Fault::comm, cat("rank ", from_, " sends ", frame_.total, " bytes in its call ", frame_.call,
                                   " to rank ", to_, ", which is in call ", call_, " and expects ", into_.size,
                                   " bytes: the ranks do not make the same calls"));
    if (frame_.total != into_.size || bytes > into_.size - done_)
      throw Error(Fault::comm, mismatch_sentence(from_, to_, frame_.total, into_.size));
    return;
  }
  throw Error(Fault::comm, cat("what comes from rank ", from_, " to rank ", to_, " is no message of this program"));
}

Span<char> Inbox::room() {
  if (head_at_ < kHeadBytes) return {reinterpret_cast<char*>(&frame_) + head_at_, kHeadBytes - head_at_};
  const Offset left = Offset(frame_.bytes) - body_at_;
  if (!is_data()) return {text_.data() + body_at_, left};
  if (is_discarding_) return {scratch_.data(), std::min(left, Offset(scratch_.size()))};
  return {into_.data + done_ + body_at_, left};
}

Offset Inbox::receive(const Socket& socket) {
  Offset sum = 0;
  while (wants_bytes()) {
    const bool in_head = head_at_ < kHeadBytes;
    const Span<char> into = room();
    const Offset got = receive_some(socket, into.data, into.size);
    if (got < 0) is_closed_ = true;
    if (got <= 0) break;
    sum += got;
    (in_head ? head_at_ : body_at_) += got;
    if (in_head && head_at_ == kHeadBytes) {
      check_head();
      body_at_ = 0;
      if (!is_data()) text_.assign(frame_.bytes, ' ');
    }
    if (head_at_ == kHeadBytes && body_at_ == Offset(frame_.bytes)) {
      close_frame();
      break;
    }
  }
  return sum;
}

void Inbox::close_frame() {
  head_at_ = 0;
  if (is_data()) {
    done_ += frame_.bytes;
    return;
  }
  is_closed_ = true;
  farewell_ = printable(text_);
  if (frame_.kind == Frame::abort) throw Error(Fault::comm, farewell_);
}

void Inbox::throw_loss(const Socket& socket) {
  discard();  // a broken connection can still hold what the other rank said before
  Patience patience(kLastWords_s);
  while (receive(socket) > 0 && !patience.over()) continue;
  throw Error(Fault::comm, farewell_.empty() ? died_sentence(from_) : farewell_);
}

}  // namespace gs
