#pragma once

#include "core/simd.h"

namespace cutout {

inline constexpr int kBlocks = 256;  // along the longer side

/// Side, in network pixels, of the square blocks in which an output is looked at coarsely.
CUTOUT_HD int block_side(int width, int height) {
  const int longer = width > height ? width : height;
  return longer < 2 * kBlocks ? 1 : longer / kBlocks;
}

}  // namespace cutout
