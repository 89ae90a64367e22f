#pragma once

#include <cstdint>
#include <span>

namespace cutout {

/// Whether no value is infinite or NaN. Any size; runs on the calling thread.
bool all_finite(std::span<const float> values);

struct AlphaRun {
  std::uint32_t any = 0;    // OR of the alphas
  std::uint32_t all = 255;  // AND of the alphas
  std::uint32_t foreground = 0;
};

/// Alphas of n pixels of RGBA8 at any address.
AlphaRun scan_alpha(const std::uint8_t* rgba, int n);

}  // namespace cutout
