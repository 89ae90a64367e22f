#include "core/scan.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/simd.h"

namespace cutout {

namespace {

/// Whether one of n values has an exponent of all ones: infinite or NaN.
CUTOUT_SIMD bool any_special(const float* values, std::size_t n) {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < n; ++i) {
    found |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(values[i]) & kExponent) ==
                                        kExponent);
  }
  return found != 0;
}

}  // namespace

bool all_finite(std::span<const float> values) {
  return !any_special(values.data(), values.size());
}

CUTOUT_SIMD AlphaRun scan_alpha(const std::uint8_t* rgba, int n) {
  AlphaRun run;
  for (int x = 0; x < n; ++x) {
    std::uint32_t pixel;
    std::memcpy(&pixel, rgba + x * 4, sizeof pixel);
    const std::uint32_t alpha = pixel >> 24;
    run.any |= alpha;
    run.all &= alpha;
    run.foreground += alpha >> 7;
  }
  return run;
}

}  // namespace cutout
