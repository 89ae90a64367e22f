#pragma once

#include <array>
#include <vector>

#include "matte/math/spline.h"

namespace cutout {

/// Four neighbouring samples and their weights for one output position, which is `t` of the way
/// from the second to the third (0 at the last sample).
struct Cubic {
  std::array<int, 4> at;
  float t;
  std::array<float, 4> weights;
};

/// Returns for each of `out` positions of one axis its four of `in` samples; the border is
/// repeated.
std::vector<Cubic> cubic_positions(int in, int out);

/// Positions of the pixel centres of one axis among network pixels: `t` of the way from network
/// pixel `base` to the next (0 at the last one), and the spline's weights of network pixels
/// base - 1 .. base + 2, the border repeated. The last entry is repeated to whole vectors.
struct GuideAxis {
  static constexpr int kLanes = 8;  // pixels that are interpolated together

  std::vector<int> base;
  std::vector<float> t;
  std::array<std::vector<float>, 4> spline;

  /// `in` network pixels, `out` pixels.
  GuideAxis(int in, int out);
};

}  // namespace cutout
