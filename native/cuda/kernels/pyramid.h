#pragma once

#include <cstddef>

#include "cuda/kernel.h"
#include "cuda/table.h"
#include "matte/math/pyramid.h"

namespace cutout::cuda {

/// Extrapolates the colours of both layers to the level above the guide: matte/pyramid.h.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | pyramid   | pyramid_size() floats; the level is at their beginning                               |
/// | agreement | bit-equal to spread_colours                                                          |

/// A level of the pyramid, kSums planes.
struct DeviceLevel {
  float* values;
  int width;
  int height;

  CUTOUT_HD float* plane(int k) const { return values + index_of(0, k * height, width); }
  CUTOUT_HD float at(int k, int x, int y) const { return plane(k)[index_of(x, y, width)]; }
};

inline DeviceLevel level_above(int width, int height, float* values) {
  return {values, (width + 1) / 2, (height + 1) / 2};
}

inline std::size_t size_of(const DeviceLevel& level) {
  return kSums * static_cast<std::size_t>(level.width) * static_cast<std::size_t>(level.height);
}

inline std::size_t pyramid_size(int width, int height) {
  std::size_t size = 0;
  do {
    const DeviceLevel level = level_above(width, height, nullptr);
    size += size_of(level);
    width = level.width;
    height = level.height;
  } while (width > 1 || height > 1);
  return size;
}

CUTOUT_HD float guide_colour(const GuidePlanes& guide, int c, std::ptrdiff_t index) {
  return guide.planes[c][index] * guide.scale[c] + guide.offset[c];
}

/// The sums of network pixels.
struct GuideSums {
  GuidePlanes guide;
  const float* alpha;
  float unknown;
  float over;  // 1 / (1 - unknown)

  CUTOUT_HD int width() const { return guide.width; }
  CUTOUT_HD int height() const { return guide.height; }
  CUTOUT_HD float at(int k, int x, int y) const {
    const std::ptrdiff_t index = index_of(x, y, guide.width);
    const float weight =
        layer_weight(k < kLayerSums ? alpha[index] : 1.0F - alpha[index], unknown, over);
    const int sum = k % kLayerSums;
    if (sum == kWeight) return weight;
    if (sum < kSquaredLength) return guide_colour(guide, sum, index) * weight;
    return squared_length(guide_colour(guide, 0, index), guide_colour(guide, 1, index),
                          guide_colour(guide, 2, index)) *
           weight;
  }
};

struct LevelSums {
  DeviceLevel level;

  CUTOUT_HD int width() const { return level.width; }
  CUTOUT_HD int height() const { return level.height; }
  CUTOUT_HD float at(int k, int x, int y) const { return level.at(k, x, y); }
};

/// Pull phase: a level from the next finer one.
template <typename Fine>
struct Pull {
  Fine fine;
  DeviceLevel level;

  CUTOUT_HD void operator()(int x, int y) const {
    for (int layer = 0; layer < kSums; layer += kLayerSums) {
      const float weight = sum(layer + kWeight, x, y);
      const float limit = limit_weight(weight);
      for (int k = layer; k < layer + kWeight; ++k) {
        level.plane(k)[index_of(x, y, level.width)] = sum(k, x, y) * limit;
      }
      level.plane(layer + kWeight)[index_of(x, y, level.width)] = weight * limit;
    }
  }

 private:
  CUTOUT_HD float value(int k, int x, int y) const {
    return x < fine.width() && y < fine.height() ? fine.at(k, x, y) : 0.0F;
  }
  CUTOUT_HD float sum(int k, int x, int y) const {
    return (value(k, 2 * x, 2 * y) + value(k, 2 * x + 1, 2 * y)) +
           (value(k, 2 * x, 2 * y + 1) + value(k, 2 * x + 1, 2 * y + 1));
  }
};

/// Sums -> colours on the coarsest level, which has one pixel.
struct FinishCoarsest {
  DeviceLevel level;

  CUTOUT_HD void operator()(int k, int) const {
    if (k == weight_of(k)) return;
    const float weight = level.values[weight_of(k)];
    level.values[k] /= weight > 1e-9F ? weight : 1e-9F;
  }
};

CUTOUT_HD float from_coarse(const DeviceLevel& coarse, int plane, int x, int y) {
  const CoarseTaps h = coarse_taps(x, coarse.width);
  const CoarseTaps v = coarse_taps(y, coarse.height);
  return interpolate(interpolate(coarse.at(plane, h.near, v.near), coarse.at(plane, h.far, v.near)),
                     interpolate(coarse.at(plane, h.near, v.far), coarse.at(plane, h.far, v.far)));
}

/// Push phase: a coarser level's colours fill what a level does not know.
struct Push {
  DeviceLevel coarse;
  DeviceLevel fine;

  CUTOUT_HD void operator()(int x, int y) const {
    for (int k = 0; k < kSums; ++k) {
      if (k == weight_of(k)) continue;
      const float rest = 1.0F - fine.at(weight_of(k), x, y);
      fine.plane(k)[index_of(x, y, fine.width)] += rest * from_coarse(coarse, k, x, y);
    }
  }
};

template <typename Executor>
DeviceLevel spread_colours(Executor& on, GuidePlanes guide, const float* alpha, float unknown,
                           float* pyramid) {
  constexpr int kMostLevels = 32;
  DeviceLevel levels[kMostLevels];
  int top = 0;
  levels[0] = level_above(guide.width, guide.height, pyramid);
  over_plane(on, levels[0].width, levels[0].height,
             Pull<GuideSums>{{guide, alpha, unknown, 1.0F / (1.0F - unknown)}, levels[0]});
  while (levels[top].width > 1 || levels[top].height > 1) {
    const DeviceLevel& fine = levels[top];
    ++top;
    levels[top] = level_above(fine.width, fine.height, fine.values + size_of(fine));
    over_plane(on, levels[top].width, levels[top].height, Pull<LevelSums>{{fine}, levels[top]});
  }
  over_plane(on, kSums, 1, FinishCoarsest{levels[top]});
  for (; top > 0; --top) {
    over_plane(on, levels[top - 1].width, levels[top - 1].height,
               Push{levels[top], levels[top - 1]});
  }
  return levels[0];
}

}  // namespace cutout::cuda
