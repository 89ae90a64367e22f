#pragma once

#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"
#include "matte/pixels.h"
#include "matte/summary.h"

namespace cutout {

/// Multiplies the image's alpha with a network's output, enlarged by a spline.
///
/// `p` holds p_width * p_height values, row after row. Values below 0.02 and NaN count as 0, values
/// above 0.98 as 1. They are interpolated at the image's pixel centres with a Catmull-Rom spline
/// that is limited, in each direction, to the range of its two nearest samples, so it never
/// overshoots. The result is rounded to m in 0..255; the pixel's alpha becomes round(alpha * m /
/// 255), 0 outside `roi`. RGB is unchanged where alpha stays above 0.
///
/// | limit     |                                                                                    |
/// |-----------|------------------------------------------------------------------------------------|
/// | layout    | straight RGBA8, any stride >= width * 4; p dense                                   |
/// | size      | p of any size from 1 x 1; sampled, not averaged, where larger than the image     |
/// | in == out | the image is changed in place                                                    |
/// | roi       | pixels of the image; clipped to it; empty: everything becomes transparent        |
/// | threads   | rows over the pool; same bytes and summary for any number of threads               |
/// | scratch   | 4 float rows of the image's width for each running range                         |
/// | agreement | bit-equal to the scalar version                                                    |
MatteSummary apply_matte(ImageView rgba, std::span<const float> p, int p_width, int p_height,
                         const Box& roi, HiddenColour hidden, ThreadPool& pool);

/// The same, pixel by pixel.
MatteSummary apply_matte_scalar(ImageView rgba, std::span<const float> p, int p_width, int p_height,
                                const Box& roi, HiddenColour hidden);

}  // namespace cutout
