#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/kernels/union_find.h"
#include "matte/math/fusion.h"

namespace cutout::cuda {

/// Two networks' outputs to one image, in place of the first: matte/fusion.h.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | outputs   | width * height floats each, sides up to 8192                                         |
/// | scratch   | fusion_scratch() bytes, aligned to 8: 22 for each network pixel                      |
/// | agreement | bit-equal to fuse_outputs                                                            |

/// What is known of a region.
struct RegionSum {
  unsigned long long gain;  // of prefers_second(), modulo 2^64
  int area;

  CUTOUT_HD void add_to(RegionSum* sum) const {
    if (gain != 0) atomic_add(&sum->gain, gain);
    if (area != 0) atomic_add(&sum->area, area);
  }
};

inline std::size_t fusion_scratch(int width, int height) {
  return (sizeof(RegionSum) + sizeof(int) + 2) * static_cast<std::size_t>(width) *
         static_cast<std::size_t>(height);
}

struct Outputs {
  float* first;
  const float* second;
  int width;
  int height;
  RegionSum* sums;
  int* labels;
  std::uint8_t* core;  // a Difference, or several; in the end of the network pixels of regions
  std::uint8_t* in_row;

  CUTOUT_HD std::ptrdiff_t index(int x, int y) const { return index_of(x, y, width); }
};

struct BeginFusion {
  Outputs outputs;

  CUTOUT_HD void operator()(int x, int y) const {
    const std::ptrdiff_t i = outputs.index(x, y);
    outputs.core[i] = difference(outputs.first[i], outputs.second[i]);
    outputs.sums[i] = {0, 0};
  }
};

/// Erosion or dilation along a line, bit by bit: network pixel `at` of `count`, `step` apart.
CUTOUT_HD std::uint8_t around(const std::uint8_t* from, std::ptrdiff_t step, int at, int count,
                              int radius, bool erode) {
  const int first = at > radius ? -radius : -at;
  const int last = at + radius < count ? radius : count - 1 - at;
  unsigned bits = *from;
  for (int k = first; k <= last; ++k) {
    const unsigned there = from[k * step];
    bits = erode ? bits & there : bits | there;
  }
  return static_cast<std::uint8_t>(bits);
}

struct AroundInRow {
  Outputs outputs;
  int radius;
  bool erode;

  CUTOUT_HD void operator()(int x, int y) const {
    const std::ptrdiff_t i = outputs.index(x, y);
    outputs.in_row[i] = around(outputs.core + i, 1, x, outputs.width, radius, erode);
  }
};

struct AroundInColumn {
  Outputs outputs;
  int radius;
  bool erode;

  CUTOUT_HD void operator()(int x, int y) const {
    const std::ptrdiff_t i = outputs.index(x, y);
    outputs.core[i] = around(outputs.in_row + i, outputs.width, y, outputs.height, radius, erode);
  }
};

/// The network pixels near cores that differ as these.
struct FindRegions {
  Outputs outputs;

  CUTOUT_HD void operator()(int x, int y) const {
    const std::ptrdiff_t i = outputs.index(x, y);
    outputs.core[i] &= difference(outputs.first[i], outputs.second[i]);
  }
};

struct RegionClass {
  Outputs outputs;

  CUTOUT_HD int operator()(int x, int y) const { return outputs.core[outputs.index(x, y)]; }
};

struct MeasureRegions {
  using Sum = RegionSum;
  Outputs outputs;

  CUTOUT_HD Sum operator()(int x, int y) const {
    const std::ptrdiff_t i = outputs.index(x, y);
    const std::int64_t gain = confidence_of(outputs.second[i]) - confidence_of(outputs.first[i]);
    return {static_cast<unsigned long long>(gain), 1};
  }
};

struct SelectRegions {
  Outputs outputs;

  CUTOUT_HD void operator()(int x, int y) const {
    const std::ptrdiff_t i = outputs.index(x, y);
    const int root = outputs.labels[i];
    if (root < 0) return;
    const RegionSum& sum = outputs.sums[root];
    if (prefers_second(static_cast<std::int64_t>(sum.gain), sum.area)) {
      outputs.first[i] = outputs.second[i];
    }
  }
};

template <typename Executor>
void fuse(Executor& on, float* first, const float* second, int width, int height, void* scratch) {
  const std::ptrdiff_t size = index_of(0, height, width);
  Outputs outputs{first,   second,  width,  height, static_cast<RegionSum*>(scratch),
                  nullptr, nullptr, nullptr};
  outputs.labels = reinterpret_cast<int*>(outputs.sums + size);
  outputs.core = reinterpret_cast<std::uint8_t*>(outputs.labels + size);
  outputs.in_row = outputs.core + size;
  const int radius = edge_radius(width, height);
  const auto with_neighbours = [&](int reach, bool erode) {
    over_plane(on, width, height, AroundInRow{outputs, reach, erode});
    over_plane(on, width, height, AroundInColumn{outputs, reach, erode});
  };
  over_plane(on, width, height, BeginFusion{outputs});
  with_neighbours(radius, true);
  with_neighbours(dilation_radius(radius), false);
  over_plane(on, width, height, FindRegions{outputs});
  label_components(on, RegionClass{outputs}, width, height, true, outputs.labels);
  measure_components(on, MeasureRegions{outputs}, width, height, outputs.labels, outputs.sums);
  over_plane(on, width, height, SelectRegions{outputs});
}

}  // namespace cutout::cuda
