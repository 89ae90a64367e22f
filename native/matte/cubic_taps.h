#pragma once

#include <array>
#include <vector>

namespace cutout {

/// Four neighbouring samples and their weights for one output position.
struct Cubic {
  std::array<int, 4> at;
  std::array<float, 4> weights;
};

/// For each of `out` positions of one axis, its four of `in` samples; the border is repeated.
std::vector<Cubic> cubic_positions(int in, int out);

/// Catmull-Rom spline between b and c, limited to their range.
inline float between(float a, float b, float c, float d, float wa, float wb, float wc, float wd) {
  const float value = wa * a + wb * b + wc * c + wd * d;
  const float low = b < c ? b : c;
  const float high = b < c ? c : b;
  return value < low ? low : (value > high ? high : value);
}

}  // namespace cutout
