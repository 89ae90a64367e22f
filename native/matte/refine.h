#pragma once

#include <span>
#include <vector>

#include "core/image_view.h"
#include "core/large_memory.h"
#include "core/thread_pool.h"
#include "matte/deblur.h"
#include "matte/foreground_colours.h"
#include "matte/guide.h"
#include "matte/pixels.h"
#include "matte/summary.h"

namespace cutout {

// The refinement: solve_edges, then write_edges.
//
// Multiplies the image's alpha with a network's output, enlarged with the image itself as guide,
// and replaces mixed colours by the estimated foreground colour. docs/matting.md, sections 4 to 6.
//
// At the guide's size:
//
//  1. Deblur the output where the guide's colours explain it (deblur.h).
//  2. Estimate the colours of foreground F and background B (foreground_colours.h) for the
//     deblurred alpha, moved towards the sampled one by the sample confidence
//     (decision 0184).
//
// At the image's size, for pixels beside uncertain network pixels only; everywhere else alpha is 0
// or 1:
//
//  3. A = alpha by planes over colour with the slopes of the deblurred alpha's local models
//     (local_model.h), each through its network pixel's own alpha; slopes and offsets are
//     interpolated linearly.
//  4. alpha1 = q + confidence (A - q), q the deblurred alpha by the spline of cubic_taps.h.
//  5. Explain r = I - alpha1 F - (1 - alpha1) B by alpha, F and B together, in the sense of least
//     squares (decision 0157), where e is the part of r across F - B:
//     u = 0.003 confidence / (0.003 + e^2)
//     alpha = alpha1 + u r.(F - B) / (alpha1^2 + (1 - alpha1)^2 + u |F - B|^2)
//  6. colour = F + alpha (I - alpha F - (1 - alpha) B) / (alpha^2 + (1 - alpha)^2)
//
// Alpha is rounded to m in 0..255 and multiplied with the image's alpha; 0 outside `roi`. RGB is
// unchanged where m is 255 and where the image was not opaque.
//
// `guide` shows the whole image, best exactly what the network saw; `p` holds guide.size() values,
// which are clamped to 0..1, NaN as 0; `samples` are those of p.
//
// | limit     |                                                                                        |
// |-----------|----------------------------------------------------------------------------------------|
// | layout    | straight RGBA8, any stride >= width * 4                                                |
// | size      | image and guide of any size from 1 x 1; a guide larger than the image is sampled       |
// | in == out | the image is changed in place                                                          |
// | roi       | pixels of the image; clipped to it; empty: everything becomes transparent              |
// | threads   | tiles over the pool; same bytes and summary for any number of threads                  |
// | scratch   | at most 130 bytes for each network pixel (all uncertain), 220 kB for each thread       |
// | agreement | bit-equal to the scalar version                                                        |

/// The result of steps 1 and 2, at the guide's size.
struct SolvedEdges {
  Guide guide;  // its planes are borrowed
  DeblurredMatte matte;
  LayerColours colours;
  std::vector<Tile> coloured;  // the part of each tile whose colours were estimated; may be empty
};

/// The alpha that step 2 is for; `alpha` is the deblurred one.
LargeArray<float> alpha_for_colours(const Guide& guide, const float* alpha,
                                    const ColourSampling& samples, ThreadPool& pool);

/// Returns the result of steps 1 and 2.
SolvedEdges solve_edges(const Guide& guide, std::span<const float> p, const ColourSampling& samples,
                        ThreadPool& pool);

/// Takes steps 3 to 6 on an image, and returns what became of it.
MatteSummary write_edges(ImageView rgba, const SolvedEdges& edges, const Box& roi,
                         HiddenColour hidden, ThreadPool& pool);

}  // namespace cutout
