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

/// Removes the network's blur where the guide's colours explain the edge, by iterative
/// back-projection (Irani 1991): an estimate, blurred as the network blurs, must be the output
/// again.
///
/// Three rounds. The local colour models (local_model.h) of the alpha so far give an estimate L:
///   confidence = e(p)^2 / (e(p) (e(p) + 0.15 e(L)) + (2e-4)^2)
///                * min(1, max(0.8, 12 s^2) e(p) / e(L)) * ramp of s from 0 at 0.08 to 1 at 0.16,
///   e(x) = mean over 5 x 5 network pixels of (p - blur(x))^2,
///   s = mean over 5 x 5 network pixels of (c - blur(c))^2 / (e(p) + 2e-5), c = p - blur(p).
/// s is 0.02 to 0.16 where the image is out of focus, 0.18 to 0.35 at steps and 0.3 to 0.9 among
/// strands (docs/research/0185). alpha = p + confidence (L - p), plus a share of its residual p -
/// blur(alpha): (enlargement - 1) / 3 in 0..1, of that 0.6 where the ramp of s is 0
/// (docs/research/0159). `enlargement` is the image's width over the guide's, the geometric mean of
/// both directions.
///
/// Where colour sampling ran (guide.sample_confidence) the output is no blurred truth: only the
/// first factor of the confidence counts, with 0.3 for 0.15, no residual is added
/// (docs/research/0178), and alpha returns towards p by the sample confidence. Last, the confidence
/// falls to 0 where the alpha of 3 x 3 network pixels stays below 0.1 or above 0.9: there is no
/// edge, what the colours show is texture.
///
/// `p` holds guide.size() values; they are clamped to 0..1, NaN counts as 0.
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
