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
  using Part = UncertaintySums;
  const float* p;
  int stride;
  Box area;
  int block;
  UncertaintySums* sums;

  CUTOUT_HD void begin(Part& part) const { part = {}; }
  CUTOUT_HD void add(Part& part, int column, int row) const {
    const int left = column * block;
    const int top = row * block;
    const int right = left + block < area.width ? left + block : area.width;
    const int bottom = top + block < area.height ? top + block : area.height;
    int least = kProbabilitySteps * kProbabilitySteps;
    unsigned long long total = 0;
    unsigned long long of_block = 0;
    for (int y = top; y < bottom; ++y) {
      for (int x = left; x < right; ++x) {
        const int steps = probability_steps(p[index_of(area.left + x, area.top + y, stride)]);
        const int value = variance(steps);
        total += static_cast<unsigned long long>(steps);
        of_block += static_cast<unsigned long long>(value);
        if (value < least) least = value;
      }
    }
    const int pixels = (right - left) * (bottom - top);
    atomic_add(&part.probability, total);
    atomic_add(&part.variance, of_block);
    atomic_add(&part.patches,
               static_cast<unsigned long long>(least) * static_cast<unsigned long long>(pixels));
  }
  CUTOUT_HD void end(const Part& part) const {
    if (part.probability != 0) atomic_add(&sums->probability, part.probability);
    if (part.variance != 0) atomic_add(&sums->variance, part.variance);
    if (part.patches != 0) atomic_add(&sums->patches, part.patches);
  }
};

template <typename Executor>
void sum_uncertainty(Executor& on, const float* p, int width, Box area, int block,
                     UncertaintySums* sums) {
  sum_over_plane(on, ceil_div(area.width, block), ceil_div(area.height, block),
                 SumUncertainty{p, width, area, block, sums});
}

}  // namespace cutout::cuda
