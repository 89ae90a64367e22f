#pragma once

#include <span>

#include "core/thread_pool.h"

namespace cutout {

/// Range of the estimated blur, in network pixels (decision 0166).
inline constexpr float kMinBlur = 1.3F;
inline constexpr float kMaxBlur = 2.0F;

/// Estimates the blur of a network's output, assuming step edges under a Gaussian point spread
/// function: its standard deviation s, in network pixels, from the 99.9th percentile of the
/// gradient's magnitude over network pixels that are not certain. One number for the whole output,
/// since the blur belongs to the network. Gradients are central differences. s is limited to
/// kMinBlur .. kMaxBlur; beyond kMaxBlur it falls linearly, to kMinBlur at s = 3, because such an
/// image is soft in itself. kMinBlur where every network pixel is certain.
///
/// `p` holds width * height values; they are clamped to 0..1, NaN counts as 0.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | size      | from 1 x 1; network pixels at the border have no slope                                 |
/// | threads   | rows over the pool; same number for any number of threads                              |
/// | agreement | equal to the scalar version                                                            |
float estimate_blur(std::span<const float> p, int width, int height, ThreadPool& pool);

/// s, limited, of the slope in a bin of matte/math/blur_estimate.h, which is at most 1 / (s sqrt(2
/// pi)); kMinBlur for -1.
float blur_of_slope(int slope);

}  // namespace cutout
