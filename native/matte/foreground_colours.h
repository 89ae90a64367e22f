#pragma once

#include <array>
#include <vector>

#include "core/large_memory.h"
#include "core/thread_pool.h"
#include "matte/guide.h"
#include "matte/tiles.h"

namespace cutout {

/// Foreground and background colour of network pixels: planes of guide.size() floats in 0..1. Only
/// the tiles that were asked for hold values; the rest is uninitialised.
struct LayerColours {
  std::array<LargeArray<float>, 3> fore;
  std::array<LargeArray<float>, 3> back;
};

/// Estimates both colours of every network pixel of the tiles by multi-level foreground estimation
/// (Germer 2020): the energy is (alpha F + (1 - alpha) B - I)^2 plus the squared differences of F
/// and of B between neighbours, weighted with 1e-5 and the difference of their alphas.
///
/// A pull-push pyramid (pyramid.h) of the guide's colours, weighted with alpha^8 and (1 - alpha)^8,
/// gives the first estimate; 8 Jacobi steps improve it.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | alpha     | guide.size() numbers in 0..1                                                           |
/// | size      | from 1 x 1                                                                             |
/// | scratch   | a pyramid of 13.4 bytes for each network pixel; for each thread a tile with a border   |
/// |           | of 9 network pixels                                                                    |
/// | threads   | tiles and rows over the pool; same bytes for any number of threads                     |
/// | agreement | bit-equal to the scalar version                                                        |
LayerColours estimate_colours(const Guide& guide, const float* alpha,
                              const std::vector<Tile>& tiles, ThreadPool& pool);

}  // namespace cutout
