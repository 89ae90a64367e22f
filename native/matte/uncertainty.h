#pragma once

#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// A prediction above this uncertainty is in doubt: it has usually lost its subject or half of it.
/// One at a smaller size than usual is then made again at the usual size, and one at the usual size
/// is compared with that of a second network (decision 0273).
inline constexpr double kDoubtful = 0.08;

/// How unsure a network is of its prediction for an image, 0 (sure) to 1: the mean of p (1 - p)
/// over the mean of p, where every block of 4 x 4 network pixels at 1024 x 1024 (as many for each
/// 256 of the longer side of other sizes, at least 1) counts with its least p (1 - p). So what is
/// half believed counts over whole patches of the subject, and edges, hair and meshes, which are
/// narrower than a block, hardly do. 1 where nothing is believed.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | rows of `width` floats; the area lies inside, at least 1 x 1; blocks begin at its      |
/// |           | corner and end with it                                                                 |
/// | values    | 0..1                                                                                   |
/// | threads   | rows of blocks over the pool; the same result for any number of threads                |
/// | scratch   | none                                                                                   |
double uncertainty(std::span<const float> p, int width, const Box& area, ThreadPool& pool);

}  // namespace cutout
