#pragma once

#include <climits>

#include "cuda/kernel.h"

namespace cutout::cuda {

/// Connected components of a plane by union-find: matte/connected_components.h.
///
/// A network pixel's label is the index of one before it in its component, or its own: a forest
/// whose roots are the first network pixels of the components, so that labels do not depend on the
/// order of blocks and threads. Labels only decrease, and a lower one is of the same component; a
/// thread that reads an old one takes a longer way.
///
/// `Class` is a functor: a network pixel's class, 0 where it belongs to no component. Components
/// are connected network pixels of one class.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | size      | width * height < 2^31                                                                |
/// | labels    | as many ints; -1 where there is no component                                         |

CUTOUT_HD int root_of(int* labels, int i) {
  int next = atomic_load(&labels[i]);
  while (next != i) {
    const int beyond = atomic_load(&labels[next]);
    if (beyond == next) return next;
    atomic_min(&labels[i], beyond);
    i = beyond;
    next = atomic_load(&labels[i]);
  }
  return i;
}

CUTOUT_HD void unite(int* labels, int a, int b) {
  for (;;) {
    a = root_of(labels, a);
    b = root_of(labels, b);
    if (a == b) return;
    const int high = a > b ? a : b;
    const int low = a > b ? b : a;
    const int before = atomic_min(&labels[high], low);
    if (before == high) return;
    // Another thread has given it a label meanwhile, which has to be joined with `low` too.
    a = before;
    b = low;
  }
}

/// Begins with the first network pixel of the same class and block in the row.
template <typename Class>
struct LabelRows {
  static constexpr int kWidth = 32;
  static constexpr int kHeight = 8;
  static constexpr int kPhases = 2;
  struct Shared {
    int classes[kHeight][kWidth];
  };

  Class class_of;
  int width;
  int height;
  int* labels;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& shared) const {
    const int x = at.block_x * kWidth + at.thread_x;
    const int y = at.block_y * kHeight + at.thread_y;
    if (x >= width || y >= height) return;
    int* const row = shared.classes[at.thread_y];
    if constexpr (kPhase == 0) {
      row[at.thread_x] = class_of(x, y);
    } else {
      int first = at.thread_x;
      while (first > 0 && row[first - 1] == row[at.thread_x]) --first;
      const int i = static_cast<int>(index_of(x, y, width));
      labels[i] = row[at.thread_x] == 0 ? -1 : i - (at.thread_x - first);
    }
  }
};

/// Joins each network pixel with its neighbours, but for those that others join with it.
template <typename Class>
struct JoinNeighbours {
  Class class_of;
  int width;
  bool corners;  // whether network pixels that touch at a corner are neighbours
  int* labels;

  CUTOUT_HD void operator()(int x, int y) const {
    const int own = class_of(x, y);
    if (own == 0) return;
    const auto i = static_cast<int>(index_of(x, y, width));
    const bool left = x > 0 && class_of(x - 1, y) == own;
    if (left && x % LabelRows<Class>::kWidth == 0) unite(labels, i, i - 1);
    if (y == 0) return;
    const bool above_left = x > 0 && class_of(x - 1, y - 1) == own;
    if (class_of(x, y - 1) == own) {
      if (!left || !above_left) unite(labels, i, i - width);
      return;
    }
    if (!corners) return;
    if (above_left && !left) unite(labels, i, i - width - 1);
    const bool last = x + 1 == width;
    if (!last && class_of(x + 1, y - 1) == own && class_of(x + 1, y) != own) {
      unite(labels, i, i - width + 1);
    }
  }
};

/// The labels of all network pixels become roots.
struct Flatten {
  int width;
  int* labels;

  CUTOUT_HD void operator()(int x, int y) const {
    const auto i = static_cast<int>(index_of(x, y, width));
    if (atomic_load(&labels[i]) >= 0) atomic_store(&labels[i], root_of(labels, i));
  }
};

template <typename Executor, typename Class>
void label_components(Executor& on, const Class& class_of, int width, int height, bool corners,
                      int* labels) {
  cover_plane(on, width, height, LabelRows<Class>{class_of, width, height, labels});
  over_plane(on, width, height, JoinNeighbours<Class>{class_of, width, corners, labels});
  over_plane(on, width, height, Flatten{width, labels});
}

/// Adds up what the network pixels of each component measure, at its root. `Measure` is a functor
/// of a network pixel; what it returns has `add_to(Sum*)`, which adds to a sum of several threads
/// (`Sum`: Measure::Sum, which begins as Sum{}). Network pixels of the first component of a block
/// are added up in the block, so that large components are seldom waited for.
template <typename Measure>
struct MeasureComponents {
  static constexpr int kWidth = 32;
  static constexpr int kHeight = 8;
  static constexpr int kPhases = 4;
  using Sum = typename Measure::Sum;
  struct Shared {
    int root;
    Sum sum;
  };

  Measure measure;
  int width;
  int height;
  const int* labels;
  Sum* sums;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& shared) const {
    const bool first = at.thread_x == 0 && at.thread_y == 0;
    if constexpr (kPhase == 0) {
      if (first) {
        shared.root = INT_MAX;
        shared.sum = Sum{};
      }
    } else if constexpr (kPhase == 3) {
      if (first && shared.root != INT_MAX) shared.sum.add_to(&sums[shared.root]);
    } else {
      const int x = at.block_x * kWidth + at.thread_x;
      const int y = at.block_y * kHeight + at.thread_y;
      if (x >= width || y >= height) return;
      const int root = labels[index_of(x, y, width)];
      if (root < 0) return;
      if constexpr (kPhase == 1) {
        atomic_min(&shared.root, root);
      } else {
        measure(x, y).add_to(root == shared.root ? &shared.sum : &sums[root]);
      }
    }
  }
};

template <typename Executor, typename Measure>
void measure_components(Executor& on, const Measure& measure, int width, int height,
                        const int* labels, typename Measure::Sum* sums) {
  cover_plane(on, width, height, MeasureComponents<Measure>{measure, width, height, labels, sums});
}

}  // namespace cutout::cuda
