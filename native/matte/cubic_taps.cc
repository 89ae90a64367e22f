#include "matte/cubic_taps.h"

#include <algorithm>
#include <cstddef>

namespace cutout {

GuideAxis::GuideAxis(int in, int out) {
  const std::size_t padded = static_cast<std::size_t>(out) + kLanes - 1;
  base.resize(padded);
  t.resize(padded);
  for (std::vector<float>& weights : spline) weights.resize(padded);
  for (std::size_t i = 0; i < padded; ++i) {
    const double output = std::min(static_cast<double>(i), out - 1.0);
    const double centre = std::clamp((output + 0.5) * in / out - 0.5, 0.0, in - 1.0);
    base[i] = static_cast<int>(centre);
    const double x = centre - base[i];
    t[i] = static_cast<float>(x);
    spline[0][i] = static_cast<float>(((2 - x) * x - 1) * x / 2);
    spline[1][i] = static_cast<float>(((3 * x - 5) * x * x + 2) / 2);
    spline[2][i] = static_cast<float>(((4 - 3 * x) * x + 1) * x / 2);
    spline[3][i] = static_cast<float>((x - 1) * x * x / 2);
  }
}

}  // namespace cutout
