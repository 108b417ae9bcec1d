// Are these counts draws from those probabilities?
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gs {

/// Pearson's statistic of counts against probabilities, as standard deviations above its mean (Wilson-Hilferty). Cells
/// of probability 0 must be empty; cells expected below 5 are merged. Of right draws, one in 30,000 exceeds 4.
inline double chi_square_sigmas(const std::vector<double>& counts, const std::vector<double>& probabilities) {
  double total = 0, statistic = 0, rest_count = 0, rest_expected = 0;
  int cells = 0;
  for (const double count : counts) total += count;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * probabilities[i];
    if (probabilities[i] == 0) {
      EXPECT_EQ(counts[i], 0) << "cell " << i << " of probability 0 was drawn";
    } else if (expected < 5) {
      rest_count += counts[i], rest_expected += expected;
    } else {
      statistic += (counts[i] - expected) * (counts[i] - expected) / expected, ++cells;
    }
  }
  if (rest_expected >= 1)
    statistic += (rest_count - rest_expected) * (rest_count - rest_expected) / rest_expected, ++cells;
  if (cells < 2) return 0;
  const double freedom = cells - 1, spread = 2 / (9 * freedom);
  return (std::cbrt(statistic / freedom) - (1 - spread)) / std::sqrt(spread);
}

inline constexpr double kChiSquareLimit = 4;

}  // namespace gs
