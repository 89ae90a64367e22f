#pragma once

#include "cuda/kernel.h"
#include "cuda/table.h"
#include "matte/math/full_size.h"

namespace cutout::cuda {

/// Index of the network pixel `dx`, `dy` after the one at or before pixel (x, y); the border is
/// repeated.
CUTOUT_HD std::ptrdiff_t network_index(const GuideTaps& rows, const GuideTaps& columns, int width,
                                       int height, int x, int y, int dx, int dy) {
  return index_of(clamp(columns.base[x] + dx, 0, width - 1),
                  clamp(rows.base[y] + dy, 0, height - 1), width);
}

CUTOUT_HD float along_spline(const GuideTaps& axis, int i, const float* v) {
  return between(v[0], v[1], v[2], v[3], axis.spline[0][i], axis.spline[1][i], axis.spline[2][i],
                 axis.spline[3][i]);
}

/// `alpha(index)` of width x height network pixels at pixel (x, y), by the spline.
template <typename Alpha>
CUTOUT_HD float spline_alpha(const GuideTaps& rows, const GuideTaps& columns, int width, int height,
                             int x, int y, const Alpha& alpha) {
  float lines[4];
  for (int k = 0; k < 4; ++k) {
    float taps[4];
    for (int l = 0; l < 4; ++l) {
      taps[l] = alpha(network_index(rows, columns, width, height, x, y, l - 1, k - 1));
    }
    lines[k] = along_spline(columns, x, taps);
  }
  return along_spline(rows, y, lines);
}

CUTOUT_HD bool inside(const Box& box, int x, int y) {
  return x >= box.left && x < box.left + box.width && y >= box.top && y < box.top + box.height;
}

}  // namespace cutout::cuda
