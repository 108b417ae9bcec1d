#include "src/exchange/failures.hpp"

namespace gs {

std::string rank_list(const std::vector<int>& ranks) {
  std::string list = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t first = 0, last; first < ranks.size(); first = last + 1) {
    last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last == first + 1) last = first;  // two in a row are listed, not ranged
    if (first > 0) list += ", ";
    list += std::to_string(ranks[first]);
    if (last > first) list += cat("-", ranks[last]);
  }
  return list;
}

std::string left_sentence(int rank, const std::string& reason) { return cat("rank ", rank, " left: ", reason); }

bool is_left_sentence(const std::string& sentence) {
  const std::string start = "rank ";
  if (!sentence.starts_with(start)) return false;
  const std::size_t end = sentence.find_first_not_of("0123456789", start.size());
  return end != start.size() && end != std::string::npos && sentence.compare(end, 7, " left: ") == 0;
}

std::string silent_sentence(const std::vector<int>& ranks, double timeout_s) {
  const bool one = ranks.size() == 1;
  return cat("no sign of ", rank_list(ranks), " for ", timeout_s, " s (exchange.timeout_s): ", one ? "it" : "they",
             one ? " was" : " were", " stopped, or ", one ? "hangs" : "hang", ", or ", one ? "is" : "are",
             " slower than that");
}

std::string died_sentence(int rank) { return cat("rank ", rank, " closed its connection: it died or was killed"); }

std::string ended_sentence(int rank) { return left_sentence(rank, "its work ended where the others' goes on"); }

std::string mismatch_sentence(int from, int to, Offset sent_bytes, Offset expected_bytes) {
  return cat("rank ", from, " sends ", sent_bytes, " bytes to rank ", to, ", which expects ", expected_bytes,
             ": the ranks do not make the same calls");
}

std::string printable(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

}  // namespace gs
