#pragma once

#include <cstdint>

#include "core/simd.h"

namespace cutout {

// By way of int32: processors before AVX-512 convert only signed integers in vectors.

/// The byte of an RGBA word at bit `shift`.
CUTOUT_HD float byte_of(std::uint32_t word, int shift) {
  return static_cast<float>(static_cast<std::int32_t>((word >> shift) & 255U));
}

/// To the nearest whole number; `value` >= 0.
CUTOUT_HD std::uint32_t rounded(float value) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(value + 0.5F));
}

/// `v` limited to 0..most; 0 for NaN.
CUTOUT_HD float clamp_to(float v, float most) {
  const float above = v > 0.0F ? v : 0.0F;
  return above < most ? above : most;
}

}  // namespace cutout
