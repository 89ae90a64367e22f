#pragma once

#include <cmath>

#include "core/simd.h"
#include "matte/math/probability.h"

namespace cutout {

// The steps of deblur.h for a network pixel.

namespace deblur {

inline constexpr int kMaxIterations = 12;  // of conjugate gradients, at most
// Alpha; the steps end where residual x residual / diagonal, on average over the pixels of the
// tiles, is below its square. That is about the change by the next step.
inline constexpr double kTolerance = 1e-3;
// Weight of the error of the result against that of the output.
inline constexpr float kModelError = 0.3F;
// How much worse than the start alpha may explain output and samples.
inline constexpr float kFit = 1.5F;
// Change of the output by blurring (mean square of alpha) below which there is no confidence:
// rounding to 8 bits, noise and wide gentle slopes stay below it.
inline constexpr float kSoft = 4e-5F;

/// Whether a network pixel is uncertain, from the least and the greatest snapped output around it.
CUTOUT_HD bool is_uncertain(float least, float most) {
  return (static_cast<int>(most > 0.0F) & static_cast<int>(least < 1.0F)) != 0;
}

/// Residual x residual / diagonal of so many network pixels at which the steps end.
CUTOUT_HD double tolerance(double pixels) { return kTolerance * kTolerance * pixels; }

/// Root of the energy's first two terms together.
CUTOUT_HD float root_of_terms(float output, float sample_confidence, float sampled, float value,
                              float blurred) {
  const float error = blurred - snap(output);
  const float apart = value - sampled;
  return std::sqrt((1.0F - sample_confidence) * (error * error) +
                   sample_confidence * (apart * apart));
}

/// The share of the change of alpha that stays. `before`, `after`: means of the energy's first two
/// terms at start and alpha. Where the second is more than kFit times the first, the colours do
/// not explain the edge.
CUTOUT_HD float kept_share(float before, float after) {
  const float most = kFit * before;
  const float ratio = after > most ? most / after : 1.0F;
  return ratio * ratio;
}

/// `network`, `result`: mean squares of start - blur(start) and of start - blur(alpha).
CUTOUT_HD float guide_confidence(float network, float result, float share, float fineness) {
  const float sure =
      network * network / (network * (network + kModelError * result) + kSoft * kSoft);
  return share * fineness * sure;
}

CUTOUT_HD float kept(float start, float alpha, float share) {
  return start + share * (alpha - start);
}

/// Edge strength of a neighbourhood from its least and greatest alpha: 0 where all of it is 0 or
/// all of it is 1, 1 where neither is certain.
CUTOUT_HD float edge_between(float least, float most) {
  const float background = most / kCertainBackground;
  const float foreground = (1.0F - least) / kCertainBackground;
  return (background < 1.0F ? background : 1.0F) * (foreground < 1.0F ? foreground : 1.0F);
}

}  // namespace deblur

}  // namespace cutout
