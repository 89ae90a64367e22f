#pragma once

#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/table.h"
#include "image/math/shadow.h"

namespace cutout::cuda {

/// The blocks of image/shadow.h, blurred; a shadow_layout() of the CPU says where they lie.
/// Tested, not used yet: composition runs on the CPU (docs/decisions/0253).
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | subject   | inside the canvas, not empty                                                         |
/// | blur      | `taps` weights, an odd number                                                        |
/// | sums      | ceil(subject.height / grid.block) * subject.width words                              |
/// | scratch   | grid.width * grid.height floats; `blocks` likewise                                   |
/// | agreement | bit-equal to ShadowPlane                                                             |

/// A block's rows of one column of pixels.
struct BlockColumns {
  static constexpr int kWidth = 128;
  static constexpr int kHeight = 1;
  static constexpr int kPhases = 1;
  using Shared = NothingShared;

  Pixels canvas;
  Box subject;
  int block;
  std::uint32_t* sums;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared&) const {
    const int x = at.block_x * kWidth + at.thread_x;
    if (x >= subject.width) return;
    const int first = at.block_y * block;
    const int last = clamp(first + block, 0, subject.height);
    std::uint32_t sum = 0;
    for (int y = first; y < last; ++y) {
      sum += canvas.data[index_of(subject.left + x, subject.top + y, canvas.stride)] >> 24;
    }
    sums[index_of(x, at.block_y, subject.width)] = sum;
  }
};

/// Means over blocks; 0 around the subject.
struct BlockMeans {
  const std::uint32_t* sums;
  Box subject;
  ShadowGrid grid;
  float* out;

  CUTOUT_HD void operator()(int x, int y) const {
    const int border = (subject.left - grid.left) / grid.block;
    const int first = (x - border) * grid.block;
    const int row = y - border;
    std::uint32_t sum = 0;
    if (first >= 0 && row >= 0 && row < ceil_div(subject.height, grid.block)) {
      const int last = clamp(first + grid.block, 0, subject.width);
      for (int i = first; i < last; ++i) sum += sums[index_of(i, row, subject.width)];
    }
    out[index_of(x, y, grid.width)] = static_cast<float>(sum) * block_scale(grid.block);
  }
};

/// One pass of the blur, along rows or columns.
struct Blur {
  const float* from;
  int width;
  int height;
  const float* weights;
  int taps;
  bool down;
  float* to;

  CUTOUT_HD void operator()(int x, int y) const {
    to[index_of(x, y, width)] =
        down ? blurred(from + x, width, height, weights, taps, y)
             : blurred(from + index_of(0, y, width), 1, width, weights, taps, x);
  }
};

template <typename Executor>
void shadow(Executor& on, Pixels canvas, Box subject, ShadowGrid grid, const float* blur, int taps,
            std::uint32_t* sums, float* scratch, float* blocks) {
  on.run(ceil_div(subject.width, BlockColumns::kWidth), ceil_div(subject.height, grid.block),
         BlockColumns{canvas, subject, grid.block, sums});
  over_plane(on, grid.width, grid.height, BlockMeans{sums, subject, grid, blocks});
  over_plane(on, grid.width, grid.height,
             Blur{blocks, grid.width, grid.height, blur, taps, false, scratch});
  over_plane(on, grid.width, grid.height,
             Blur{scratch, grid.width, grid.height, blur, taps, true, blocks});
}

}  // namespace cutout::cuda
