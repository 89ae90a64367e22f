#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "core/large_memory.h"
#include "core/thread_pool.h"
#include "matte/guide.h"
#include "matte/math/pyramid.h"

namespace cutout {

/// One level of the pyramid, kSums planes: weighted sums and weights after the pull phase, means
/// and weights after the push phase.
struct Level {
  int width = 0;
  int height = 0;
  LargeArray<float> values;

  Level(int w, int h) : width(w), height(h) {
    values =
        make_large_array<float>(kSums * static_cast<std::size_t>(w) * static_cast<std::size_t>(h));
  }
  [[nodiscard]] float* row(int plane, int y) const {
    return values.get() + (static_cast<std::ptrdiff_t>(plane) * height + y) * width;
  }
};

/// Rows of a coarser level interpolated to the width of the next finer one: columns `left` ..
/// `left` + `n` - 1 of it, the border repeated. Rows are asked for from top to bottom.
class Widened {
 public:
  static constexpr int kMeans = kSums - 2;  // F r, g, b and squared length, B r, g, b and that

  Widened(const Level& coarse, int fine_width, int left, int n)
      : coarse_(coarse),
        fine_width_(fine_width),
        left_(left),
        first_(left >= 0 ? left / 2 : (left - 1) / 2),
        count_((left + n + 1) / 2 - first_ + 1),
        border_(static_cast<std::size_t>(count_ + 2)),
        stride_(2 * count_) {
    for (Row& row : rows_) row.values.resize(kMeans * static_cast<std::size_t>(stride_));
  }

  /// Mean `c` of row `y` of the coarse level.
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
  int first_;  // first column of the coarser level
  int count_;  // columns of the coarser level
  std::vector<float> border_;
  int stride_;
  std::array<Row, 2> rows_;  // a finer row needs two adjacent ones
};

/// Extrapolates the mean colours of foreground and background and the means of their squared
/// lengths to the level above the guide by a pull-push pyramid (Gortler 1996) of
/// weighted means: every level half the size, weights limited to 1. The weight is v^8 with v =
/// max(0, (a - unknown) / (1 - unknown)), a = alpha for the foreground and 1 - alpha for the
/// background; with `unknown` 1/2 a network pixel of alpha 1/2 has weight 0.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | alpha     | guide.size() numbers in 0..1                                                           |
/// | unknown   | 0 <= unknown < 1                                                                       |
/// | scratch   | 13.4 bytes for each network pixel                                                      |
/// | threads   | rows over the pool; same bytes for any number of threads                               |
/// | agreement | bit-equal to the scalar version                                                        |
Level spread_colours(const Guide& guide, const float* alpha, float unknown, ThreadPool& pool);

}  // namespace cutout
