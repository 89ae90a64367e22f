#pragma once

#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/table.h"
#include "image/math/layers.h"
#include "image/math/shadow.h"

namespace cutout::cuda {

/// Lays an area of the canvas over shadow and background, in place.
/// Tested, not used yet: composition runs on the CPU (docs/decisions/0253).
///
/// | limit      |                                                                                     |
/// |------------|-------------------------------------------------------------------------------------|
/// | background | of the canvas's size, or null data: the colour, an RGBA word; 0: none               |
/// | shadow     | its box in the canvas; blocks null: none                                            |
/// | agreement  | bit-equal to the layers of compose()                                                |
struct Compose {
  Pixels canvas;
  Box area;
  Pixels background;
  std::uint32_t colour;
  Box box;
  ShadowGrid grid;
  const float* blocks;

  CUTOUT_HD void operator()(int i, int j) const {
    const int x = area.left + i;
    const int y = area.top + j;
    const bool shaded = blocks != nullptr && x >= box.left && x < box.left + box.width &&
                        y >= box.top && y < box.top + box.height;
    const float shade = shaded ? shadow_at(grid, blocks, x, y) : 0.0F;
    const std::uint32_t behind =
        background.data == nullptr ? colour : background.data[index_of(x, y, background.stride)];
    std::uint32_t& pixel = canvas.data[index_of(x, y, canvas.stride)];
    pixel = laid_over(pixel, behind, shade);
  }
};

}  // namespace cutout::cuda
