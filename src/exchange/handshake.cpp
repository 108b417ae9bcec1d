#include <algorithm>
#include <cstring>
#include <set>

#include "graphscale/exchange.hpp"

#include "src/exchange/failures.hpp"

namespace gs {
namespace {

constexpr std::size_t kShownBytes = 80;      // of a value, in the sentence
constexpr std::size_t kMostBytes = 1 << 20;  // of a rank's facts
constexpr int kShownFacts = 3;

using Facts = std::map<std::string, std::string>;

/// "LENGTH:BYTES" one after another, names and values in turn.
std::string pack(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += cat(name.size(), ":", name, value.size(), ":", value);
  GS_EXPECT(text.size() <= kMostBytes, "handshake: facts of ", text.size(), " bytes; at most ", kMostBytes);
  return text;
}

std::string take(std::string_view& text, int rank) {
  const std::size_t colon = text.substr(0, 8).find(':');
  std::size_t length = 0;
  bool good = colon != std::string_view::npos && colon > 0;
  for (std::size_t i = 0; good && i < colon; ++i) {
    good = text[i] >= '0' && text[i] <= '9';
    length = 10 * length + std::size_t(text[i] - '0');
  }
  if (!good || length > text.size() - colon - 1)
    throw Error(Fault::comm, cat("rank ", rank, " sends facts that cannot be read: is it the same program?"));
  const std::string part(text.substr(colon + 1, length));
  text.remove_prefix(colon + 1 + length);
  return part;
}

Facts unpack(std::string_view text, int rank) {
  Facts facts;
  while (!text.empty()) {
    const std::string name = take(text, rank);
    facts[name] = take(text, rank);
  }
  return facts;
}

std::string shown(const std::string& value) {
  return printable(value.size() <= kShownBytes ? value : value.substr(0, kShownBytes) + "...");
}

/// "NAME: A on ranks 0, 2; B on rank 1", or empty where all agree.
std::string disagreement(const std::string& name, const std::vector<Facts>& facts) {
  std::vector<std::pair<std::string, std::vector<int>>> holders;  // in the order of their first ranks
  for (std::size_t r = 0; r < facts.size(); ++r) {
    const auto found = facts[r].find(name);
    const std::string value = found == facts[r].end() ? "missing" : found->second.empty() ? "empty" : found->second;
    const auto same = std::find_if(holders.begin(), holders.end(), [&](const auto& h) { return h.first == value; });
    if (same == holders.end()) {
      holders.emplace_back(value, std::vector<int>{int(r)});
    } else {
      same->second.push_back(int(r));
    }
  }
  if (holders.size() == 1) return "";
  std::string sentence = printable(name) + ": ";
  for (std::size_t i = 0; i < holders.size() && i <= std::size_t(kShownFacts); ++i) {
    if (i > 0) sentence += "; ";
    sentence += i == std::size_t(kShownFacts) ? cat(holders.size() - i, " more values")
                                              : cat(shown(holders[i].first), " on ", rank_list(holders[i].second));
  }
  return sentence;
}

}  // namespace

void handshake(Comm& comm, const std::vector<std::pair<std::string, std::string>>& facts) {
  const std::vector<std::string> texts = comm.gather_texts(pack(facts));
  std::vector<Facts> by_rank;
  for (std::size_t r = 0; r < texts.size(); ++r) by_rank.push_back(unpack(texts[r], int(r)));

  // Rank 0's names first, in its order, then names that only others have: the same on every rank.
  std::vector<std::string> names;
  std::set<std::string> known;
  for (std::string_view text = texts[0]; !text.empty(); take(text, 0)) {
    const std::string name = take(text, 0);
    if (known.insert(name).second) names.push_back(name);
  }
  for (const Facts& one : by_rank)
    for (const auto& [name, value] : one)
      if (known.insert(name).second) names.push_back(name);

  std::string sentence;
  int found = 0;
  for (const std::string& name : names) {
    const std::string one = disagreement(name, by_rank);
    if (one.empty()) continue;
    if (++found <= kShownFacts) sentence += (found > 1 ? " | " : "") + one;
  }
  if (found > kShownFacts) sentence += cat(" | and ", found - kShownFacts, " more");
  if (found > 0) throw Error(Fault::comm, cat("the ranks were not started alike: ", sentence));
}

}  // namespace gs
