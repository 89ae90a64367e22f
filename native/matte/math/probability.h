#pragma once

#include <cmath>

#include "core/simd.h"

namespace cutout {

CUTOUT_HD bool finite(float value) { return value - value == 0.0F; }

/// A network's output as a probability; `logit`: the output is the logarithm of the odds.
CUTOUT_HD float probability(float value, bool logit) {
  if (logit) value = 1.0F / (1.0F + std::exp(-value));
  return value < 0.0F ? 0.0F : (value > 1.0F ? 1.0F : value);
}

}  // namespace cutout
