#pragma once

#include "core/simd.h"

namespace cutout {

/// Where the blocks of a shadow lie (image/shadow.h), in pixels of the canvas.
struct ShadowGrid {
  int block = 1;  // side in pixels, a power of two
  int left = 0;   // of the plane, without the shadow's offset
  int top = 0;
  int width = 0;  // blocks
  int height = 0;
  int offset_x = 0;
  int offset_y = 0;
  int fade_end = 0;  // row of the canvas where a fading shadow is 0
  int fade = 0;      // rows, 0: does not fade
  float opacity = 0;
};

/// Share of the shadow in row y, which fades to 0 at `end` over `rows`.
CUTOUT_HD float fade_at(int y, int end, int rows) {
  if (rows == 0) return 1;
  const float share = (static_cast<float>(end - y) - 0.5F) / static_cast<float>(rows);
  return share < 0.0F ? 0.0F : (share > 1.0F ? 1.0F : share);
}

/// Factor of a sum of alphas of a block's pixels.
CUTOUT_HD float block_scale(int block) {
  return 1.0F / (255.0F * static_cast<float>(block) * static_cast<float>(block));
}

/// `t` of the way from a to b, scaled.
CUTOUT_HD float mixed(float a, float b, float t, float scale) { return (a + (b - a) * t) * scale; }

/// A row of pixels among rows of blocks.
struct ShadowRow {
  int above;    // row of blocks
  float t;      // share of the next row
  float scale;  // opacity and fade
};

CUTOUT_HD ShadowRow shadow_row(const ShadowGrid& grid, int y) {
  // Centre of the pixel in blocks, from the centre of the first block: always inside the plane.
  const float v =
      (static_cast<float>(y - grid.offset_y - grid.top) + 0.5F) / static_cast<float>(grid.block) -
      0.5F;
  const int above = static_cast<int>(v);
  return {above, grid.block == 1 ? 0.0F : v - static_cast<float>(above),
          grid.opacity * fade_at(y, grid.fade_end, grid.fade)};
}

/// Between two neighbouring blocks of a row, at the pixel `phase` behind the first one's centre.
CUTOUT_HD float between_blocks(float left, float right, float step, int phase) {
  const float rise = (right - left) * step;
  return left + rise * (static_cast<float>(phase) + 0.5F);
}

}  // namespace cutout
