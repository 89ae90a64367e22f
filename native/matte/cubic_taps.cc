#include "matte/cubic_taps.h"

#include <algorithm>
#include <cstddef>

namespace cutout {

std::vector<Cubic> cubic_positions(int in, int out) {
  std::vector<Cubic> positions(static_cast<std::size_t>(out));
  for (int i = 0; i < out; ++i) {
    const double centre = std::clamp((i + 0.5) * in / out - 0.5, 0.0, in - 1.0);
    const int base = static_cast<int>(centre);
    const double t = centre - base;
    Cubic& position = positions[static_cast<std::size_t>(i)];
    position.t = static_cast<float>(t);
    for (int k = 0; k < 4; ++k) {
      position.at[static_cast<std::size_t>(k)] = std::clamp(base - 1 + k, 0, in - 1);
    }
    position.weights = {static_cast<float>(((2 - t) * t - 1) * t / 2),
                        static_cast<float>(((3 * t - 5) * t * t + 2) / 2),
                        static_cast<float>(((4 - 3 * t) * t + 1) * t / 2),
                        static_cast<float>((t - 1) * t * t / 2)};
  }
  return positions;
}

GuideAxis::GuideAxis(int in, int out) {
  const std::vector<Cubic> cubics = cubic_positions(in, out);
  const std::size_t padded = cubics.size() + kLanes - 1;
  base.resize(padded);
  t.resize(padded);
  for (std::vector<float>& weights : spline) weights.resize(padded);
  for (std::size_t i = 0; i < padded; ++i) {
    const Cubic& cubic = cubics[std::min(i, cubics.size() - 1)];
    base[i] = cubic.at[1];
    t[i] = cubic.t;
    for (std::size_t k = 0; k < 4; ++k) spline[k][i] = cubic.weights[k];
  }
}

}  // namespace cutout
