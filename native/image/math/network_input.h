#pragma once

#include "core/simd.h"

namespace cutout {

/// The gray that transparency is laid over, of 255 (docs/matting.md, section 1).
inline constexpr float kGray = 128.0F;

/// Its share in a pixel; `alpha` in 0..255.
CUTOUT_HD float gray_behind(float alpha) { return kGray * (1.0F - alpha * (1.0F / 255.0F)); }

/// One colour of the network's input; `colour` premultiplied, 0..255, `scale` 1 / std.
CUTOUT_HD float normalised(float colour, float gray, float mean, float scale) {
  return (colour + gray - mean) * scale;
}

}  // namespace cutout
