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

}  // namespace cutout
