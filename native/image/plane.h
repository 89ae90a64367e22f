#pragma once

#include <span>

#include "core/thread_pool.h"

namespace cutout {

/// Resizes a plane of floats: in each direction area average where it shrinks, linear interpolation
/// between sample centres where it grows (area_taps in taps.h).
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | rows without padding, in: in_width * in_height, `out`: width * height numbers          |
/// | in == out | no                                                                                     |
/// | size      | from 1 x 1, both ways                                                                  |
/// | threads   | rows over the pool; same bits for any number of threads                                |
/// | scratch   | a row for each running range                                                           |
/// | agreement | within 1e-5 of the scalar version for values in 0..1 (float against double sums)       |
void resize_plane(std::span<const float> plane, int in_width, int in_height, int width, int height,
                  std::span<float> out, ThreadPool& pool);

}  // namespace cutout
