#pragma once

#include <cstddef>

#include "core/simd.h"
#include "matte/math/local_model.h"

namespace cutout {

/// Gaussian blur of nine taps each way.
inline constexpr int kBlurRadius = 4;
/// Of the 5 x 5 values of a mean of squares.
inline constexpr int kErrorRadius = 2;
inline constexpr float kErrorMean = 1.0F / 25.0F;

/// Nine taps, added in a fixed order; `w` is one half with its middle.
CUTOUT_HD float blur9(const float* at, std::ptrdiff_t step, const float* w) {
  return ((w[0] * at[0] + w[1] * (at[-step] + at[step])) + w[2] * (at[-2 * step] + at[2 * step])) +
         (w[3] * (at[-3 * step] + at[3 * step]) + w[4] * (at[-4 * step] + at[4 * step]));
}

CUTOUT_HD float sum5(const float* at, std::ptrdiff_t step) {
  return (at[0] + (at[-step] + at[step])) + (at[-2 * step] + at[2 * step]);
}

CUTOUT_HD float sum5_squares(const float* at) {
  const float square[5] = {at[-2] * at[-2], at[-1] * at[-1], at[0] * at[0], at[1] * at[1],
                           at[2] * at[2]};
  return sum5(square + 2, 1);
}

CUTOUT_HD float sum_window(const float* at, std::ptrdiff_t step) {
  return sum7(at[-3 * step], at[-2 * step], at[-step], at[0], at[step], at[2 * step], at[3 * step]);
}

}  // namespace cutout
