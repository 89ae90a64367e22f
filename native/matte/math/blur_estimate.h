#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/simd.h"
#include "matte/math/probability.h"

namespace cutout {

// The slopes of matte/blur_estimate.h.

inline constexpr int kSlopeScale = 1024;       // bins for a slope of 1 per network pixel
inline constexpr int kSlopes = 725;            // bins; the greatest possible slope is sqrt(1/2)
inline constexpr std::uint32_t kShare = 1000;  // 1 / kShare are steeper than the one used

/// Bin of the slope at a network pixel that is not at the border; -1 where it is certain.
CUTOUT_HD int slope_at(const float* p, std::ptrdiff_t width) {
  if (!(*p >= kCertainBackground && *p <= kCertainForeground)) return -1;
  const float across = (clamp01(p[1]) - clamp01(p[-1])) * 0.5F;
  const float down = (clamp01(p[width]) - clamp01(p[-width])) * 0.5F;
  const int slope = static_cast<int>(std::sqrt(across * across + down * down) * kSlopeScale);
  return slope < kSlopes - 1 ? slope : kSlopes - 1;
}

/// Rank, from the steepest, of the slope that is used out of `soft`, at least 1.
CUTOUT_HD std::uint32_t slope_rank(std::uint32_t soft) { return soft / kShare; }

/// The slope that is used, from the number of slopes in each bin; -1 where there is none.
CUTOUT_HD int used_slope(const std::uint32_t* counts) {
  std::uint32_t soft = 0;
  for (int i = 0; i < kSlopes; ++i) soft += counts[i];
  if (soft == 0) return -1;
  std::uint32_t steeper = slope_rank(soft);
  int slope = kSlopes - 1;
  while (counts[slope] <= steeper) {
    steeper -= counts[slope];
    --slope;
  }
  return slope;
}

}  // namespace cutout
