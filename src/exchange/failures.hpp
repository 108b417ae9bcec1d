// The sentences in which ranks speak of each other. They read alike on every rank, for the first is passed on;
// none ends in a full stop: callers add what they know ("; last finished step 17").
#pragma once

#include "graphscale/core.hpp"

namespace gs {

/// "rank 1", "ranks 0, 2", "ranks 0-3, 7"; `ranks` ascend.
std::string rank_list(const std::vector<int>& ranks);

/// "rank N left: REASON", what others throw after abort(REASON) on rank N.
std::string left_sentence(int rank, const std::string& reason);

/// True for a left_sentence: the error behind it is another rank's.
bool is_left_sentence(const std::string& sentence);

/// Of ranks that gave no sign for timeout_s.
std::string silent_sentence(const std::vector<int>& ranks, double timeout_s);

/// Of a rank whose connection ended without a word.
std::string died_sentence(int rank);

/// Of a rank whose end was closed in good order, while others still call.
std::string ended_sentence(int rank);

/// Of parts whose sizes the two sides see differently.
std::string mismatch_sentence(int from, int to, Offset sent_bytes, Offset expected_bytes);

/// What came from a socket, fit for a terminal: bytes outside of printable ASCII are '?'.
std::string printable(std::string text);

}  // namespace gs
