#pragma once

#include <cstdint>
#include <span>

#include "core/large_memory.h"
#include "core/thread_pool.h"
#include "matte/guide.h"

namespace cutout {

/// A deblurred output at its own size: planes of guide.size().
struct DeblurredMatte {
  LargeArray<float> alpha;             // 0..1; exactly 0 or 1 where not uncertain
  LargeArray<float> confidence;        // 0..1: weight of the guide; 0 where not uncertain
  LargeArray<std::uint8_t> uncertain;  // 1: it or one of its eight neighbours is neither 0 nor 1
};

/// Removes the network's blur from its output p where the guide's colours explain the edge, by
/// iterative back-projection (Irani 1991): the result, blurred as the network blurs, must be p
/// again. Each of three rounds:
///
///  1. L = alpha by the local colour models (local_model.h), fitted to the alpha so far.
///  2. alpha = p + confidence (L - p).
///  3. Add a share of the residual p - blur(alpha): (enlargement - 1) / 3 in 0..1, and 0.6 of that
///     where the third factor below is 0 (docs/research/0159).
///
/// The confidence is the product of three factors:
///
/// | factor                                           | is low where                            |
/// |--------------------------------------------------|-----------------------------------------|
/// | e(p)^2 / (e(p) (e(p) + 0.15 e(L)) + (2e-4)^2)    | blurring changes p little: no edge      |
/// | min(1, max(0.8, 12 s^2) e(p) / e(L))             | L explains p worse than p itself does   |
/// | ramp of s from 0 at 0.08 to 1 at 0.16            | the image is out of focus               |
///
/// with means over 5 x 5 network pixels:
///   e(x) = mean of (p - blur(x))^2, the error of x as the unblurred alpha;
///   s = mean of (c - blur(c))^2 / (e(p) + 2e-5) for c = p - blur(p), the share of the change by
///       blurring that blurring again changes: 0.02 to 0.16 where the image is out of focus, 0.18
///       to 0.35 at steps and 0.3 to 0.9 among strands (docs/research/0185).
///
/// Where colour sampling ran (guide.sample_confidence), p is not a blurred alpha: only the first
/// factor counts, with 0.3 for 0.15, no residual is added (docs/research/0178), and alpha returns
/// towards p by the sample confidence.
///
/// Last, the confidence falls to 0 where the alpha of 3 x 3 network pixels stays below 0.1 or above
/// 0.9: there is no edge, and what the colours show is texture.
///
/// `p` holds guide.size() values; they are clamped to 0..1, NaN counts as 0. `enlargement` is the
/// image's width over the guide's, the geometric mean of both directions.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | size      | from 1 x 1                                                                             |
/// | scratch   | four planes of floats; only tiles with uncertain network pixels are computed           |
/// | threads   | tiles over the pool; same bytes for any number of threads                              |
/// | agreement | bit-equal to the scalar version                                                        |
DeblurredMatte deblur_matte(const Guide& guide, std::span<const float> p, float enlargement,
                            ThreadPool& pool);

/// The same, pixel by pixel.
DeblurredMatte deblur_matte_scalar(const Guide& guide, std::span<const float> p, float enlargement);

}  // namespace cutout
