#pragma once

#include "cuda/kernel.h"
#include "cuda/table.h"
#include "matte/math/local_model.h"

namespace cutout::cuda {

CUTOUT_HD float centred_colour(const GuidePlanes& guide, int c, std::ptrdiff_t index) {
  return guide.planes[c][index] * guide.scale[c] + (guide.offset[c] - kModelMiddle);
}

/// Plane kA0 .. kB of matte/local_model.h at every network pixel.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | out       | kPlaneChannels planes of the guide's size                                            |
/// | agreement | bit-equal to LocalModel                                                              |
struct LocalModels {
  static constexpr int kWidth = 32;
  static constexpr int kHeight = 4;
  static constexpr int kPhases = 3;
  static constexpr int kColumns = kWidth + 2 * kModelRadius;
  static constexpr int kRows = kHeight + 2 * kModelRadius;
  static constexpr int kProducts = window::kProducts;
  struct Shared {
    float products[kProducts][kRows][kColumns];
    float along[kProducts][kRows][kWidth];  // sums of seven products of a row
  };

  GuidePlanes guide;
  const float* alpha;
  float* out;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& shared) const {
    const int left = at.block_x * kWidth;
    const int top = at.block_y * kHeight;
    const int thread = at.thread_y * kWidth + at.thread_x;
    if constexpr (kPhase == 0) {
      for (int i = thread; i < kRows * kColumns; i += kWidth * kHeight) {
        const int row = i / kColumns;
        const int column = i % kColumns;
        const int x = clamp(left - kModelRadius + column, 0, guide.width - 1);
        const int y = clamp(top - kModelRadius + row, 0, guide.height - 1);
        const std::ptrdiff_t index = index_of(x, y, guide.width);
        plane_products(centred_colour(guide, 0, index), centred_colour(guide, 1, index),
                       centred_colour(guide, 2, index), alpha[index] - kModelMiddle,
                       &shared.products[0][row][column], kRows * kColumns);
      }
    } else if constexpr (kPhase == 1) {
      for (int i = thread; i < kRows * kWidth; i += kWidth * kHeight) {
        const int row = i / kWidth;
        const int column = i % kWidth;
        for (int k = 0; k < kProducts; ++k) {
          const float* from = &shared.products[k][row][column];
          shared.along[k][row][column] =
              sum7(from[0], from[1], from[2], from[3], from[4], from[5], from[6]);
        }
      }
    } else {
      const int x = left + at.thread_x;
      const int y = top + at.thread_y;
      if (x >= guide.width || y >= guide.height) return;
      float sums[kProducts];
      for (int k = 0; k < kProducts; ++k) {
        const auto row = [&](int j) { return shared.along[k][at.thread_y + j][at.thread_x]; };
        sums[k] = sum7(row(0), row(1), row(2), row(3), row(4), row(5), row(6));
      }
      float model[kPlaneChannels];
      solve_plane(sums, 1, model, 1);
      const std::ptrdiff_t plane = index_of(0, guide.height, guide.width);
      for (int k = 0; k < kPlaneChannels; ++k) {
        out[k * plane + index_of(x, y, guide.width)] = model[k];
      }
    }
  }
};

template <typename Executor>
void local_models(Executor& on, GuidePlanes guide, const float* alpha, float* models) {
  cover_plane(on, guide.width, guide.height, LocalModels{guide, alpha, models});
}

}  // namespace cutout::cuda
