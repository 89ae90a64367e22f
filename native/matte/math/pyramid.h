#pragma once

#include "core/simd.h"

namespace cutout {

/// Sums of a layer: weighted r, g, b and squared length of the colour, then the weight itself.
enum LayerSum { kSquaredLength = 3, kWeight, kLayerSums };
/// Those of both layers, F first.
inline constexpr int kSums = 2 * kLayerSums;

/// The plane of the weight that belongs to a plane of sums.
CUTOUT_HD int weight_of(int plane) { return plane / kLayerSums * kLayerSums + kWeight; }

/// The plane of mean `k`: F r, g, b, squared length, then those of B.
CUTOUT_HD int plane_of(int k) { return k / kWeight * kLayerSums + k % kWeight; }

CUTOUT_HD float squared_length(float r, float g, float b) { return (r * r + g * g) + b * b; }

CUTOUT_HD float power8(float v) {
  const float v2 = v * v;
  const float v4 = v2 * v2;
  return v4 * v4;
}

/// The two pixels of the next coarser level that pixel x is interpolated from.
struct CoarseTaps {
  int near;
  int far;
};

CUTOUT_HD CoarseTaps coarse_taps(int x, int coarse) {
  const int near = x / 2;
  const int neighbour = x % 2 == 0 ? near - 1 : near + 1;
  const int far = neighbour < 0 ? 0 : (neighbour < coarse ? neighbour : coarse - 1);
  return {near, far};
}

/// Linear interpolation at a quarter of the distance between two pixels of a coarser level.
CUTOUT_HD float interpolate(float near, float far) { return 0.75F * near + 0.25F * far; }

/// Factor that limits a weight to 1.
CUTOUT_HD float limit_weight(float weight) { return weight > 1.0F ? 1.0F / weight : 1.0F; }

/// Weight of a network pixel in the sums of a layer, `v` its alpha or, for the background, 1 -
/// alpha; `over` = 1 / (1 - unknown). Described at spread_colours in pyramid.h.
CUTOUT_HD float layer_weight(float v, float unknown, float over) {
  const float known = (v - unknown) * over;
  return power8(known > 0.0F ? known : 0.0F);
}

}  // namespace cutout
