#pragma once

#include "core/simd.h"

namespace cutout {

/// Catmull-Rom spline between b and c, limited to their range.
CUTOUT_HD float between(float a, float b, float c, float d, float wa, float wb, float wc,
                        float wd) {
  const float value = wa * a + wb * b + wc * c + wd * d;
  const float low = b < c ? b : c;
  const float high = b < c ? c : b;
  return value < low ? low : (value > high ? high : value);
}

}  // namespace cutout
