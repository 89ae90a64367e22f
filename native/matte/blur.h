#pragma once

#include <span>

#include "core/thread_pool.h"

namespace cutout {

/// Least and greatest blur that a network is taken to have, in cells. Sharper steps than the least
/// are drawn where it is certain; where it is not, real networks are no sharper than that
/// (docs/research/0166).
inline constexpr float kLeastBlur = 1.3F;
inline constexpr float kMostBlur = 2.0F;

/// How softly a network drew, in cells: the standard deviation s of the blur that makes a step as
/// steep as the steepest thousandth of the answer's soft cells (at least the ninth steepest).
/// Slopes are those between the two neighbours of a cell, which are gentler than the edge itself:
/// s is a little too great, as looking through a blur wants it. An answer softer than any network
/// blurs is soft in truth, and says nothing: from kMostBlur on the result falls again, to
/// kLeastBlur where s is 3. So it does where nothing is soft.
///
/// The blur belongs to the network and the picture, so one number for all cells: hair and glass
/// are soft by themselves, but where one clean edge is drawn as well, it tells.
///
/// `p` holds width * height values; clamped to 0..1, NaN counts as 0.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | size      | from 1 x 1; cells at the border are not looked at                                      |
/// | threads   | rows over the pool; same number for any number of threads                              |
/// | agreement | equal to the scalar version                                                            |
float blur_of(std::span<const float> p, int width, int height, ThreadPool& pool);

/// The same by sorting all slopes.
float blur_of_scalar(std::span<const float> p, int width, int height);

}  // namespace cutout
