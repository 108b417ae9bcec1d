// One connection between two ranks after they have met: messages in frames, both directions at once.
#pragma once

#include "graphscale/core.hpp"

#include "src/exchange/socket.hpp"

namespace gs {

/// Before each piece of a message. Messages are cut so that a rank that has to leave can say so between two pieces.
struct Frame {
  enum Kind : std::uint32_t { data = 0x47535031, abort, ended };  // the first value also tells a stranger's bytes
  std::uint32_t kind;
  std::uint32_t bytes;  ///< that follow
  Offset call;          ///< the sender's, counted from 1
  Offset total;         ///< bytes of the whole message; abort, ended: the sender's rank
};

inline constexpr Offset kFrameBytes = 1 << 20;
inline constexpr Offset kLongestFarewell = 4096;

/// The sending half: the message under way. Nothing is sent for 0 bytes.
class Outbox {
 public:
  void start(Offset call, Span<const char> message) { call_ = call, message_ = message, done_ = 0; }
  bool is_sending() const { return done_ < message_.size || frame_at_ > 0; }
  /// Sends what the socket takes, one frame at most. Bytes; -1: the connection is gone.
  Offset send(const Socket& socket);

  /// Gives the message up for a last word: what is left of the frame under way is filled with zeros, as the message's
  /// memory may be gone.
  void start_farewell(Frame::Kind kind, int rank, const std::string& sentence);
  bool is_saying_farewell() const { return !farewell_.empty(); }
  Offset send_farewell(const Socket& socket);

 private:
  Offset call_ = 0;
  Span<const char> message_;
  Offset done_ = 0;      // bytes of message_ in whole frames that were sent
  Frame frame_{};        // under way
  Offset frame_at_ = 0;  // bytes of frame_ and its body that were sent; 0: none is under way
  std::string farewell_;
};

/// The receiving half. Reads ahead one frame's head, so that a farewell is heard while nothing is expected.
class Inbox {
 public:
  Inbox(int from, int to) : from_(from), to_(to) {}

  /// Throws comm: what was read ahead does not belong to this call.
  void start(Offset call, Span<char> into);
  bool is_expecting() const { return done_ < into_.size; }
  bool wants_bytes() const { return !is_closed_ && !is_ahead(); }
  bool is_closed() const { return is_closed_; }
  bool is_lost() const { return is_closed_ && farewell_.empty(); }  ///< closed without a word

  /// Receives what has come, one frame at most. Bytes. Throws comm: an abort's sentence, a message of another call or
  /// size, no frame at all. Where the connection ended only is_closed() changes: the other rank may be done.
  Offset receive(const Socket& socket);

  /// From here on messages are read and forgotten; only an abort still throws.
  void discard() { is_discarding_ = true, scratch_.resize(1 << 16); }

  /// Throws comm why the connection ended: the other rank's last words, else that it died.
  [[noreturn]] void throw_loss(const Socket& socket);

 private:
  static constexpr Offset kHeadBytes = sizeof(Frame);
  bool is_data() const { return frame_.kind == Frame::data; }
  bool is_ahead() const { return head_at_ == kHeadBytes && is_data() && frame_.call > call_ && !is_discarding_; }
  Span<char> room();
  void check_head() const;
  void close_frame();

  int from_, to_;
  Offset call_ = 0;
  Span<char> into_;
  Offset done_ = 0;  // bytes of into_ received in whole frames
  Frame frame_{};
  Offset head_at_ = 0, body_at_ = 0;
  std::string text_, farewell_;  // text_: being received
  std::vector<char> scratch_;
  bool is_closed_ = false, is_discarding_ = false;
};

}  // namespace gs
