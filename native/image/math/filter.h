#pragma once

#include <cstdint>

#include "core/simd.h"

namespace cutout {

/// Pixels of a row that are filtered together: with all of them opaque in all rows of a tap, their
/// sums need no alpha. Their sums (8 kB) stay in the first-level cache.
inline constexpr int kFilterTile = 512;

/// The sums of image/filter.h for one pixel. `rgba` is four bytes, straight; `sum` four numbers,
/// premultiplied. All three give the same for an opaque pixel, up to rounding; which of them is
/// used decides the last bits.

/// Where every alpha is 255.
CUTOUT_HD void add_opaque(const std::uint8_t* rgba, float weight, float* sum) {
  for (int c = 0; c < 4; ++c) sum[c] += weight * static_cast<float>(rgba[c]);
}

/// One of four rows; `weight` is divided by 255.
CUTOUT_HD void add_one_of_four(const std::uint8_t* rgba, float weight, float* sum) {
  const float alpha = static_cast<float>(rgba[3]) * weight;
  for (int c = 0; c < 3; ++c) sum[c] += static_cast<float>(rgba[c]) * alpha;
  sum[3] += 255.0F * alpha;
}

/// One of the rows behind the last four.
CUTOUT_HD void add_premultiplied(const std::uint8_t* rgba, float weight, float* sum) {
  const auto alpha = static_cast<float>(rgba[3]);
  const float scaled = weight * (alpha * (1.0F / 255.0F));
  sum[0] += scaled * static_cast<float>(rgba[0]);
  sum[1] += scaled * static_cast<float>(rgba[1]);
  sum[2] += scaled * static_cast<float>(rgba[2]);
  sum[3] += weight * alpha;
}

/// The horizontal pass for one output: `count` taps of neighbouring pixels, four floats each.
CUTOUT_HD void sum_columns(const float* pixels, const float* weights, int count, float* sum) {
  float part[4][4] = {};
  for (int k = 0; k < count; ++k) {
    for (int c = 0; c < 4; ++c) part[k % 4][c] += weights[k] * pixels[k * 4 + c];
  }
  for (int c = 0; c < 4; ++c) {
    sum[c] = (part[0][c] + part[2][c]) + (part[1][c] + part[3][c]);
  }
}

/// Premultiplied -> straight byte; `scale` is straight_scale(alpha).
CUTOUT_HD float straight_scale(float alpha) { return alpha >= 0.5F ? 255.0F / alpha : 0.0F; }
CUTOUT_HD std::uint8_t straight_byte(float value) {
  const float rounded = value + 0.5F;
  const float least = rounded > 0.0F ? rounded : 0.0F;
  return static_cast<std::uint8_t>(least < 255.0F ? least : 255.0F);
}

}  // namespace cutout
