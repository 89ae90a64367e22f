#include "image/layers.h"

#include "core/simd.h"
#include "image/math/pixel.h"

namespace cutout {

namespace {

CUTOUT_INLINE std::uint32_t laid_over(std::uint32_t pixel, std::uint32_t behind, float shade) {
  constexpr float kUnit = 1.0F / 255.0F;
  constexpr float kTiny = 1e-30F;  // avoids division by 0; changes no other total
  const float alpha = byte_of(pixel, 24) * kUnit;
  const float rest = 1.0F - alpha;
  const float seen = byte_of(behind, 24) * kUnit * (1.0F - shade);
  const float total = alpha + (shade + seen) * rest;
  const float scale = 1.0F / (total + kTiny);
  const float weight = alpha * scale;
  const float behind_weight = seen * rest * scale;
  const auto colour = [&](int shift) {
    return rounded(byte_of(pixel, shift) * weight + byte_of(behind, shift) * behind_weight);
  };
  const std::uint32_t a = rounded(total * 255.0F);
  const std::uint32_t mixed = colour(0) | (colour(8) << 8) | (colour(16) << 16) | (a << 24);
  const std::uint32_t nothing =
      a == 0 ? ~0U : 0U;  // a mask instead of a branch, for the vectoriser
  return (pixel & nothing) | (mixed & ~nothing);
}

}  // namespace

CUTOUT_SIMD void lay_over(std::uint32_t* __restrict pixels,
                          const std::uint32_t* __restrict background,
                          const float* __restrict shadow, int n) {
  for (int x = 0; x < n; ++x) pixels[x] = laid_over(pixels[x], background[x], shadow[x]);
}

}  // namespace cutout
