#include "matte/uncertainty.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstddef>

#include "core/simd.h"
#include "matte/math/uncertainty.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 16;  // rows of blocks
constexpr int kColumns = 512;       // measured together

/// Adds a row of blocks, at most kColumns wide, whose first value is at `p`.
CUTOUT_SIMD void add_blocks(const float* p, std::ptrdiff_t stride, int columns, int rows, int block,
                            UncertaintySums& sums) {
  std::array<int, kColumns> least;
  std::fill_n(least.begin(), columns, INT_MAX);
  int total = 0;
  for (int y = 0; y < rows; ++y, p += stride) {
    int of_row = 0;
    for (int x = 0; x < columns; ++x) {
      const int steps = probability_steps(p[x]);
      total += steps;
      const int value = variance(steps);
      of_row += value;
      least[static_cast<std::size_t>(x)] =
          value < least[static_cast<std::size_t>(x)] ? value : least[static_cast<std::size_t>(x)];
    }
    sums.variance += static_cast<unsigned long long>(of_row);
  }
  sums.probability += static_cast<unsigned long long>(total);
  for (int x = 0; x < columns; x += block) {
    const int end = std::min(columns, x + block);
    const int value = *std::min_element(least.begin() + x, least.begin() + end);
    sums.patches +=
        static_cast<unsigned long long>(value) * static_cast<unsigned long long>(rows * (end - x));
  }
}

}  // namespace

Uncertainty uncertainty(std::span<const float> p, int width, const Box& area, ThreadPool& pool) {
  const int height = static_cast<int>(p.size()) / width;
  const int block = uncertainty_block(width, height);
  const int columns = std::max(1, kColumns / block) * block;
  std::atomic<unsigned long long> probability{0};
  std::atomic<unsigned long long> variance{0};
  std::atomic<unsigned long long> patches{0};
  const int block_rows = (area.height + block - 1) / block;
  pool.parallel_for(
      static_cast<std::size_t>(block_rows), kGrain, [&](std::size_t begin, std::size_t end) {
        UncertaintySums sums{};
        for (std::size_t i = begin; i < end; ++i) {
          const int y = static_cast<int>(i) * block;
          const float* const row =
              p.data() + static_cast<std::ptrdiff_t>(area.top + y) * width + area.left;
          const int rows = std::min(block, area.height - y);
          for (int x = 0; x < area.width; x += columns) {
            add_blocks(row + x, width, std::min(columns, area.width - x), rows, block, sums);
          }
        }
        probability += sums.probability;
        variance += sums.variance;
        patches += sums.patches;
      });
  return uncertainty_of({probability, variance, patches});
}

}  // namespace cutout
