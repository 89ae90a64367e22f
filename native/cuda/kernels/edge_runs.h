#pragma once

#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/table.h"

namespace cutout::cuda {

/// Gathers what a matte changed of an image but its alphas of 0 and 255: the runs of a row that are
/// neither opaque nor transparent throughout. The host restores the others from the image it sent.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | image     | any size; the last run of a row may be shorter                                       |
/// | count     | 0 before; runs that were found, also if they are more than the capacity              |
/// | states    | one for each run of each row                                                         |
/// | pixels    | kRun for each run, those of the first `capacity` runs; their order is undefined      |
struct GatherEdgeRuns {
  static constexpr int kWidth = EdgeRuns::kRun;
  static constexpr int kHeight = 8;
  static constexpr int kPhases = 4;
  struct Shared {
    std::uint32_t kinds[kHeight];  // of alphas: 1: 0, 2: 255, 4: between
    std::uint32_t states[kHeight];
  };

  Pixels image;
  EdgeRuns runs;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& shared) const {
    const int x = at.block_x * kWidth + at.thread_x;
    const int y = at.block_y * kHeight + at.thread_y;
    const bool first = at.thread_x == 0;
    std::uint32_t& state = shared.states[at.thread_y];
    if constexpr (kPhase == 0) {
      if (first) shared.kinds[at.thread_y] = 0;
      return;
    }
    if (x >= image.width || y >= image.height) return;
    const std::uint32_t pixel = image.data[index_of(x, y, image.stride)];
    if constexpr (kPhase == 1) {
      const std::uint32_t alpha = pixel >> 24;
      atomic_or(&shared.kinds[at.thread_y], alpha == 0 ? 1U : alpha == 255 ? 2U : 4U);
    } else if constexpr (kPhase == 2) {
      if (!first) return;
      const std::uint32_t kinds = shared.kinds[at.thread_y];
      state = kinds == 1   ? EdgeRuns::kTransparent
              : kinds == 2 ? EdgeRuns::kOpaque
                           : EdgeRuns::kFirst + atomic_add(runs.count, 1U);
      runs.states[index_of(at.block_x, y, ceil_div(image.width, kWidth))] = state;
    } else if (state >= EdgeRuns::kFirst && state - EdgeRuns::kFirst < runs.capacity) {
      runs.pixels[index_of(at.thread_x, static_cast<int>(state - EdgeRuns::kFirst), kWidth)] =
          pixel;
    }
  }
};

template <typename Executor>
void gather_edge_runs(Executor& on, Pixels image, EdgeRuns runs) {
  cover_plane(on, image.width, image.height, GatherEdgeRuns{image, runs});
}

}  // namespace cutout::cuda
