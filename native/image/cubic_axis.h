#pragma once

#include <array>
#include <vector>

namespace cutout {

/// Taps of one axis of an enlargement (enlarge.h): `before`, the pixel at or before the centre of
/// an output (-1 .. in - 1), and the weights of pixels before - 1 .. before + 2. The last output is
/// repeated to whole vectors.
struct CubicAxis {
  static constexpr int kTaps = 4;
  static constexpr int kLanes = 8;

  std::vector<int> before;
  std::array<std::vector<float>, kTaps> weights;

  CubicAxis(int in, int out);
};

}  // namespace cutout
