#pragma once

#include <array>
#include <vector>

namespace cutout {

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
