#pragma once

#include "cuda/kernel.h"
#include "cuda/table.h"

namespace cutout::cuda {

/// A plane of another size: image/plane.h.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | scratch   | width * rows.outputs floats                                                          |
/// | out       | columns.outputs * rows.outputs floats, which may not be the plane's own              |
/// | agreement | bit-equal to resize_plane                                                            |

/// The sum over the taps of one output, `step` apart.
CUTOUT_HD float sum_of_taps(const FilterTaps& taps, int output, const float* line,
                            std::ptrdiff_t step) {
  const float* const weights = taps.weights + index_of(0, output, taps.stride);
  const float* const first = line + taps.first[output] * step;
  float sum = 0;
  for (int k = 0; k < taps.count[output]; ++k) sum += weights[k] * first[k * step];
  return sum;
}

struct ResizeRows {
  const float* plane;
  int width;
  FilterTaps rows;
  float* out;

  CUTOUT_HD void operator()(int x, int y) const {
    out[index_of(x, y, width)] = sum_of_taps(rows, y, plane + x, width);
  }
};

struct ResizeColumns {
  const float* lines;
  int width;
  FilterTaps columns;
  float* out;

  CUTOUT_HD void operator()(int x, int y) const {
    out[index_of(x, y, columns.outputs)] =
        sum_of_taps(columns, x, lines + index_of(0, y, width), 1);
  }
};

template <typename Executor>
void resize_plane(Executor& on, const float* plane, int width, FilterTaps rows, FilterTaps columns,
                  float* scratch, float* out) {
  over_plane(on, width, rows.outputs, ResizeRows{plane, width, rows, scratch});
  over_plane(on, columns.outputs, rows.outputs, ResizeColumns{scratch, width, columns, out});
}

}  // namespace cutout::cuda
