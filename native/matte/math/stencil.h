#pragma once

#include <cstddef>

#include "core/simd.h"
#include "matte/math/local_model.h"

namespace cutout {

/// Gaussian blur of nine taps each way, twice the largest sigma (matte/blur_estimate.h).
inline constexpr int kBlurRadius = 4;

/// Nine taps, added in a fixed order; `w` is one half with its middle.
CUTOUT_HD float blur9(const float* at, std::ptrdiff_t step, const float* w) {
  return ((w[0] * at[0] + w[1] * (at[-step] + at[step])) + w[2] * (at[-2 * step] + at[2 * step])) +
         (w[3] * (at[-3 * step] + at[3 * step]) + w[4] * (at[-4 * step] + at[4 * step]));
}

CUTOUT_HD float sum_window(const float* at, std::ptrdiff_t step) {
  return sum7(at[-3 * step], at[-2 * step], at[-step], at[0], at[step], at[2 * step], at[3 * step]);
}

/// The squares of seven values.
CUTOUT_HD float sum_squares(const float* at) {
  return sum7(at[-3] * at[-3], at[-2] * at[-2], at[-1] * at[-1], at[0] * at[0], at[1] * at[1],
              at[2] * at[2], at[3] * at[3]);
}

}  // namespace cutout
