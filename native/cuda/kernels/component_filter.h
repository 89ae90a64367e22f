#pragma once

#include <cstddef>
#include <cstdint>

#include "core/image_view.h"
#include "cuda/kernel.h"
#include "cuda/kernels/blocks.h"
#include "cuda/kernels/union_find.h"
#include "matte/math/components.h"
#include "matte/math/probability.h"

namespace cutout::cuda {

/// Removes connected components that are no part of a subject and fills small holes, in place:
/// matte/component_filter.h.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | area      | inside the output, sides up to 8192; only its network pixels are read and changed    |
/// | scratch   | component_scratch() ints: 20 bytes for each network pixel of the area, at most       |
/// |           | 2.1 MB for distances                                                                 |
/// | agreement | bit-equal to filter_components                                                       |

/// What is known of the component whose root a network pixel is.
struct ComponentSum {
  int area;
  int second;  // network pixels with p >= 1/2; in the search for holes: those of the hole
  std::uint32_t flags;

  CUTOUT_HD void add_to(ComponentSum* sum) const {
    if (area != 0) atomic_add(&sum->area, area);
    if (second != 0) atomic_add(&sum->second, second);
    if ((flags & ~atomic_load(&sum->flags)) != 0) atomic_or(&sum->flags, flags);
  }
};

/// Flags of a component, and of the hole with the same root.
inline constexpr std::uint32_t kReachesWisp = 1;
inline constexpr std::uint32_t kIsSubject = 2;
inline constexpr std::uint32_t kIsPiece = 4;
inline constexpr std::uint32_t kIsWisp = 8;
inline constexpr std::uint32_t kIsNear = 16;  // near enough to a subject to be kept
inline constexpr std::uint32_t kIsDeep = 32;  // a hole with p < kHole

struct FilterState {
  int most;       // foreground pixels of the component that has most; 0: nothing changes
  int scattered;  // whether there is a piece or a wisp
};

/// The area's network pixels, its scratch, and the blocks between which distances are measured.
struct FilteredArea {
  float* p;  // at the area's first network pixel
  int stride;
  int width;
  int height;
  int side;  // of a block
  int columns;
  int rows;
  int* labels;  // of the components
  int* holes;   // of the holes
  ComponentSum* sums;
  FilterState* state;
  int* blocks;     // 1: a subject touches it
  int* distances;  // to such a block in the row; to any such block
  int* nearest;

  CUTOUT_HD float& at(int x, int y) const { return p[index_of(x, y, stride)]; }
  CUTOUT_HD int label(int x, int y) const { return labels[index_of(x, y, width)]; }
  CUTOUT_HD std::ptrdiff_t block(int x, int y) const {
    return index_of(x / side, y / side, columns);
  }
};

inline constexpr std::size_t kStateInts = sizeof(FilterState) / sizeof(int);
inline constexpr std::size_t kSumInts = sizeof(ComponentSum) / sizeof(int);

inline std::size_t component_scratch(int width, int height) {
  return kStateInts +
         (2 + kSumInts) * static_cast<std::size_t>(width) * static_cast<std::size_t>(height) +
         3 * block_count(width, height);
}

inline FilteredArea filtered_area(float* p, int stride, const Box& box, int* scratch) {
  const auto size = static_cast<std::size_t>(box.width) * static_cast<std::size_t>(box.height);
  FilteredArea area{};
  area.p = p + index_of(box.left, box.top, stride);
  area.stride = stride;
  area.width = box.width;
  area.height = box.height;
  area.side = block_side(box.width, box.height);
  area.columns = ceil_div(box.width, area.side);
  area.rows = ceil_div(box.height, area.side);
  area.state = reinterpret_cast<FilterState*>(scratch);
  area.labels = scratch + kStateInts;
  area.holes = area.labels + size;
  area.sums = reinterpret_cast<ComponentSum*>(area.holes + size);
  area.blocks = area.holes + size + kSumInts * size;
  area.distances = area.blocks + block_count(box.width, box.height);
  area.nearest = area.distances + block_count(box.width, box.height);
  return area;
}

/// 1 within the limits; a NaN is not.
struct WithinLimits {
  FilteredArea area;
  float least;
  float most;

  CUTOUT_HD int operator()(int x, int y) const {
    const float p = area.at(x, y);
    return p >= least && p <= most ? 1 : 0;
  }
};

struct ClearFilter {
  FilteredArea area;

  CUTOUT_HD void operator()(int x, int y) const {
    area.sums[index_of(x, y, area.width)] = {0, 0, 0};
    if (x < area.columns && y < area.rows) area.blocks[index_of(x, y, area.columns)] = 0;
    if (x == 0 && y == 0) *area.state = {0, 0};
  }
};

struct MeasureFound {
  using Sum = ComponentSum;
  FilteredArea area;

  CUTOUT_HD Sum operator()(int x, int y) const {
    const float p = area.at(x, y);
    return {1, p >= kForegroundThreshold ? 1 : 0, p >= kWisp ? kReachesWisp : 0};
  }
};

struct MeasureHoles {
  using Sum = ComponentSum;
  FilteredArea area;

  CUTOUT_HD Sum operator()(int x, int y) const {
    return {0, 1, area.at(x, y) >= kHole ? 0 : kIsDeep};
  }
};

struct FindMost {
  using Part = int;
  FilteredArea area;

  CUTOUT_HD void begin(int& most) const { most = 0; }
  CUTOUT_HD void add(int& most, int x, int y) const {
    const int foreground = area.sums[index_of(x, y, area.width)].second;
    if (foreground > 0) atomic_max(&most, foreground);
  }
  CUTOUT_HD void end(int most) const {
    if (most > 0) atomic_max(&area.state->most, most);
  }
};

/// Which kind of component each root has.
struct FindKinds {
  FilteredArea area;

