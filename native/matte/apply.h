#pragma once

#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"
#include "matte/pixels.h"
#include "matte/summary.h"

namespace cutout {

/// Writes a network's alpha into the picture.
///
/// `p` holds p_width * p_height values, row after row; they are clamped to 0..1, below 0.02 they
/// count as 0 and above 0.98 as 1, NaN as 0.
/// They are brought to the picture's size with a Catmull-Rom spline between sample centres whose
/// value is kept, in each direction, between its two nearest samples: it does not overshoot, and
/// what is wholly 0 or 1 stays so. (Measured against bilinear in test/native/apply.test.ts.) The
/// result is rounded to m in 0..255, the pixel's alpha becomes round(alpha * m / 255), 0 outside
/// `roi`. RGB is untouched where alpha stays above 0.
///
/// | limit     |                                                                                    |
/// |-----------|------------------------------------------------------------------------------------|
/// | layout    | straight RGBA8, any stride >= width * 4; p dense                                   |
/// | size      | p of any size from 1 x 1; sampled, not averaged, where larger than the picture     |
/// | in == out | the picture is changed in place                                                    |
/// | roi       | pixels of the picture; clipped to it; empty: everything becomes transparent        |
/// | threads   | rows over the pool; same bytes and summary for any number of threads               |
/// | scratch   | 4 float rows of the picture's width for each running range                         |
/// | agreement | bit-equal to the scalar version                                                    |
MatteSummary apply_matte(ImageView rgba, std::span<const float> p, int p_width, int p_height,
                         const Box& roi, HiddenColour hidden, ThreadPool& pool);

/// The same, pixel by pixel.
MatteSummary apply_matte_scalar(ImageView rgba, std::span<const float> p, int p_width, int p_height,
                                const Box& roi, HiddenColour hidden);

}  // namespace cutout
