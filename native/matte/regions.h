#pragma once

#include <span>
#include <vector>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// Neighbouring cells of one row that belong to a region: columns begin..end-1 of row y.
struct Run {
  int y = 0;
  int begin = 0;
  int end = 0;
  int region = 0;  // index into Regions::regions
};

/// What is known of a region without looking at its cells again.
struct Region {
  int area = 0;   // cells
  int sure = 0;   // of them those with p >= 1/2
  float low = 1;  // least and greatest p
  float high = 0;
  Box box;

  bool operator==(const Region&) const = default;
};

/// All connected parts of a map, in the order of their first cell (row by row).
struct Regions {
  std::vector<Run> runs;  // row by row, left to right
  std::vector<Region> regions;
};

/// kEight joins cells that touch at a corner. What is background for one must be joined with the
/// other: a diagonal line of subject then really parts two holes.
enum class Neighbours { kFour, kEight };

/// Connected parts of the cells of `area` with least <= p <= most: runs of each row, joined row by
/// row with union-find. `p` is a map of `width` columns; runs and boxes are in its coordinates.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | floats row by row; the area lies inside, at least 1 x 1, sides up to 8192              |
/// | values    | 0..1; a NaN belongs to no region                                                       |
/// | threads   | bands of rows over the pool, then one; the same result for any number of threads       |
/// | scratch   | 16 bytes a run; a row of n cells has at most (n + 1) / 2 runs                          |
/// | agreement | exact with the scalar version                                                          |
Regions find_regions(std::span<const float> p, int width, const Box& area, float least, float most,
                     Neighbours neighbours, ThreadPool& pool);

/// The definition, by flood fill; runs are those of the rows of the labelled map.
Regions find_regions_scalar(std::span<const float> p, int width, const Box& area, float least,
                            float most, Neighbours neighbours);

}  // namespace cutout
