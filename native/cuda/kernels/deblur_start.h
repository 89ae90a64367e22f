#pragma once

#include "cuda/kernels/tiles.h"

namespace cutout::cuda {

/// Start values of every network pixel.
struct BeginMatte {
  DeblurPlanes planes;
  const float* p;
  float* alpha;
  float* confidence;

  CUTOUT_HD void operator()(int x, int y) const {
    const Extremes around(planes, x, y, [&](std::ptrdiff_t at) { return snap(p[at]); });
    const bool is_uncertain = deblur::is_uncertain(around.least, around.most);
    const std::ptrdiff_t at = planes.at(x, y);
    const float start = is_uncertain ? clamp01(p[at]) : snap(p[at]);
    planes.uncertain[at] = is_uncertain ? 1 : 0;
    planes.start[at] = start;
    planes.direction[at] = 0.0F;
    planes.fineness[at] = 0.0F;
    alpha[at] = start;
    confidence[at] = 0.0F;
  }
};

struct ClearSlopes {
  std::uint32_t* slopes;

  CUTOUT_HD void operator()(int x, int) const { slopes[x] = 0; }
};

/// Tiles, and the number of the output's slopes in each bin, which is 0 before.
struct FindTiles : OnTiles {
  static constexpr int kPhases = 3;
  struct Shared {
    Tile tile;
    std::uint32_t slopes[kSlopes];
  };
  static_assert(kSlopes <= kWidth * kHeight);

  const float* p;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& shared) const {
    const TileThread thread(at, planes);
    if constexpr (kPhase == 0) {
      if (thread.number < kSlopes) shared.slopes[thread.number] = 0;
      if (thread.number == 0) shared.tile = {INT_MAX, INT_MAX, 0, 0, 0};
    } else if constexpr (kPhase == 1) {
      share_out<kTile + 2 * kModelRadius, kTile + 2 * kModelRadius>(thread, [&](int j, int i) {
        const int x = thread.left + i - kModelRadius;
        const int y = thread.top + j - kModelRadius;
        if (planes.inside(x, y) && planes.uncertain[planes.at(x, y)] != 0) {
          atomic_or(&shared.tile.near, 1);
        }
      });
      if (planes.inside(thread.x, thread.y)) see(thread.x, thread.y, shared);
    } else {
      const std::uint32_t* const own = shared.slopes;
      if (thread.number < kSlopes && own[thread.number] != 0) {
        atomic_add(planes.slopes + thread.number, own[thread.number]);
      }
      if (thread.number != 0) return;
      planes.tiles[thread.index] = shared.tile;
      planes.sums[thread.index] = 0;
    }
  }

 private:
  CUTOUT_HD void see(int x, int y, Shared& shared) const {
    const std::ptrdiff_t at = planes.at(x, y);
    if (planes.uncertain[at] != 0) {
      atomic_min(&shared.tile.left, x);
      atomic_min(&shared.tile.top, y);
      atomic_max(&shared.tile.right, x + 1);
      atomic_max(&shared.tile.bottom, y + 1);
    }
    if (x == 0 || y == 0 || x == planes.width - 1 || y == planes.height - 1) return;
    const int slope = slope_at(p + at, planes.width);
    if (slope >= 0) atomic_add(shared.slopes + slope, 1);
  }
};

/// Chooses the blur, and says where the steps end. One block.
struct BeginSearch {
  static constexpr int kWidth = 256;
  static constexpr int kHeight = 1;
  static constexpr int kPhases = 2;
  struct Shared {
    std::uint32_t slopes[kSlopes];
    std::uint32_t areas[kWidth];
  };

  DeblurPlanes planes;
  const float* blurs;  // weights by slope, from -1 on

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& shared) const {
    if constexpr (kPhase == 0) {
      for (int i = at.thread_x; i < kSlopes; i += kWidth) shared.slopes[i] = planes.slopes[i];
      std::uint32_t area = 0;
      for (int i = at.thread_x; i < planes.tiles_across * planes.tiles_down; i += kWidth) {
        area += planes.tiles[i].area();
      }
      shared.areas[at.thread_x] = area;
    } else if (at.thread_x == 0) {
      std::uint32_t pixels = 0;
      for (int i = 0; i < kWidth; ++i) pixels += shared.areas[i];
      const float* const weights = blurs + (used_slope(shared.slopes) + 1) * (kBlurRadius + 1);
      Search& search = *planes.search;
      for (int i = 0; i <= kBlurRadius; ++i) search.blur[i] = weights[i];
      search.blur_diagonal = energy::blur_diagonal(weights);
      search.step = 0.0F;
      search.beta = 0.0F;
      search.tolerance = deblur::tolerance(pixels);
      search.running = 1;
      search.rz = 0;
    }
  }
};

}  // namespace cutout::cuda