  CUTOUT_HD void operator()(int x, int y) const {
    const std::ptrdiff_t i = index_of(x, y, area.width);
    if (area.labels[i] != i) return;
    ComponentSum& sum = area.sums[i];
    switch (kind_of(sum.second, (sum.flags & kReachesWisp) != 0, area.state->most)) {
      case Kind::kSubject:
        sum.flags |= kIsSubject;
        break;
      case Kind::kPiece:
        sum.flags |= kIsPiece;
        break;
      case Kind::kWisp:
        sum.flags |= kIsWisp;
        break;
      case Kind::kHaze:
        break;
    }
    sum.second = 0;
    if ((sum.flags & (kIsPiece | kIsWisp)) != 0) atomic_store(&area.state->scattered, 1);
  }
};

struct MarkSubjects {
  FilteredArea area;

  CUTOUT_HD void operator()(int x, int y) const {
    if (area.state->scattered == 0) return;
    const int root = area.label(x, y);
    if (root < 0 || (area.sums[root].flags & kIsSubject) == 0) return;
    atomic_store(&area.blocks[area.block(x, y)], 1);
  }
};

/// Distances of a block, in blocks: the largest distance that is asked for, and what is farther.
CUTOUT_HD int farthest(const FilteredArea& area) {
  return radius_in_blocks(kPieceRadius, area.width, area.height);
}

/// To the nearest block in the row that a subject touches.
struct DistanceInRow {
  FilteredArea area;

  CUTOUT_HD void operator()(int x, int y) const {
    if (area.state->scattered == 0) return;
    const int most = farthest(area);
    int distance = 0;
    for (; distance <= most; ++distance) {
      if (marked(x - distance, y) || marked(x + distance, y)) break;
    }
    area.distances[index_of(x, y, area.columns)] = distance;
  }

 private:
  CUTOUT_HD bool marked(int x, int y) const {
    return x >= 0 && x < area.columns && area.blocks[index_of(x, y, area.columns)] != 0;
  }
};

/// Chebyshev distance to the nearest block that a subject touches.
struct Distance {
  FilteredArea area;

  CUTOUT_HD void operator()(int x, int y) const {
    if (area.state->scattered == 0) return;
    int distance = farthest(area) + 1;
    for (int rows = 0; rows < distance; ++rows) {
      distance = least(distance, rows, x, y - rows);
      distance = least(distance, rows, x, y + rows);
    }
    area.nearest[index_of(x, y, area.columns)] = distance;
  }

 private:
  CUTOUT_HD int least(int distance, int rows, int x, int y) const {
    if (y < 0 || y >= area.rows) return distance;
    const int in_row = area.distances[index_of(x, y, area.columns)];
    const int there = in_row > rows ? in_row : rows;
    return there < distance ? there : distance;
  }
};

struct KeepNear {
  FilteredArea area;

  CUTOUT_HD void operator()(int x, int y) const {
    if (area.state->scattered == 0) return;
    const int root = area.label(x, y);
    if (root < 0) return;
    std::uint32_t& flags = area.sums[root].flags;
    const std::uint32_t now = atomic_load(&flags);
    if ((now & (kIsPiece | kIsWisp)) == 0 || (now & kIsNear) != 0) return;
    const int radius = radius_in_blocks((now & kIsPiece) != 0 ? kPieceRadius : kWispRadius,
                                        area.width, area.height);
    if (area.nearest[area.block(x, y)] <= radius) atomic_or(&flags, kIsNear);
  }
};

struct RemoveOthers {
  FilteredArea area;

  CUTOUT_HD void operator()(int x, int y) const {
    if (area.state->most == 0) return;
    const int root = area.label(x, y);
    if (root >= 0 && (area.sums[root].flags & (kIsSubject | kIsNear)) == 0) area.at(x, y) = 0;
  }
};

/// A hole that is not deep lies in one component that was not removed.
struct FillHoles {
  FilteredArea area;

  CUTOUT_HD void operator()(int x, int y) const {
    if (area.state->most == 0) return;
    const int hole = area.holes[index_of(x, y, area.width)];
    if (hole < 0 || (area.sums[hole].flags & kIsDeep) != 0) return;
    if (is_filled(area.sums[hole].second, area.sums[area.label(x, y)].area)) area.at(x, y) = 1;
  }
};

template <typename Executor>
void filter_components(Executor& on, float* p, int stride, Box box, int* scratch) {
  const FilteredArea area = filtered_area(p, stride, box, scratch);
  const int width = area.width;
  const int height = area.height;
  over_plane(on, width, height, ClearFilter{area});
  label_components(on, WithinLimits{area, kCertainBackground, 1}, width, height, true, area.labels);
  measure_components(on, MeasureFound{area}, width, height, area.labels, area.sums);
  sum_over_plane(on, width, height, FindMost{area});
  over_plane(on, width, height, FindKinds{area});
  over_plane(on, width, height, MarkSubjects{area});
  over_plane(on, area.columns, area.rows, DistanceInRow{area});
  over_plane(on, area.columns, area.rows, Distance{area});
  over_plane(on, width, height, KeepNear{area});
  over_plane(on, width, height, RemoveOthers{area});
  label_components(on, WithinLimits{area, 0, kCertainForeground}, width, height, false, area.holes);
  measure_components(on, MeasureHoles{area}, width, height, area.holes, area.sums);
  over_plane(on, width, height, FillHoles{area});
}

}  // namespace cutout::cuda
