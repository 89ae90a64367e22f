#include "image/cubic_axis.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "image/math/cubic.h"

namespace cutout {

CubicAxis::CubicAxis(int in, int out) {
  const std::size_t padded = static_cast<std::size_t>(out) + kLanes - 1;
  before.resize(padded);
  for (std::vector<float>& tap : weights) tap.resize(padded);
  for (std::size_t i = 0; i < padded; ++i) {
    const double output = std::min(static_cast<double>(i), out - 1.0);
    const double centre = (output + 0.5) * in / out - 0.5;
    before[i] = static_cast<int>(std::floor(centre));
    for (int k = 0; k < kTaps; ++k) {
      weights[static_cast<std::size_t>(k)][i] =
          static_cast<float>(cubic_at(before[i] - 1 + k - centre));
    }
  }
}

}  // namespace cutout
