#pragma once

#include <span>
#include <vector>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// Adjacent network pixels of one row that belong to a component: columns begin .. end - 1 of row
/// y.
struct Run {
  int y = 0;
  int begin = 0;
  int end = 0;
  int component = 0;  // index into Components::components
};

/// Measures of a component.
struct Component {
  int area = 0;        // network pixels
  int foreground = 0;  // network pixels with p >= 1/2
  float low = 1;       // least and greatest p
  float high = 0;

  bool operator==(const Component&) const = default;
};

/// All connected components of a map, in the order of their first network pixel (row by row).
struct Components {
  std::vector<Run> runs;  // row by row, left to right
  std::vector<Component> components;
};

/// Connectivity; kEight joins network pixels that touch at a corner. Foreground and background take
/// different ones, so that a diagonal line of foreground separates the background on its two sides.
enum class Connectivity { kFour, kEight };

/// Connected components of the network pixels of `area` with least <= p <= most: run-length
/// labelling, rows joined by union-find. `p` is a map of `width` columns; runs are in its
/// coordinates.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | floats row by row; the area lies inside, at least 1 x 1, sides up to 8192              |
/// | values    | 0..1; a NaN belongs to no component                                                    |
/// | threads   | bands of rows over the pool, then the caller; same result for any number of threads    |
/// | scratch   | 16 bytes a run; a row of n network pixels has at most (n + 1) / 2 runs                 |
/// | agreement | exact with the scalar version                                                          |
Components find_components(std::span<const float> p, int width, const Box& area, float least,
                           float most, Connectivity connectivity, ThreadPool& pool);

}  // namespace cutout
