#pragma once

#include <climits>
#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/table.h"

namespace cutout::cuda {

/// Box and counts of the alphas of a region.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | region    | inside the image                                                                     |
/// | nothing   | without a pixel of alpha > 0 the box is {INT_MAX, INT_MAX, -1, -1}                   |
/// | agreement | equal to summarise_alpha                                                             |
struct ClearSummary {
  AlphaSummary* summary;

  CUTOUT_HD void operator()(int, int) const { *summary = {INT_MAX, INT_MAX, -1, -1, 0, 0}; }
};

struct Summarise {
  static constexpr int kWidth = 32;
  static constexpr int kHeight = 8;
  static constexpr int kPhases = 3;
  using Shared = AlphaSummary;

  Pixels image;
  Box region;
  AlphaSummary* summary;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& part) const {
    if constexpr (kPhase == 1) {
      const int i = at.block_x * kWidth + at.thread_x;
      const int j = at.block_y * kHeight + at.thread_y;
      if (i < region.width && j < region.height) add(part, region.left + i, region.top + j);
    } else if (at.thread_x == 0 && at.thread_y == 0) {
      if constexpr (kPhase == 0) {
        part = {INT_MAX, INT_MAX, -1, -1, 0, 0};
      } else {
        atomic_min(&summary->left, part.left);
        atomic_min(&summary->top, part.top);
        atomic_max(&summary->right, part.right);
        atomic_max(&summary->bottom, part.bottom);
        atomic_add(&summary->foreground, part.foreground);
        atomic_add(&summary->opaque, part.opaque);
      }
    }
  }

 private:
  CUTOUT_HD void add(AlphaSummary& part, int x, int y) const {
    const std::uint32_t alpha = image.data[index_of(x, y, image.stride)] >> 24;
    if (alpha == 0) return;
    atomic_min(&part.left, x);
    atomic_min(&part.top, y);
    atomic_max(&part.right, x);
    atomic_max(&part.bottom, y);
    if (alpha >= 128) atomic_add(&part.foreground, 1);
    if (alpha == 255) atomic_add(&part.opaque, 1);
  }
};

template <typename Executor>
void summarise(Executor& on, Pixels image, Box region, AlphaSummary* summary) {
  over_plane(on, 1, 1, ClearSummary{summary});
  on.run(ceil_div(region.width, Summarise::kWidth), ceil_div(region.height, Summarise::kHeight),
         Summarise{image, region, summary});
}

}  // namespace cutout::cuda
