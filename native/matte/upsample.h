#pragma once

#include <array>
#include <vector>

namespace cutout {

/// Outside this range the network is sure. The haze that it leaves there would spread boxes and
/// crops over the whole picture and hide nothing one can see.
inline constexpr float kSureBackground = 0.02F;
inline constexpr float kSureForeground = 0.98F;

/// What the network is sure of becomes 0 or 1, so that flat regions are exactly flat. NaN becomes
/// 0.
inline float snap(float p) {
  return p >= kSureBackground ? (p <= kSureForeground ? p : 1.0F) : 0.0F;
}

/// Four neighbouring samples and their weights for one output position.
struct Cubic {
  std::array<int, 4> at;
  std::array<float, 4> weights;
};

/// For each of `out` positions of one axis, its four of `in` samples; the border is repeated.
std::vector<Cubic> cubic_positions(int in, int out);

/// Catmull-Rom between b and c, kept between them.
inline float between(float a, float b, float c, float d, float wa, float wb, float wc, float wd) {
  const float value = wa * a + wb * b + wc * c + wd * d;
  const float low = b < c ? b : c;
  const float high = b < c ? c : b;
  return value < low ? low : (value > high ? high : value);
}

}  // namespace cutout
