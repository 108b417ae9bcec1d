// Pairs on a team: every kPairLanes threads (a warp) take a pair, 16 bytes of a row a thread. All of them go through
// the phases together (score, sigma, step), so that nothing is read in the team while it is written.
#pragma once

#include "kernels/pairs.hpp"
#include "kernels/tile_team.hpp"

namespace gs::kernels::GS_BACKEND::team {

#if defined(GS_EMULATED)
inline constexpr int kPairLanes = 2;  // two pairs at once on four threads
inline constexpr int kTeamSize = kTeamThreads;
#else
inline constexpr int kPairLanes = 32;
inline constexpr int kTeamSize = kThreads;
#endif
inline constexpr int kPairsAtOnce = kTeamSize / kPairLanes;

class PairProducts {
 public:
  static Offset scratch_bytes(const TileShape& shape) {
    return 4 * ((1 + Offset(shape.negatives)) * (kTeamSize + kPairsAtOnce) + kTeamSize);
  }

  GS_DEV PairProducts(const Team& team, const TileBatch& batch, const PairList& pairs)
      : team_(team),
        batch_(batch),
        pairs_(pairs),
        partial_(reinterpret_cast<float*>(team.scratch + PairList::bytes(batch.shape))),
        coefficients_(partial_ + kTeamSize * pairs.width),
        losses_(coefficients_ + kPairsAtOnce * pairs.width),
        packs_(int(batch.centres.stride) / kPack) {}

  GS_DEV TileResult train() {
    float loss = 0;
    for (int first = 0; first < pairs_.count; first += kPairsAtOnce) {
      const int pair = first + team_.rank() / kPairLanes;
      if (pair < pairs_.count) add_partial_scores(pair);
      team_.sync();
      const int at_once = pairs_.count - first < kPairsAtOnce ? pairs_.count - first : kPairsAtOnce;
      for (int k = team_.rank(); k < at_once * pairs_.width; k += kTeamSize) loss += coefficient(first, k);
      team_.sync();
      for (int pack = 0; pack < packs_; pack += kPairLanes)  // the same turns for every thread: step() has a barrier
        step(pair, pack + team_.rank() % kPairLanes);
      team_.sync();
    }
    losses_[team_.rank()] = loss;
    team_.sync();
    TileResult result;
    result.pairs = std::uint32_t(pairs_.count);
    if (team_.rank() == 0)
      for (int t = 0; t < kTeamSize; ++t) result.loss += losses_[t];
    return result;
  }

 private:
  GS_DEV float* centre(int pair) const { return batch_.centres.row(pairs_.centres[pair]); }
  GS_DEV RowId other(int pair, int r) const { return pairs_.rows[pair * pairs_.width + r]; }

  GS_DEV void add_partial_scores(int pair) {
    for (int r = 0; r < pairs_.width; ++r) {
      if (other(pair, r) == kNoRow) continue;
      const float* row = batch_.contexts.row(other(pair, r));
      float sum = 0;
      for (int pack = team_.rank() % kPairLanes; pack < packs_; pack += kPairLanes)
        sum = dot(load(centre(pair) + pack * kPack), load(row + pack * kPack), sum);
      partial_[r * kTeamSize + team_.rank()] = sum;
    }
  }

  /// The learning-rate-scaled gradient of row k % width of pair first + k / width; returns its loss.
  GS_DEV float coefficient(int first, int k) {
    const int pair = k / pairs_.width, r = k % pairs_.width;
    if (other(first + pair, r) == kNoRow) return 0;
    float score = 0;
    for (int t = 0; t < kPairLanes; ++t) score += partial_[r * kTeamSize + pair * kPairLanes + t];
    const float away = r == 0 ? -score : score;  // the loss is -log sigma(-away)
    const float e = expf(away < 0 ? away : -away), sigma = (away > 0 ? 1.0f : e) / (1 + e);
    coefficients_[k] = batch_.learning_rate * (r == 0 ? sigma : -sigma);
    return (away < 0 ? 0.0f : away) + log1pf(e);
  }

  GS_DEV void step(int pair, int pack) {
    const bool active = pair < pairs_.count && pack < packs_;
    const float* coefficients = coefficients_ + team_.rank() / kPairLanes * pairs_.width;
    Pack4 old = {}, sum = {};
    if (active) {
      old = load(centre(pair) + pack * kPack);
      for (int r = 0; r < pairs_.width; ++r)
        if (other(pair, r) != kNoRow)
          add_scaled(sum, coefficients[r], load(batch_.contexts.row(other(pair, r)) + pack * kPack));
    }
    team_.sync();  // another pair of the team may step the rows that this one reads
    if (!active) return;
    for (int r = 0; r < pairs_.width; ++r)
      if (other(pair, r) != kNoRow)
        add_to(batch_.contexts.row(other(pair, r)) + pack * kPack, scaled(coefficients[r], old));
    add_to(centre(pair) + pack * kPack, sum);
  }

  const Team& team_;
  const TileBatch& batch_;
  const PairList& pairs_;
  float* partial_;       // [width, team]: a thread's share of its pair's scores
  float* coefficients_;  // [pairs at once, width]
  float* losses_;        // [team]
  int packs_;
};

}  // namespace gs::kernels::GS_BACKEND::team
