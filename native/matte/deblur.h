#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/large_memory.h"
#include "core/thread_pool.h"
#include "matte/colour_sampling.h"
#include "matte/guide.h"

namespace cutout {

/// A deblurred output at its own size: planes of guide.size().
struct DeblurredMatte {
  LargeArray<float> alpha;             // 0..1; exactly 0 or 1 where not uncertain
  LargeArray<float> confidence;        // 0..1: weight of the guide; 0 where not uncertain
  LargeArray<std::uint8_t> uncertain;  // 0: it and its eight neighbours are all 0 or all 1; else 1
};

/// Removes the network's blur from its output p where the guide's colours explain the edge: alpha
/// minimises the energy of matting_energy.h over the uncertain network pixels, from the samples'
/// alpha, by at most 12 steps of preconditioned conjugate gradients (docs/matting.md, section 4).
///
/// Where D(alpha) > 1.5 D(start), D the mean over 7 x 7 of the energy's terms of output and
/// samples, the colours do not explain the edge: alpha returns to the start by 1 - (1.5 D(start) /
/// D(alpha))^2. The confidence is this share that stays times three factors, with e(x) = mean over
/// 7 x 7 network pixels of (start - blur(x))^2 and the alpha before its return:
///
/// | factor                                               | is low where                        |
/// |------------------------------------------------------|-------------------------------------|
/// | e(start)^2 / (e(start) (e(start) + 0.3 e(alpha))     | blurring changes the start little:  |
/// |               + (4e-5)^2)                            | no edge                             |
/// | f of matting_energy.h                                | the image is out of focus           |
/// | 0 where alpha of 3 x 3 network pixels is 0, or 1;    | there is no edge, what the colours  |
/// | 1 from 0.02 to 0.98, linear in between               | show is texture                     |
///
/// `p` holds guide.size() values; they are clamped to 0..1, NaN counts as 0. `samples` are those of
/// p (colour_sampling.h).
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | size      | from 1 x 1                                                                             |
/// | scratch   | four planes of floats and that of the energy (matting_energy.h); only tiles with       |
/// |           | uncertain network pixels are computed                                                  |
/// | threads   | tiles over the pool; same bytes for any number of threads                              |
/// | agreement | with the minimum in double precision, test/native/mattingEnergy.test.ts                |
DeblurredMatte deblur_matte(const Guide& guide, std::span<const float> p,
                            const ColourSampling& samples, ThreadPool& pool);

/// The weights of the blur that is estimated from a slope: kBlurRadius + 1 for each result of
/// used_slope() of math/blur_estimate.h, from -1 on. For a device, which cannot compute their
/// bytes.
const std::vector<float>& blurs_by_slope();

}  // namespace cutout
