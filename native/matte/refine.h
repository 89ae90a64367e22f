#pragma once

#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"
#include "matte/grid.h"
#include "matte/pixels.h"
#include "matte/summary.h"

namespace cutout {

/// Writes a network's alpha into the picture with the picture itself as guide, and puts the
/// subject's own colours where it is mixed with the background.
///
/// At the guide's size:
///  1. the network's blur is taken away where the colours explain it (sharpen.h)
///  2. colours of foreground F and background B (colour.h) for the sharper alpha; where the answer
///     had to be corrected (guide.settled) for that moved once more to what the cells' own colours
///     say: what is left of a network's solid edges would be taken for the foreground's colour
///     (docs/research/0184)
/// At the picture's size, only where the network is unsure; everywhere else alpha is 0 or 1:
///  3. A = alpha by the local models (local_model.h) of the sharper alpha, interpolated, plus what
///     the models lacked of it at the guide's size
///  4. alpha = q + trust (A - q), q the sharper alpha by the spline of upsample.h: where the guide
///     misleads (like colours, wide soft regions) trust is small and the network's own stays
///  5. of what F and B leave unexplained, r = I - alpha F - (1 - alpha) B, alpha takes its share:
///     alpha += t r.(F - B) / (alpha^2 + (1 - alpha)^2 + t |F - B|^2), the least-squares answer for
///     alpha, F and B together. t = 0.002 trust / (0.001 + e^2), alpha's variance over the
///     colours', which e, the part of r across F - B, tells of: alpha cannot explain it
///     (docs/research/0157)
///  6. colour = F + alpha (I - alpha F - (1 - alpha) B) / (alpha^2 + (1 - alpha)^2): of the pairs
///     that explain the pixel, the one nearest to F and B
/// Alpha is rounded to m in 0..255 and multiplied with the alpha that the picture had; 0 outside
/// `roi`. RGB stays as it is where m is 255 and where the picture was not opaque.
///
/// `guide` shows the whole picture, best exactly what the network saw; `p` holds guide.width *
/// guide.height values, clamped to 0..1, NaN as 0.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | straight RGBA8, any stride >= width * 4                                                |
/// | size      | picture and guide of any size from 1 x 1; a guide larger than the picture is sampled   |
/// | in == out | the picture is changed in place                                                        |
/// | roi       | pixels of the picture; clipped to it; empty: everything becomes transparent            |
/// | threads   | tiles over the pool; same bytes and summary for any number of threads                  |
/// | scratch   | 68 bytes a cell of the guide at most (wholly unsure), 200 kB for each thread           |
/// | agreement | bit-equal to the scalar version                                                        |
MatteSummary refine_matte(ImageView rgba, const Guide& guide, std::span<const float> p,
                          const Box& roi, HiddenColour hidden, ThreadPool& pool);

/// The same, pixel by pixel.
MatteSummary refine_matte_scalar(ImageView rgba, const Guide& guide, std::span<const float> p,
                                 const Box& roi, HiddenColour hidden);

}  // namespace cutout
