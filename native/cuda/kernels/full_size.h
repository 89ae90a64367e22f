#pragma once

#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/kernels/foreground_colours.h"
#include "cuda/table.h"
#include "matte/math/full_size.h"

namespace cutout::cuda {

/// Index of the network pixel `dx`, `dy` after the one at or before pixel (x, y); the border is
/// repeated.
CUTOUT_HD std::ptrdiff_t network_index(const GuideTaps& rows, const GuideTaps& columns, int width,
                                       int height, int x, int y, int dx, int dy) {
  return index_of(clamp(columns.base[x] + dx, 0, width - 1),
                  clamp(rows.base[y] + dy, 0, height - 1), width);
}

CUTOUT_HD float along_spline(const GuideTaps& axis, int i, const float* v) {
  return between(v[0], v[1], v[2], v[3], axis.spline[0][i], axis.spline[1][i], axis.spline[2][i],
                 axis.spline[3][i]);
}

/// `alpha(index)` of width x height network pixels at pixel (x, y), by the spline.
template <typename Alpha>
CUTOUT_HD float spline_alpha(const GuideTaps& rows, const GuideTaps& columns, int width, int height,
                             int x, int y, const Alpha& alpha) {
  float lines[4];
  for (int k = 0; k < 4; ++k) {
    float taps[4];
    for (int l = 0; l < 4; ++l) {
      taps[l] = alpha(network_index(rows, columns, width, height, x, y, l - 1, k - 1));
    }
    lines[k] = along_spline(columns, x, taps);
  }
  return along_spline(rows, y, lines);
}

CUTOUT_HD bool inside(const Box& box, int x, int y) {
  return x >= box.left && x < box.left + box.width && y >= box.top && y < box.top + box.height;
}

/// Steps 3 to 6 of matte/refine.h for every pixel, from the deblurred alpha, its
/// confidence, the local models and the colours; certain pixels get their certain alpha by the same
/// arithmetic.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | channels  | kChannels floats for each network pixel                                              |
/// | part      | of the image, which the guide shows; `rows` and `columns` have its size              |
/// | roi       | inside the part, in pixels of the image; outside of it alpha is 0                    |
/// | hidden    | 0: colours under alpha 0 are cleared; 0x00FFFFFF: kept                               |
/// | agreement | bit-equal to write_edges                                                             |

/// The channels of a network pixel, together.
struct Channels {
  GuidePlanes guide;
  const float* alpha;
  const float* confidence;
  const float* models;
  const float* colours;
  float* out;

  CUTOUT_HD void operator()(int x, int y) const {
    const std::ptrdiff_t index = index_of(x, y, guide.width);
    const std::ptrdiff_t plane = index_of(0, guide.height, guide.width);
    float* to = out + index * kChannels;
    for (int k = 0; k < kPlaneChannels; ++k) to[kCoefficients + k] = models[k * plane + index];
    for (int c = 0; c < 6; ++c) to[kFore + c] = colours[c * plane + index];
    const float colour[3] = {guide_colour(guide, 0, index), guide_colour(guide, 1, index),
                             guide_colour(guide, 2, index)};
    to[kOffset] = offset_through(colour, to + kCoefficients, alpha[index]);
    to[kConfidence] = confidence[index];
  }
};
static_assert(kBack == kFore + 3, "colours are copied together");

struct FullSize {
  Pixels image;
  Box part;
  Box roi;
  int guide_width;
  int guide_height;
  const float* alpha;
  const float* channels;
  GuideTaps rows;
  GuideTaps columns;
  std::uint32_t hidden_mask;

  CUTOUT_HD void operator()(int x, int y) const {
    std::uint32_t& pixel = image.data[index_of(x, y, image.stride)];
    if (!inside(roi, x, y)) {
      pixel &= hidden_mask;
      return;
    }
    const int i = x - part.left;
    const int j = y - part.top;
    const float* corner[4];
    for (int k = 0; k < 4; ++k) {
      corner[k] = channels + kChannels * network_index(rows, columns, guide_width, guide_height, i,
                                                       j, k % 2, k / 2);
    }
    const float across = columns.t[i];
    const float down = rows.t[j];
    const auto value = [&](int k) {
      return blend(blend(corner[0][k], corner[1][k], across),
                   blend(corner[2][k], corner[3][k], across), down);
    };
    const float q = spline_alpha(rows, columns, guide_width, guide_height, i, j,
                                 [&](std::ptrdiff_t index) { return alpha[index]; });
    pixel = refined_pixel(pixel, q, value, hidden_mask);
  }
};

template <typename Executor>
void full_size(Executor& on, Pixels image, Box part, Box roi, GuidePlanes guide, const float* alpha,
               const float* confidence, const float* models, const float* colours, float* channels,
               GuideTaps rows, GuideTaps columns, std::uint32_t hidden_mask) {
  over_plane(on, guide.width, guide.height,
             Channels{guide, alpha, confidence, models, colours, channels});
  over_plane(on, image.width, image.height,
             FullSize{image, part, roi, guide.width, guide.height, alpha, channels, rows, columns,
                      hidden_mask});
}

}  // namespace cutout::cuda
