#pragma once

#include <array>
#include <vector>

namespace cutout {

/// Outside this range the network is certain. Networks leave a haze of 1/255 to 5/255 on the
/// background, which would extend boxes and crops over the whole image.
inline constexpr float kCertainBackground = 0.02F;
inline constexpr float kCertainForeground = 0.98F;

/// 0 or 1 where the network is certain, else p; 0 for NaN.
inline float snap(float p) {
  return p >= kCertainBackground ? (p <= kCertainForeground ? p : 1.0F) : 0.0F;
}

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
