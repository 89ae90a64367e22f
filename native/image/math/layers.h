#pragma once

#include <cstdint>

#include "image/math/pixel.h"

namespace cutout {

/// A pixel over a black shadow of strength `shade` over `behind`: image/layers.h.
CUTOUT_HD std::uint32_t laid_over(std::uint32_t pixel, std::uint32_t behind, float shade) {
  constexpr float kUnit = 1.0F / 255.0F;
  constexpr float kTiny = 1e-30F;  // avoids division by 0; changes no other total
  const float alpha = byte_of(pixel, 24) * kUnit;
  const float rest = 1.0F - alpha;
  const float seen = byte_of(behind, 24) * kUnit * (1.0F - shade);
  const float total = alpha + (shade + seen) * rest;
  const float scale = 1.0F / (total + kTiny);
  const float weight = alpha * scale;
  const float behind_weight = seen * rest * scale;
  const std::uint32_t r = rounded(byte_of(pixel, 0) * weight + byte_of(behind, 0) * behind_weight);
  const std::uint32_t g = rounded(byte_of(pixel, 8) * weight + byte_of(behind, 8) * behind_weight);
  const std::uint32_t b =
      rounded(byte_of(pixel, 16) * weight + byte_of(behind, 16) * behind_weight);
  const std::uint32_t a = rounded(total * 255.0F);
  const std::uint32_t mixed = r | (g << 8) | (b << 16) | (a << 24);
  const std::uint32_t nothing =
      a == 0 ? ~0U : 0U;  // a mask instead of a branch, for the vectoriser
  return (pixel & nothing) | (mixed & ~nothing);
}

}  // namespace cutout
