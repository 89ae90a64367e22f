#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/thread_pool.h"
#include "matte/grid.h"

namespace cutout {

/// A network's answer at its own size after the guide has been asked: planes of guide.cells().
struct SharpMatte {
  std::unique_ptr<float[]> alpha;  // 0..1; exactly 0 or 1 where the network is sure
  std::unique_ptr<float[]> trust;  // 0..1: how far the guide is to be followed; 0 where not unsure
  std::unique_ptr<std::uint8_t[]> unsure;  // 1: the cell or a neighbour of it is neither 0 nor 1
};

/// Takes the network's blur away as far as the colours of the guide explain it.
///
/// Three times: the local models (local_model.h) of the alpha so far give a sharper one, L. Where
/// L, blurred as the network blurs (guide.blur), is the network's answer again, it is trusted;
/// where the answer blurred once more hardly changes, or the change itself hardly changes when
/// blurred, the edge is wider in truth than the network blurs (glass, motion, out of focus): the
/// answer is kept, since what the colours show there is grain:
///   trust = e(p)^2 / (e(p) (e(p) + 0.15 e(L)) + (2e-4)^2)
///           * min(1, max(0.8, 12 s^2) e(p) / e(L)) * ramp of s from 0 at 0.08 to 1 at 0.16,
///   e(x) = mean over 5 x 5 cells of (p - blur(x))^2,
///   s = mean over 5 x 5 cells of (c - blur(c))^2 / (e(p) + 2e-5), c = p - blur(p): 0.02 to 0.16
///   out of focus, 0.18 to 0.35 at steps, 0.3 to 0.9 among strands (docs/research/0185).
/// Of an answer that had to be corrected (guide.settled) only the first factor counts, with 0.3 for
/// 0.15: its softness tells nothing of the truth's.
/// Of what the blend of L and p still lacks of p after blurring, a share is added back: nothing
/// where the picture is no larger than the answer, all from 4 times as wide on (of that 0.6 where
/// the ramp of s is 0). A picture at the answer's own size has no detail for it to restore, and
/// what a real network's answer holds beyond the colours' there is noise, which this would double
/// (docs/research/0159). `enlargement` is the picture's width over the guide's, the geometric mean
/// of both directions. Nothing at any size where the answer had to be corrected (guide.settled): it
/// is no blurred truth that could lack something (docs/research/0178).
///
/// A cell whose answer is what its colour says already goes back to it by that much
/// (guide.settled): the local colours it is sharpened by may be of such cells only. Last, trust
/// falls to 0 where the sharper alpha stays below 0.1, or above 0.9, in all of 3 x 3 cells: there
/// is no edge there, so what the colours say is the background's own pattern (joints of a wall) or
/// the subject's.
///
/// `p` holds guide.width * guide.height values; clamped to 0..1, NaN counts as 0.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | size      | from 1 x 1                                                                             |
/// | scratch   | four planes of floats; work is done on tiles near unsure cells only                    |
/// | threads   | tiles over the pool; same bytes for any number of threads                              |
/// | agreement | bit-equal to the scalar version                                                        |
SharpMatte sharpen_matte(const Guide& guide, std::span<const float> p, float enlargement,
                         ThreadPool& pool);

/// The same, cell by cell.
SharpMatte sharpen_matte_scalar(const Guide& guide, std::span<const float> p, float enlargement);

}  // namespace cutout
