#pragma once

#include "cuda/kernels/tiles.h"

namespace cutout::cuda {

// The steps of minimise in matte/matting_energy.h. Whether they go on is decided on the device: the
// kernels of steps behind the last one do nothing.

/// A step along the direction; the conditioned residual goes to the product, its sum of products
/// with the residual to the sums. The first one has no direction.
template <bool kFirst>
struct Advance : OnTiles {
  struct Shared {
    float products[kTile][kTile];
    float lanes[kSumLanes];
  };
  static constexpr int kPhases = 3;

  const float* sample_confidence;
  float* alpha;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& s) const {
    const TileThread thread(at, planes);
    const Tile& tile = planes.tiles[thread.index];
    if (planes.search->running == 0 || !tile.active()) return;
    if constexpr (kPhase > 0) {
      sum_tile<kPhase - 1>(thread, tile, s.products, s.lanes, planes.sums + thread.index);
    } else if (tile.holds(thread.x, thread.y)) {
      const std::ptrdiff_t index = planes.at(thread.x, thread.y);
      const float step = kFirst ? 0.0F : planes.search->step;
      const float product = step == 0.0F ? 0.0F : planes.product[index];
      alpha[index] += step * planes.direction[index];
      const float residual = planes.residual[index] - step * product;
      const float conditioned =
          residual / energy::diagonal(sample_confidence[index], planes.fineness[index],
                                      planes.count[index], planes.search->blur_diagonal);
      planes.residual[index] = residual;
      planes.product[index] = conditioned;
      s.products[at.thread_y][at.thread_x] = residual * conditioned;
    }
  }
};

struct NextDirection {
  DeblurPlanes planes;

  CUTOUT_HD void operator()(int x, int y) const {
    if (planes.search->running == 0 || !planes.tile_of(x, y).holds(x, y)) return;
    const std::ptrdiff_t index = planes.at(x, y);
    planes.direction[index] = planes.product[index] + planes.search->beta * planes.direction[index];
  }
};

/// What the sum of all tiles says.
enum class Total { kFirstRz, kCurvature, kRz };

/// Adds the tiles' sums, row by row, and goes on or ends the search. One block.
template <Total kTotal>
struct Conclude {
  static constexpr int kWidth = 256;
  static constexpr int kHeight = 1;
  static constexpr int kPhases = 2;
  using Shared = NothingShared;

  DeblurPlanes planes;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared&) const {
    if constexpr (kPhase == 0) {
      if (planes.search->running == 0) return;
      for (int row = at.thread_x; row < planes.tiles_down; row += kWidth) {
        double sum = 0;
        for (int i = 0; i < planes.tiles_across; ++i) {
          sum += planes.sums[row * planes.tiles_across + i];
        }
        planes.rows[row] = sum;
      }
    } else if (at.thread_x == 0) {
      Search& search = *planes.search;
      if (search.running == 0) return;
      double sum = 0;
      for (int row = 0; row < planes.tiles_down; ++row) sum += planes.rows[row];
      conclude(search, sum);
    }
  }

 private:
  CUTOUT_HD static void conclude(Search& search, double sum) {
    if constexpr (kTotal == Total::kCurvature) {
      if (sum > 0) {
        search.step = static_cast<float>(search.rz / sum);
      } else {
        search.running = 0;
      }
    } else {
      if constexpr (kTotal == Total::kRz) {
        search.beta = static_cast<float>(sum / search.rz);
      }
      search.rz = sum;
      if (!(sum > search.tolerance)) search.running = 0;
    }
  }
};

}  // namespace cutout::cuda
