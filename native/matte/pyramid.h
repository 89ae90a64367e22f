#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/simd.h"
#include "core/thread_pool.h"
#include "matte/grid.h"

namespace cutout {

/// Premultiplied colour sums and weight of both layers: F r, g, b, w, then B r, g, b, w.
constexpr int kSums = 8;

/// One level of the pyramid: kSums planes on the way down, of which the weights' planes stay and
/// the colours' become the layers' colours on the way up.
struct Level {
  int width = 0;
  int height = 0;
  std::unique_ptr<float[]> values;

  Level(int w, int h) : width(w), height(h) {
    values = std::make_unique_for_overwrite<float[]>(kSums * static_cast<std::size_t>(w) *
                                                     static_cast<std::size_t>(h));
  }
  [[nodiscard]] float* row(int plane, int y) const {
    return values.get() + (static_cast<std::ptrdiff_t>(plane) * height + y) * width;
  }
};

CUTOUT_INLINE float power8(float v) {
  const float v2 = v * v;
  const float v4 = v2 * v2;
  return v4 * v4;
}

/// Where cell x of a level lies in the next coarser one: the nearer cell and the other.
struct Half {
  int near;
  int far;
};

inline Half half_of(int x, int coarse) {
  const int near = x / 2;
  const int far = std::clamp(x % 2 == 0 ? near - 1 : near + 1, 0, coarse - 1);
  return {near, far};
}

CUTOUT_INLINE float between_cells(float near, float far) { return 0.75F * near + 0.25F * far; }

/// Colour `plane` of a finer cell (x, y) as the coarser level has it.
inline float from_coarse(const Level& coarse, int plane, int x, int y) {
  const Half h = half_of(x, coarse.width);
  const Half v = half_of(y, coarse.height);
  const float* near = coarse.row(plane, v.near);
  const float* far = coarse.row(plane, v.far);
  return between_cells(between_cells(near[h.near], near[h.far]),
                       between_cells(far[h.near], far[h.far]));
}

/// The colours of a coarser level at the width of the next finer one, columns `left` ..
/// `left` + `n` - 1 of it (the border repeated), row by row downwards.
class Widened {
 public:
  static constexpr int kColours = 6;  // F r, g, b, B r, g, b

  Widened(const Level& coarse, int fine_width, int left, int n)
      : coarse_(coarse),
        fine_width_(fine_width),
        left_(left),
        first_(left >= 0 ? left / 2 : (left - 1) / 2),
        cells_((left + n + 1) / 2 - first_ + 1),
        border_(static_cast<std::size_t>(cells_ + 2)),
        stride_(2 * cells_) {
    for (Row& row : rows_) row.values.resize(kColours * static_cast<std::size_t>(stride_));
  }

  /// Colour `c` of row `y` of the coarse level.
  const float* row(int c, int y) {
    Row& row = rows_[static_cast<std::size_t>(y) % rows_.size()];
    if (row.index != y) fill(row, y);
    return row.values.data() + c * stride_ + (left_ - 2 * first_);
  }

 private:
  struct Row {
    int index = -1;
    std::vector<float> values;
  };

  void fill(Row& row, int y);

  const Level& coarse_;
  int fine_width_;
  int left_;
  int first_;  // coarse cell
  int cells_;  // coarse cells
  std::vector<float> border_;
  int stride_;
  std::array<Row, 2> rows_;  // the two of a finer row are neighbours
};

/// Colours of foreground and background at every cell of the level above the guide, from the
/// nearest cells whose alpha tells of them: a pyramid of weighted means, every level half the size,
/// a level's weights at most 1. Weights are v^8, v how far alpha (for the background 1 - alpha)
/// lies from `unknown` to 1, from 0: all of it where `unknown` is 0; with 1/2 a cell of alpha 1/2
/// tells nothing.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | alpha     | guide.cells() numbers in 0..1                                                          |
/// | unknown   | 0 .. below 1                                                                           |
/// | scratch   | 10.7 bytes a cell                                                                      |
/// | threads   | rows over the pool; same bytes for any number of threads                               |
/// | agreement | bit-equal to the scalar version                                                        |
Level spread_colours(const Guide& guide, const float* alpha, float unknown, ThreadPool& pool);

/// The same, cell by cell.
Level spread_colours_scalar(const Guide& guide, const float* alpha, float unknown);

}  // namespace cutout
