#pragma once

#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"
#include "matte/math/uncertainty.h"

namespace cutout {

/// A prediction at a smaller size than usual whose patches are unsure above this is in doubt: it
/// has usually lost its subject or half of it, and is made again at the usual size.
inline constexpr double kDoubtful = 0.08;

/// How unsure a network is of its prediction for an image, 0 (sure) to 1. `whole`: the mean of
/// p (1 - p) over the mean of p. `patches`: the same, where every block of 4 x 4 network pixels at
/// 1024 x 1024 (as many for each 256 of the longer side of other sizes, at least 1) counts with its
/// least p (1 - p). So what is half believed counts over whole patches of the subject, and edges,
/// hair and meshes, which are narrower than a block, hardly do. 1 where nothing is believed.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | rows of `width` floats; the area lies inside, at least 1 x 1; blocks begin at its      |
/// |           | corner and end with it                                                                 |
/// | values    | 0..1                                                                                   |
/// | threads   | rows of blocks over the pool; the same result for any number of threads                |
/// | scratch   | none                                                                                   |
Uncertainty uncertainty(std::span<const float> p, int width, const Box& area, ThreadPool& pool);

}  // namespace cutout
