#pragma once

#include <bit>
#include <cstdint>

#include "core/simd.h"

namespace cutout::low_precision {

/// bf16: the upper half of a float. Here as its bits.
using Bf16 = std::uint16_t;

CUTOUT_INLINE float float_of(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

/// To the nearest, to even; for every value but NaN.
CUTOUT_INLINE Bf16 bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<Bf16>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// Bits whose order as signed integers is that of the values. Its own inverse.
CUTOUT_INLINE std::int16_t ordered(Bf16 value) {
  const auto bits = static_cast<std::int16_t>(value);
  return static_cast<std::int16_t>(bits ^ ((bits >> 15) & INT16_MAX));
}

}  // namespace cutout::low_precision
