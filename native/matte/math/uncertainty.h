#pragma once

#include "core/simd.h"

namespace cutout {

/// Probabilities are summed in whole steps, so that sums are exact in any order.
inline constexpr int kProbabilitySteps = 2047;

/// A probability of 0..1 in steps of 1 / kProbabilitySteps.
CUTOUT_HD int probability_steps(float p) {
  return static_cast<int>(p * static_cast<float>(kProbabilitySteps) + 0.5F);
}

/// The variance p (1 - p) of a yes or no of that probability, in squared steps.
CUTOUT_HD int variance(int steps) { return steps * (kProbabilitySteps - steps); }

/// The side of the blocks that are measured, in network pixels: 4 at 1024, 1 below 512. Edges and
/// hair are narrower.
CUTOUT_HD int uncertainty_block(int width, int height) {
  const int side = width > height ? width : height;
  return side < 512 ? 1 : side / 256;
}

/// Sums over an area of a prediction.
struct UncertaintySums {
  unsigned long long probability;  // steps of all pixels
  unsigned long long variance;     // of all pixels
  unsigned long long patches;      // the least variance of each block, for each of its pixels
};

/// How unsure a network is of its prediction, as uncertainty.h defines it.
struct Uncertainty {
  double whole = 1;
  double patches = 1;
};

inline Uncertainty uncertainty_of(const UncertaintySums& sums) {
  if (sums.probability == 0) return {};
  const double scale =
      static_cast<double>(kProbabilitySteps) * static_cast<double>(sums.probability);
  return {static_cast<double>(sums.variance) / scale, static_cast<double>(sums.patches) / scale};
}

}  // namespace cutout
