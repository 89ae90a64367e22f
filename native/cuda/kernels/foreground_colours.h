#pragma once

#include <cstddef>

#include "cuda/kernel.h"
#include "cuda/table.h"
#include "matte/math/foreground_colours.h"
#include "matte/math/pyramid.h"

namespace cutout::cuda {

/// Foreground and background colours of every network pixel: matte/foreground_colours.h.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | pyramid   | pyramid_size() floats                                                                |
/// | scratch   | colour_scratch() floats                                                              |
/// | out       | six planes of the guide's size: F r, g, b, B r, g, b                                 |
/// | agreement | bit-equal to estimate_colours                                                        |

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

/// Network pixels around the guide that the steps depend on.
inline constexpr int kColourBorder = kJacobiSteps + 1;

inline std::size_t colour_scratch(int width, int height) {
  return 2 * 6 * static_cast<std::size_t>(width + 2 * kColourBorder) *
         static_cast<std::size_t>(height + 2 * kColourBorder);
}

CUTOUT_HD float guide_colour(const GuidePlanes& guide, int c, std::ptrdiff_t index) {
  return guide.planes[c][index] * guide.scale[c] + guide.offset[c];
}

/// The sums of network pixels.
struct GuideSums {
  GuidePlanes guide;
  const float* alpha;

  CUTOUT_HD int width() const { return guide.width; }
  CUTOUT_HD int height() const { return guide.height; }
  CUTOUT_HD float at(int k, int x, int y) const {
    const std::ptrdiff_t index = index_of(x, y, guide.width);
    // `unknown` 0
    const float weight = layer_weight(k < 4 ? alpha[index] : 1.0F - alpha[index], 0.0F, 1.0F);
    return k % 4 == 3 ? weight : guide_colour(guide, k % 4, index) * weight;
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
    for (int layer = 0; layer < kSums; layer += 4) {
      const float weight = sum(layer + 3, x, y);
      const float limit = limit_weight(weight);
      for (int k = layer; k < layer + 3; ++k) {
        level.plane(k)[index_of(x, y, level.width)] = sum(k, x, y) * limit;
      }
      level.plane(layer + 3)[index_of(x, y, level.width)] = weight * limit;
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
  static constexpr int kWidth = kSums;
  static constexpr int kHeight = 1;
  static constexpr int kPhases = 1;
  using Shared = NothingShared;

  DeviceLevel level;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared&) const {
    const int k = at.thread_x;
    if (k % 4 == 3) return;
    const float weight = level.values[k / 4 * 4 + 3];
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
      if (k % 4 == 3) continue;
      const float rest = 1.0F - fine.at(k / 4 * 4 + 3, x, y);
      fine.plane(k)[index_of(x, y, fine.width)] += rest * from_coarse(coarse, k, x, y);
    }
  }
};

/// First estimates on the guide with its border, six planes.
struct FirstGuess {
  GuidePlanes guide;
  const float* alpha;
  DeviceLevel coarse;
  float* out;
  int width;  // with the border
  int height;

  CUTOUT_HD void operator()(int i, int j) const {
    const int x = clamp(i - kColourBorder, 0, guide.width - 1);
    const int y = clamp(j - kColourBorder, 0, guide.height - 1);
    const std::ptrdiff_t index = index_of(x, y, guide.width);
    for (int k = 0; k < 6; ++k) {
      const float weight = power8(k < 3 ? alpha[index] : 1.0F - alpha[index]);
      out[k * index_of(0, height, width) + index_of(i, j, width)] = first_guess(
          guide_colour(guide, k % 3, index), weight, from_coarse(coarse, k < 3 ? k : k + 1, x, y));
    }
  }
};

/// A Jacobi step: writes network pixels at least `inset` inside the border to planes of `to_width`
/// x `to_height` that begin `shift` columns and rows later.
struct JacobiStep {
  GuidePlanes guide;
  const float* alpha;
  const float* from;
  int width;
  int height;
  int inset;
  float* to;
  int to_width;
  int to_height;
  int shift;

  CUTOUT_HD void operator()(int x, int y) const {
    if (x < inset || y < inset || x >= width - inset || y >= height - inset) return;
    const float a = alpha[guide_index(x, y)];
    const Neighbours w{weight_between(a, alpha[guide_index(x - 1, y)]),
                       weight_between(a, alpha[guide_index(x + 1, y)]),
                       weight_between(a, alpha[guide_index(x, y - 1)]),
                       weight_between(a, alpha[guide_index(x, y + 1)])};
    const System m = system_of(a, w);
    for (int c = 0; c < 3; ++c) {
      const float own = guide_colour(guide, c, guide_index(x, y));
      const float b0 = right_side(a * own, w, around(c, x, y));
      const float b1 = right_side((1.0F - a) * own, w, around(c + 3, x, y));
      store(c, x, y, solve_fore(m, b0, b1));
      store(c + 3, x, y, solve_back(m, b0, b1));
    }
  }

 private:
  CUTOUT_HD std::ptrdiff_t guide_index(int x, int y) const {
    return index_of(clamp(x - kColourBorder, 0, guide.width - 1),
                    clamp(y - kColourBorder, 0, guide.height - 1), guide.width);
  }
  CUTOUT_HD Neighbours around(int k, int x, int y) const {
    const float* at = from + k * index_of(0, height, width) + index_of(x, y, width);
    return {at[-1], at[1], at[-width], at[width]};
  }
  CUTOUT_HD void store(int k, int x, int y, float value) const {
    to[k * index_of(0, to_height, to_width) + index_of(x - shift, y - shift, to_width)] = value;
  }
};

template <typename Executor>
void foreground_colours(Executor& on, GuidePlanes guide, const float* alpha, float* pyramid,
                        float* scratch, float* colours) {
  constexpr int kMostLevels = 32;
  DeviceLevel levels[kMostLevels];
  int top = 0;
  levels[0] = level_above(guide.width, guide.height, pyramid);
  over_plane(on, levels[0].width, levels[0].height, Pull<GuideSums>{{guide, alpha}, levels[0]});
  while (levels[top].width > 1 || levels[top].height > 1) {
    const DeviceLevel& fine = levels[top];
    ++top;
    levels[top] = level_above(fine.width, fine.height, fine.values + size_of(fine));
    over_plane(on, levels[top].width, levels[top].height, Pull<LevelSums>{{fine}, levels[top]});
  }
  on.run(1, 1, FinishCoarsest{levels[top]});
  for (; top > 0; --top) {
    over_plane(on, levels[top - 1].width, levels[top - 1].height,
               Push{levels[top], levels[top - 1]});
  }
  const int width = guide.width + 2 * kColourBorder;
  const int height = guide.height + 2 * kColourBorder;
  float* now = scratch;
  float* next = scratch + colour_scratch(guide.width, guide.height) / 2;
  over_plane(on, width, height, FirstGuess{guide, alpha, levels[0], now, width, height});
  for (int step = 0; step < kJacobiSteps - 1; ++step) {
    over_plane(on, width, height,
               JacobiStep{guide, alpha, now, width, height, step + 1, next, width, height, 0});
    float* const before = now;
    now = next;
    next = before;
  }
  over_plane(on, width, height,
             JacobiStep{guide, alpha, now, width, height, kColourBorder, colours, guide.width,
                        guide.height, kColourBorder});
}

}  // namespace cutout::cuda
