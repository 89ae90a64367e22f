#pragma once

#include <cmath>

#include "core/simd.h"

namespace cutout {

/// Outside this range the network is certain. Networks leave 1/255 to 5/255 on the
/// background, which would extend boxes and crops over the whole image.
inline constexpr float kCertainBackground = 0.02F;
inline constexpr float kCertainForeground = 0.98F;

/// Squared distance of a colour from the line F-B that counts as noise: one that far away is
/// believed by half.
inline constexpr float kNoise = 3e-3F;

/// A network pixel with at least this probability belongs to the foreground (docs/matting.md).
inline constexpr float kForegroundThreshold = 0.5F;

/// 0 or 1 where the network is certain, else p; 0 for NaN.
CUTOUT_HD float snap(float p) {
  return p >= kCertainBackground ? (p <= kCertainForeground ? p : 1.0F) : 0.0F;
}

/// Limited to 0..1; 0 for NaN.
CUTOUT_HD float clamp01(float v) {
  const float above = v > 0.0F ? v : 0.0F;
  return above < 1.0F ? above : 1.0F;
}

CUTOUT_HD bool finite(float value) { return value - value == 0.0F; }

/// A network's output as a probability, 0 for NaN; `logit`: the output is the logarithm of the
/// odds.
CUTOUT_HD float probability(float value, bool logit) {
  return clamp01(logit ? 1.0F / (1.0F + std::exp(-value)) : value);
}

}  // namespace cutout
