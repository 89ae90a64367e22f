#pragma once

#include <algorithm>
#include <cmath>

#include "core/simd.h"

namespace cutout::low_precision {

/// What becomes of a sum before it is stored.
enum class Activation { kNone, kRelu, kRelu6, kHardSwish, kHardSigmoid, kSigmoid };
inline constexpr int kActivations = 6;
/// The first so many can be part of a convolution.
inline constexpr int kFusedActivations = 4;

inline constexpr float kSixth = 1.0F / 6;

CUTOUT_INLINE float hard_sigmoid(float value) {
  return std::min(std::max(value * kSixth + 0.5F, 0.0F), 1.0F);
}

CUTOUT_INLINE float activated(Activation activation, float value) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      return std::max(value, 0.0F);
    case Activation::kRelu6:
      return std::min(std::max(value, 0.0F), 6.0F);
    case Activation::kHardSwish:
      return value * hard_sigmoid(value);
    case Activation::kHardSigmoid:
      return hard_sigmoid(value);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-value));
  }
  return value;
}

}  // namespace cutout::low_precision
