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
  using Part = AlphaSummary;
  Pixels image;
  Box region;
  AlphaSummary* summary;

  CUTOUT_HD void begin(Part& part) const { ClearSummary{&part}(0, 0); }
  CUTOUT_HD void add(Part& part, int i, int j) const {
    const int x = region.left + i;
    const int y = region.top + j;
    const std::uint32_t alpha = image.data[index_of(x, y, image.stride)] >> 24;
    if (alpha == 0) return;
    atomic_min(&part.left, x);
    atomic_min(&part.top, y);
    atomic_max(&part.right, x);
    atomic_max(&part.bottom, y);
    if (alpha >= 128) atomic_add(&part.foreground, 1);
    if (alpha == 255) atomic_add(&part.opaque, 1);
  }
  CUTOUT_HD void end(const Part& part) const {
    atomic_min(&summary->left, part.left);
    atomic_min(&summary->top, part.top);
    atomic_max(&summary->right, part.right);
    atomic_max(&summary->bottom, part.bottom);
    atomic_add(&summary->foreground, part.foreground);
    atomic_add(&summary->opaque, part.opaque);
  }
};

template <typename Executor>
void summarise(Executor& on, Pixels image, Box region, AlphaSummary* summary) {
  over_plane(on, 1, 1, ClearSummary{summary});
  sum_over_plane(on, region.width, region.height, Summarise{image, region, summary});
}

}  // namespace cutout::cuda
