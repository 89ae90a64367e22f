#pragma once

#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/kernels/spline.h"
#include "cuda/table.h"
#include "matte/math/certainty.h"
#include "matte/math/full_size.h"
#include "matte/math/pixel.h"

namespace cutout::cuda {

/// Multiplies the image's alpha with a network's output, enlarged by the spline: matte/apply.h.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | p         | width * height values                                                                |
/// | part, roi | as full_size                                                                         |
/// | agreement | bit-equal to apply_matte                                                             |
struct ApplyMatte {
  Pixels image;
  Box part;
  Box roi;
  const float* p;
  int width;
  int height;
  GuideTaps rows;
  GuideTaps columns;
  std::uint32_t hidden_mask;

  CUTOUT_HD void operator()(int x, int y) const {
    std::uint32_t& pixel = image.data[index_of(x, y, image.stride)];
    if (!inside(roi, x, y)) {
      pixel &= hidden_mask;
      return;
    }
    const float alpha = spline_alpha(rows, columns, width, height, x - part.left, y - part.top,
                                     [&](std::ptrdiff_t index) { return snap(p[index]); });
    pixel = with_alpha(pixel, multiply_255(pixel >> 24, to_byte(alpha)), hidden_mask);
  }
};

}  // namespace cutout::cuda
