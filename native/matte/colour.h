#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/thread_pool.h"
#include "matte/grid.h"
#include "matte/tiles.h"

namespace cutout {

/// Foreground and background colour of cells, planes of guide.cells() floats in 0..1. Only cells
/// of the tiles that were asked for hold values; the rest is not even touched memory.
struct CellColours {
  std::array<std::unique_ptr<float[]>, 3> fore;
  std::array<std::unique_ptr<float[]>, 3> back;
};

/// Estimates both colours of every cell of the tiles.
///
/// A pyramid of weighted means (weights alpha^8 and (1 - alpha)^8; every level half the size, a
/// level's weights at most 1) gives each cell a first guess from the nearest sure colours. Then 8
/// Jacobi steps of the multi-level method's energy (Germer 2020): alpha F + (1 - alpha) B explains
/// the cell's colour, F and B are smooth where alpha changes.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | alpha     | guide.cells() numbers in 0..1                                                          |
/// | size      | from 1 x 1                                                                             |
/// | scratch   | a pyramid of 10.7 bytes a cell; a tile and 8 cells around it for each thread           |
/// | threads   | tiles and rows over the pool; same bytes for any number of threads                     |
/// | agreement | bit-equal to the scalar version                                                        |
CellColours estimate_colours(const Guide& guide, const float* alpha, const std::vector<Tile>& tiles,
                             ThreadPool& pool);

/// The same, cell by cell over the whole picture, every cell with a value.
CellColours estimate_colours_scalar(const Guide& guide, const float* alpha);

}  // namespace cutout
