#pragma once

#include <span>

#include "core/large_memory.h"
#include "core/thread_pool.h"
#include "matte/guide.h"

namespace cutout {

/// Result of sample_colours: planes of guide.size() numbers in 0..1.
struct ColourSampling {
  LargeArray<float> alpha;              // p moved towards the sampled alpha
  LargeArray<float> sample_confidence;  // c
  LargeArray<float> sampled_alpha;      // t; 0 where c is 0
  bool none = false;                    // c is 0 everywhere
};

/// Sampling-based matting (Wang 2007, Gastal 2010) of a network's output: where colour samples of
/// certain foreground and background explain a network pixel's colour, its alpha moves to what they
/// say. For networks trained on masks, which draw hair too solid and edges too wide
/// (decision 0179).
///
/// Foreground samples are the network pixels with only p > 0.98 within radius 3, background samples
/// those with only p < 0.02 within radius 2. Network pixels with only p > 0.7 within radius 20 are
/// foreground samples too, if there are any of the others (decision 0187). F and B are the
/// mean colours of the nearest samples, f and b their variances (pyramid.h). For all other network
/// pixels:
///   t = (I - B).(F - B) / |F - B|^2, in 0..1;   e = I - B - (F - B) (I - B).(F - B) / |F - B|^2
///   n = 0.003, the noise of a colour;   v = n + t^2 f + (1 - t)^2 b, the variance of the mixture
///   c = p (1 - p) / (p (1 - p) + v / (2 |F - B|^2)) n / (n + |e|^2);   alpha = p + c (t - p)
/// Network pixels with only p < 0.3 within radius 20 are faint: they are not raised (c is 0 there
/// where t > p). Without samples of both kinds nothing changes. `p` is clamped to 0..1, NaN counts
/// as 0.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | size      | from 1 x 1                                                                             |
/// | scratch   | 19 bytes for each network pixel besides the result                                     |
/// | threads   | rows over the pool; same bytes for any number of threads                               |
/// | agreement | bit-equal to the scalar version                                                        |
ColourSampling sample_colours(const Guide& guide, std::span<const float> p, ThreadPool& pool);

/// Returns what there is for the output of a network trained on mattes, which is a blurred alpha: p
/// without samples, c is 0 everywhere.
ColourSampling without_samples(const Guide& guide, std::span<const float> p, ThreadPool& pool);

}  // namespace cutout
