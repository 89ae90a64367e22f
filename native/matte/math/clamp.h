#pragma once

#include "core/simd.h"

namespace cutout {

/// Limited to 0..1; 0 for NaN.
CUTOUT_HD float clamp01(float v) {
  const float above = v > 0.0F ? v : 0.0F;
  return above < 1.0F ? above : 1.0F;
}

}  // namespace cutout
