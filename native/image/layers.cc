#include "image/layers.h"

#include "core/simd.h"

namespace cutout {

namespace {

// By way of int32: processors before AVX-512 convert only signed integers in vectors.
inline float byte_of(std::uint32_t word, int shift) {
  return static_cast<float>(static_cast<std::int32_t>((word >> shift) & 255U));
}

inline std::uint32_t rounded(float value) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(value + 0.5F));
}

}  // namespace

CUTOUT_SIMD void lay_over(std::uint32_t* __restrict pixels,
                          const std::uint32_t* __restrict background,
                          const float* __restrict shadow, int n) {
  constexpr float kUnit = 1.0F / 255.0F;
  constexpr float kTiny = 1e-30F;  // avoids division by 0; changes no other total
  for (int x = 0; x < n; ++x) {
    const std::uint32_t pixel = pixels[x];
    const std::uint32_t behind = background[x];
    const float alpha = byte_of(pixel, 24) * kUnit;
    const float rest = 1.0F - alpha;
    const float shade = shadow[x];
    const float seen = byte_of(behind, 24) * kUnit * (1.0F - shade);
    const float total = alpha + (shade + seen) * rest;
    const float scale = 1.0F / (total + kTiny);
    const float weight = alpha * scale;
    const float behind_weight = seen * rest * scale;
    const std::uint32_t r =
        rounded(byte_of(pixel, 0) * weight + byte_of(behind, 0) * behind_weight);
    const std::uint32_t g =
        rounded(byte_of(pixel, 8) * weight + byte_of(behind, 8) * behind_weight);
    const std::uint32_t b =
        rounded(byte_of(pixel, 16) * weight + byte_of(behind, 16) * behind_weight);
    const std::uint32_t a = rounded(total * 255.0F);
    const std::uint32_t mixed = r | (g << 8) | (b << 16) | (a << 24);
    const std::uint32_t nothing =
        a == 0 ? ~0U : 0U;  // a mask instead of a branch, for the vectoriser
    pixels[x] = (pixel & nothing) | (mixed & ~nothing);
  }
}

}  // namespace cutout
