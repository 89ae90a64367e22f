#pragma once

#include "core/simd.h"

namespace cutout {

/// Outside this range the network is certain. Networks leave 1/255 to 5/255 on the
/// background, which would extend boxes and crops over the whole image.
inline constexpr float kCertainBackground = 0.02F;
inline constexpr float kCertainForeground = 0.98F;

/// A network pixel with at least this probability belongs to the foreground (docs/matting.md).
inline constexpr float kForegroundThreshold = 0.5F;

/// 0 or 1 where the network is certain, else p; 0 for NaN.
CUTOUT_HD float snap(float p) {
  return p >= kCertainBackground ? (p <= kCertainForeground ? p : 1.0F) : 0.0F;
}

}  // namespace cutout
