#pragma once

#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// Whether a network's output is confident rather than ambiguous: inside the area at most 3 network
/// pixels have 0.1 < p < 0.9 for every 5 with p >= 1/2. False when none reaches 1/2. Edges, hair
/// and fur stay well below this bound; an output above it has usually lost its subject because the
/// network's input was too small (docs/research/0098).
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | rows of `width` floats; the area lies inside, at least 1 x 1                           |
/// | values    | 0..1; a NaN counts as 0                                                                |
/// | threads   | rows over the pool; the same result for any number of threads                          |
/// | scratch   | none                                                                                   |
/// | agreement | exact with the scalar version                                                          |
bool is_confident(std::span<const float> p, int width, const Box& area, ThreadPool& pool);

}  // namespace cutout
