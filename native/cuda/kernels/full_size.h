#pragma once

#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/kernels/foreground_colours.h"
#include "cuda/table.h"
#include "matte/math/full_size.h"
#include "matte/math/spline.h"

namespace cutout::cuda {

/// Steps 3 to 6 of matte/guided_upsample.h for every pixel, from the deblurred alpha, its
/// confidence, the local models and the colours; certain pixels get their certain alpha by the same
/// arithmetic.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | channels  | kChannels floats for each network pixel, aligned to 16 bytes                         |
/// | roi       | inside the image; outside of it alpha is 0                                           |
/// | hidden    | 0: colours under alpha 0 are cleared; 0x00FFFFFF: kept                               |
/// | agreement | bit-equal to guided_upsample                                                         |

/// The channels of a network pixel, together.
struct Channels {
  static constexpr int kWidth = OnPlane::kWidth;
  static constexpr int kHeight = OnPlane::kHeight;
  static constexpr int kPhases = 1;
  using Shared = NothingShared;

  GuidePlanes guide;
  const float* alpha;
  const float* confidence;
  const float* models;
  const float* colours;
  float* out;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared&) const {
    const int x = at.block_x * kWidth + at.thread_x;
    const int y = at.block_y * kHeight + at.thread_y;
    if (x >= guide.width || y >= guide.height) return;
    const std::ptrdiff_t index = index_of(x, y, guide.width);
    const std::ptrdiff_t plane = index_of(0, guide.height, guide.width);
    float* to = out + index * kChannels;
    for (int k = 0; k < kPlaneChannels; ++k) to[kCoefficients + k] = models[k * plane + index];
    for (int c = 0; c < 6; ++c) to[kFore + c] = colours[c * plane + index];
    const float colour[3] = {guide_colour(guide, 0, index), guide_colour(guide, 1, index),
                             guide_colour(guide, 2, index)};
    to[kResidual] = alpha[index] - model_alpha(colour, to + kCoefficients, to + kFore, to + kBack);
    to[kConfidence] = confidence[index];
  }
};
static_assert(kBack == kFore + 3, "colours are copied together");

struct FullSize {
  static constexpr int kWidth = 32;
  static constexpr int kHeight = 8;
  static constexpr int kPhases = 1;
  using Shared = NothingShared;

  Pixels image;
  Box roi;
  int guide_width;
  int guide_height;
  const float* alpha;
  const float* channels;
  GuideTaps rows;
  GuideTaps columns;
  std::uint32_t hidden_mask;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared&) const {
    const int x = at.block_x * kWidth + at.thread_x;
    const int y = at.block_y * kHeight + at.thread_y;
    if (x >= image.width || y >= image.height) return;
    std::uint32_t& pixel = image.data[index_of(x, y, image.stride)];
    const bool inside =
        x >= roi.left && x < roi.left + roi.width && y >= roi.top && y < roi.top + roi.height;
    if (!inside) {
      pixel &= hidden_mask;
      return;
    }
    const float* corner[4];
    for (int k = 0; k < 4; ++k) corner[k] = channels + kChannels * guide_index(x, y, k % 2, k / 2);
    const float across = columns.t[x];
    const float down = rows.t[y];
    const auto value = [&](int k) {
      return blend(blend(corner[0][k], corner[1][k], across),
                   blend(corner[2][k], corner[3][k], across), down);
    };
    pixel = refined_pixel(pixel, spline_alpha(x, y), value, hidden_mask);
  }

 private:
  CUTOUT_HD std::ptrdiff_t guide_index(int x, int y, int dx, int dy) const {
    return index_of(clamp(columns.base[x] + dx, 0, guide_width - 1),
                    clamp(rows.base[y] + dy, 0, guide_height - 1), guide_width);
  }
  CUTOUT_HD static float spline(const GuideTaps& axis, int i, const float* v) {
    return between(v[0], v[1], v[2], v[3], axis.spline[0][i], axis.spline[1][i], axis.spline[2][i],
                   axis.spline[3][i]);
  }
  CUTOUT_HD float spline_alpha(int x, int y) const {
    float lines[4];
    for (int k = 0; k < 4; ++k) {
      float taps[4];
      for (int l = 0; l < 4; ++l) taps[l] = alpha[guide_index(x, y, l - 1, k - 1)];
      lines[k] = spline(columns, x, taps);
    }
    return spline(rows, y, lines);
  }
};

template <typename Executor>
void full_size(Executor& on, Pixels image, Box roi, GuidePlanes guide, const float* alpha,
               const float* confidence, const float* models, const float* colours, float* channels,
               GuideTaps rows, GuideTaps columns, std::uint32_t hidden_mask) {
  on.run(ceil_div(guide.width, Channels::kWidth), ceil_div(guide.height, Channels::kHeight),
         Channels{guide, alpha, confidence, models, colours, channels});
  on.run(
      ceil_div(image.width, FullSize::kWidth), ceil_div(image.height, FullSize::kHeight),
      FullSize{image, roi, guide.width, guide.height, alpha, channels, rows, columns, hidden_mask});
}

}  // namespace cutout::cuda
