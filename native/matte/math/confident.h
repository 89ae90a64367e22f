#pragma once

#include <cstdint>

#include "core/simd.h"

namespace cutout {

/// A network pixel is ambiguous where kLow < p < kHigh.
inline constexpr float kLow = 0.1F;
inline constexpr float kHigh = 0.9F;

CUTOUT_HD bool is_ambiguous(float p) {
  return (static_cast<int>(p > kLow) & static_cast<int>(p < kHigh)) != 0;
}

/// Whether an output with so many network pixels of the foreground and ambiguous ones is confident.
CUTOUT_HD bool few_are_ambiguous(std::int64_t foreground, std::int64_t ambiguous) {
  return foreground > 0 && 5 * ambiguous <= 3 * foreground;
}

}  // namespace cutout
