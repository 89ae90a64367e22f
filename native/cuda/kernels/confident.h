#pragma once

#include "cuda/kernel.h"
#include "cuda/table.h"
#include "matte/math/certainty.h"
#include "matte/math/confident.h"

namespace cutout::cuda {

/// Adds an area's network pixels to the counts that matte/confident.h decides by.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | area      | inside the output                                                                    |
/// | agreement | equal to the counts of is_confident                                                  |
struct CountConfident {
  static constexpr int kWidth = 32;
  static constexpr int kHeight = 8;
  static constexpr int kPhases = 3;
  using Shared = ConfidenceCounts;

  const float* p;
  int stride;
  Box area;
  ConfidenceCounts* counts;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& part) const {
    if constexpr (kPhase == 1) {
      const int x = at.block_x * kWidth + at.thread_x;
      const int y = at.block_y * kHeight + at.thread_y;
      if (x >= area.width || y >= area.height) return;
      const float value = p[index_of(area.left + x, area.top + y, stride)];
      if (value >= kForegroundThreshold) atomic_add(&part.foreground, 1);
      if (is_ambiguous(value)) atomic_add(&part.ambiguous, 1);
    } else if (at.thread_x == 0 && at.thread_y == 0) {
      if constexpr (kPhase == 0) {
        part = {0, 0};
      } else {
        if (part.foreground != 0) atomic_add(&counts->foreground, part.foreground);
        if (part.ambiguous != 0) atomic_add(&counts->ambiguous, part.ambiguous);
      }
    }
  }
};

}  // namespace cutout::cuda
