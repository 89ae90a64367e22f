#pragma once

#include <array>
#include <vector>

#include "matte/math/spline.h"

namespace cutout {

/// Four neighbouring samples and their weights for one output position.
struct Cubic {
  std::array<int, 4> at;
  std::array<float, 4> weights;
};

/// For each of `out` positions of one axis, its four of `in` samples; the border is repeated.
std::vector<Cubic> cubic_positions(int in, int out);

}  // namespace cutout
