#pragma once

#include <cstdint>

#include "core/simd.h"

namespace cutout {

/// A network pixel of two outputs that are fused (matte/fusion.h).

inline constexpr float kDisagreement = 0.2F;
inline constexpr int kEdgePart = 128;  // a fraction 1/128 of the longer side
inline constexpr float kMargin = 0.3F;

/// Which output is higher by more than kDisagreement; as bits.
enum Difference : std::uint8_t { kNone = 0, kHigher = 1, kLower = 2 };

CUTOUT_HD Difference difference(float first, float second) {
  if (second - first > kDisagreement) return kHigher;
  return first - second > kDisagreement ? kLower : kNone;
}

/// Half the width of what counts as an edge, and how far a region reaches beyond what is wider.
CUTOUT_HD int edge_radius(int width, int height) {
  const int radius = (width > height ? width : height) / kEdgePart;
  return radius > 1 ? radius : 1;
}
CUTOUT_HD int dilation_radius(int radius) { return radius + (radius + 1) / 2; }

/// Confidence of an output, its distance from 1/2 twice, in units of 2^-32: sums of these are
/// exact, in any order.
CUTOUT_HD std::int64_t confidence_of(float alpha) {
  const float twice = 2 * alpha - 1;
  return static_cast<std::int64_t>((twice < 0 ? -twice : twice) * 4294967296.0F);
}

/// `gain`: by how much the second output is more confident, summed over a region's network pixels.
CUTOUT_HD bool prefers_second(std::int64_t gain, int area) {
  return static_cast<double>(gain) > static_cast<double>(kMargin) * 4294967296.0 * area;
}

}  // namespace cutout
