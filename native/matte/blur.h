#pragma once

#include <span>

#include "core/thread_pool.h"

namespace cutout {

/// Range of the estimated blur, in network pixels (docs/research/0166).
inline constexpr float kLeastBlur = 1.3F;
inline constexpr float kMostBlur = 2.0F;

/// Estimates the blur of a network's answer: the standard deviation s, in network pixels, of the
/// Gaussian that makes a step as steep as the steepest thousandth of the slopes of uncertain
/// network pixels (at least the ninth steepest). One number for the whole answer, since the blur
/// belongs to the network. Slopes are central differences. s is limited to kLeastBlur .. kMostBlur;
/// beyond kMostBlur it falls linearly, to kLeastBlur at s = 3, because such an image is soft in
/// itself. kLeastBlur where no network pixel is uncertain.
///
/// `p` holds width * height values; they are clamped to 0..1, NaN counts as 0.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | size      | from 1 x 1; network pixels at the border have no slope                                 |
/// | threads   | rows over the pool; same number for any number of threads                              |
/// | agreement | equal to the scalar version                                                            |
float blur_of(std::span<const float> p, int width, int height, ThreadPool& pool);

/// The same by sorting all slopes.
float blur_of_scalar(std::span<const float> p, int width, int height);

}  // namespace cutout
