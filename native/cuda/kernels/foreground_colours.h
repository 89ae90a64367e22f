#pragma once

#include <cstddef>

#include "cuda/kernel.h"
#include "cuda/kernels/pyramid.h"
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

/// Network pixels around the guide that the steps depend on.
inline constexpr int kColourBorder = kJacobiSteps + 1;

inline std::size_t colour_scratch(int width, int height) {
  return 2 * 6 * static_cast<std::size_t>(width + 2 * kColourBorder) *
         static_cast<std::size_t>(height + 2 * kColourBorder);
}

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
      out[k * index_of(0, height, width) + index_of(i, j, width)] =
          first_guess(guide_colour(guide, k % 3, index), weight,
                      from_coarse(coarse, k / 3 * kLayerSums + k % 3, x, y));
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
  const DeviceLevel above = spread_colours(on, guide, alpha, 0, pyramid);
  const int width = guide.width + 2 * kColourBorder;
  const int height = guide.height + 2 * kColourBorder;
  float* now = scratch;
  float* next = scratch + colour_scratch(guide.width, guide.height) / 2;
  over_plane(on, width, height, FirstGuess{guide, alpha, above, now, width, height});
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
