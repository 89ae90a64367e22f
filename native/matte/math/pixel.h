#pragma once

#include <cstdint>

#include "core/simd.h"

namespace cutout {

/// round(a * b / 255) for a, b in 0..255.
CUTOUT_HD std::uint32_t multiply_255(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t product = a * b + 128;
  return (product + (product >> 8)) >> 8;
}

/// `pixel` with another alpha; its colour is masked with `hidden_mask` where that alpha is 0.
CUTOUT_HD std::uint32_t with_alpha(std::uint32_t pixel, std::uint32_t alpha,
                                   std::uint32_t hidden_mask) {
  const std::uint32_t mask = alpha == 0 ? hidden_mask : 0x00FFFFFFU;
  return (pixel & mask) | (alpha << 24);
}

}  // namespace cutout
