#include <algorithm>
#include <cmath>

#include "graphscale/sampler.hpp"

namespace gs {
namespace {

constexpr double kCoins = 4294967296.0;  // coins are 32 bits

/// A share of a slot as a coin threshold: 0 only for 0, so that a tiny weight stays possible.
std::uint32_t threshold_of(double share) {
  return share <= 0 ? 0 : std::uint32_t(std::clamp(std::ceil(share * kCoins), 1.0, kCoins - 1));
}

/// Vose's method. `share` holds weights scaled to mean 1; slots below 1 take the rest of their coin from one above.
void pair_up(std::vector<double>& share, kernels::AliasSlot* slots, std::vector<std::uint32_t>& order) {
  const auto n = std::uint32_t(share.size());
  order.resize(n);
  std::uint32_t small = 0, large = n;  // order[0, small) lie below 1, order[large, n) do not
  for (std::uint32_t i = 0; i < n; ++i) (share[i] < 1 ? order[small++] : order[--large]) = i;
  std::uint32_t heaviest = n ? order[large < n ? large : 0] : 0;
  while (small > 0 && large < n) {
    const std::uint32_t low = order[--small], high = order[large];
    slots[low] = {threshold_of(share[low]), high};
    share[high] -= 1 - share[low];
    heaviest = high;
    if (share[high] < 1) {
      ++large;
      order[small++] = high;
    }
  }
  // What is left is 1 but for rounding; a zero weight left over by rounding still must never be drawn.
  for (std::uint32_t i = large; i < n; ++i) slots[order[i]] = {threshold_of(1), order[i]};
  for (std::uint32_t i = 0; i < small; ++i)
    slots[order[i]] =
        share[order[i]] > 0 ? kernels::AliasSlot{threshold_of(1), order[i]} : kernels::AliasSlot{0, heaviest};
}

template <class Weight>
void scale_to_mean_one(Span<const Weight> weights, std::vector<double>& share) {
  double sum = 0;
  for (const Weight w : weights) {
    GS_EXPECT(std::isfinite(w) && w >= 0, "alias table: weight ", w, " is not finite and >= 0");
    sum += double(w);
  }
  GS_EXPECT(sum > 0 && std::isfinite(sum), "alias table: ", weights.size, " weights sum to ", sum);
  share.resize(std::size_t(weights.size));
  for (Offset i = 0; i < weights.size; ++i) share[std::size_t(i)] = double(weights[i]) / sum * double(weights.size);
}

}  // namespace

std::vector<kernels::AliasSlot> alias_table(Span<const double> weights) {
  std::vector<double> share;
  std::vector<std::uint32_t> order;
  std::vector<kernels::AliasSlot> slots(std::size_t(weights.size));
  scale_to_mean_one(weights, share);
  pair_up(share, slots.data(), order);
  return slots;
}

void fill_alias_table(Span<const float> weights, kernels::AliasSlot* slots, std::vector<std::uint32_t>& scratch) {
  std::vector<double> share;
  scale_to_mean_one(weights, share);
  pair_up(share, slots, scratch);
}

}  // namespace gs
