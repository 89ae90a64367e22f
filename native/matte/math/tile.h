#pragma once

#include "core/simd.h"

namespace cutout {

inline constexpr int kTile = 32;  // side of a tile in network pixels

/// Sums over a tile are made in this many lanes, lane l of every l-th column.
inline constexpr int kSumLanes = 16;

/// The sum of the lanes in a fixed order.
CUTOUT_HD double sum_of_lanes(const float* lanes) {
  double sum = 0;
  for (int l = 0; l < kSumLanes; ++l) sum += static_cast<double>(lanes[l]);
  return sum;
}

}  // namespace cutout
