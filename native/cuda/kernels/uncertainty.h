#pragma once

#include "cuda/kernel.h"
#include "cuda/table.h"
#include "matte/math/uncertainty.h"

namespace cutout::cuda {

/// Adds an area's blocks to the sums that matte/uncertainty.h measures; a thread takes a block.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | area      | inside the output                                                                    |
/// | agreement | equal to the sums of uncertainty                                                     |
struct SumUncertainty {
  static constexpr int kWidth = 32;
  static constexpr int kHeight = 8;
  static constexpr int kPhases = 3;
  using Shared = UncertaintySums;

  const float* p;
  int stride;
  Box area;
  int block;
  UncertaintySums* sums;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& part) const {
    if constexpr (kPhase == 1) {
      const int left = (at.block_x * kWidth + at.thread_x) * block;
      const int top = (at.block_y * kHeight + at.thread_y) * block;
      if (left < area.width && top < area.height) add(part, left, top);
    } else if (at.thread_x == 0 && at.thread_y == 0) {
      if constexpr (kPhase == 0) {
        part.probability = 0;
        part.variance = 0;
      } else {
        if (part.probability != 0) atomic_add(&sums->probability, part.probability);
        if (part.variance != 0) atomic_add(&sums->variance, part.variance);
      }
    }
  }

 private:
  CUTOUT_HD void add(UncertaintySums& part, int left, int top) const {
    const int right = left + block < area.width ? left + block : area.width;
    const int bottom = top + block < area.height ? top + block : area.height;
    int least = kProbabilitySteps * kProbabilitySteps;
    unsigned long long total = 0;
    for (int y = top; y < bottom; ++y) {
      for (int x = left; x < right; ++x) {
        const int steps = probability_steps(p[index_of(area.left + x, area.top + y, stride)]);
        const int value = variance(steps);
        total += static_cast<unsigned long long>(steps);
        if (value < least) least = value;
      }
    }
    const int pixels = (right - left) * (bottom - top);
    atomic_add(&part.probability, total);
    atomic_add(&part.variance,
               static_cast<unsigned long long>(least) * static_cast<unsigned long long>(pixels));
  }
};

template <typename Executor>
void sum_uncertainty(Executor& on, const float* p, int width, Box area, int block,
                     UncertaintySums* sums) {
  on.run(ceil_div(area.width, block * SumUncertainty::kWidth),
         ceil_div(area.height, block * SumUncertainty::kHeight),
         SumUncertainty{p, width, area, block, sums});
}

}  // namespace cutout::cuda
