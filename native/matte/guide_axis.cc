#include "matte/guide_axis.h"

#include <algorithm>
#include <cstddef>

#include "matte/cubic_taps.h"

namespace cutout {

GuideAxis::GuideAxis(int in, int out) {
  const auto count = static_cast<std::size_t>(out);
  const std::size_t padded = count + kLanes - 1;
  base.resize(padded);
  t.resize(padded);
  for (std::vector<float>& weights : spline) weights.resize(padded);
  const std::vector<Cubic> cubics = cubic_positions(in, out);
  for (std::size_t i = 0; i < padded; ++i) {
    const std::size_t pixel = std::min(i, count - 1);
    const Cubic& cubic = cubics[pixel];
    const double centre =
        std::clamp((static_cast<double>(pixel) + 0.5) * in / out - 0.5, 0.0, in - 1.0);
    base[i] = cubic.at[1];
    t[i] = static_cast<float>(centre - base[i]);
    for (std::size_t k = 0; k < 4; ++k) spline[k][i] = cubic.weights[k];
  }
}

}  // namespace cutout
