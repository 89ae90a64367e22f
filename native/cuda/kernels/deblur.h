#pragma once

#include "cuda/kernels/conjugate_gradients.h"
#include "cuda/kernels/deblur_end.h"
#include "cuda/kernels/deblur_start.h"
#include "cuda/kernels/matting_energy.h"
#include "cuda/kernels/tiles.h"

namespace cutout::cuda {

/// Deblurring: alpha of matte/deblur.h, its confidence, and alpha_for_colours of
/// matte/refine.h. All steps are queued; none is waited for.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | p         | output of the network, of the guide's size, as `samples`                             |
/// | blurs     | for each result of used_slope() from -1 on the weights of that blur                  |
/// | scratch   | deblur_scratch() bytes: about 77 for each network pixel                              |
/// | sums      | of lanes, tiles and rows of tiles in the order of the CPU                            |
/// | agreement | bit-equal to deblur_matte and alpha_for_colours                                      |
template <typename Executor>
void deblur_matte(Executor& on, GuidePlanes guide, const float* p, SampledPlanes samples,
                  const float* blurs, void* scratch, float* alpha, float* confidence,
                  float* for_colours) {
  const DeblurPlanes planes = deblur_planes(guide.width, guide.height, scratch);
  const auto each_pixel = [&](const auto& body) {
    over_plane(on, guide.width, guide.height, body);
  };
  const auto each_tile = [&](const auto& kernel) {
    on.run(planes.tiles_across, planes.tiles_down, kernel);
  };
  each_pixel(BeginMatte{planes, samples.alpha, alpha, confidence});
  over_plane(on, kSlopes, 1, ClearSlopes{planes.slopes});
  each_tile(FindTiles{planes, samples.alpha});
  on.run(1, 1, BeginSearch{planes, blurs});
  each_tile(FindFineness{planes});
  each_tile(CountWindows{planes});
  each_tile(FactorWindows{planes, guide});
  each_tile(FitWindows<true>{planes, guide});
  each_tile(SumTerms<true>{planes, guide, p, samples});
  each_tile(Advance<true>{planes, samples.confidence, alpha});
  on.run(1, 1, Conclude<Total::kFirstRz>{planes});
  each_pixel(NextDirection{planes});
  for (int step = 0; step < deblur::kMaxIterations; ++step) {
    each_tile(FitWindows<false>{planes, guide});
    each_tile(SumTerms<false>{planes, guide, p, samples});
    on.run(1, 1, Conclude<Total::kCurvature>{planes});
    each_tile(Advance<false>{planes, samples.confidence, alpha});
    on.run(1, 1, Conclude<Total::kRz>{planes});
    each_pixel(NextDirection{planes});
  }
  const auto mean = [&](int k) { return planes.fits + k * planes.size(); };
  each_tile(ExplainOutput{planes, p, samples, planes.start, mean(0), mean(1)});
  each_tile(ExplainOutput{planes, p, samples, alpha, mean(2), mean(3)});
  each_pixel(KeepExplained{planes, alpha, confidence});
  each_pixel(SuppressFlat{planes, samples, alpha, confidence, for_colours});
}

}  // namespace cutout::cuda
