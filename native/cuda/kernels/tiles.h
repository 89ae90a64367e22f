#pragma once

#include <climits>
#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/table.h"
#include "matte/math/blur_estimate.h"
#include "matte/math/deblur.h"
#include "matte/math/local_model.h"
#include "matte/math/matting_energy.h"
#include "matte/math/stencil.h"
#include "matte/math/tile.h"

namespace cutout::cuda {

// What the kernels of deblurring (deblur.h) share: a block works on a tile of kTile x kTile network
// pixels, a thread on each of these; tiles that have nothing to do return at once.

/// The part of a tile that holds all its uncertain network pixels, as a tile of matte/tiles.h.
struct Tile {
  int left;
  int top;
  int right;  // not more than `left` without uncertain network pixels
  int bottom;
  std::uint32_t near;  // 1: an uncertain network pixel is in it or within kModelRadius

  CUTOUT_HD bool active() const { return right > left; }
  CUTOUT_HD bool holds(int x, int y) const {
    return x >= left && x < right && y >= top && y < bottom;
  }
  CUTOUT_HD std::uint32_t area() const {
    return active() ? static_cast<std::uint32_t>((right - left) * (bottom - top)) : 0U;
  }
};

/// What one step of the search leaves to the next.
struct Search {
  float blur[kBlurRadius + 1];  // weights
  float blur_diagonal;
  float step;  // along the direction
  float beta;  // of the direction that stays
  std::uint32_t running;
  double rz;         // residual x residual / diagonal
  double tolerance;  // rz at which the steps end
};

/// The planes of a matte's size, and the tiles, in the caller's scratch.
struct DeblurPlanes {
  int width;
  int height;
  int tiles_across;
  int tiles_down;

  Search* search;
  double* sums;  // of each tile
  double* rows;  // of each row of tiles
  Tile* tiles;
  std::uint32_t* slopes;  // number of slopes in each bin
  float* start;
  float* direction;
  float* residual;
  float* product;  // of the Hessian and the direction; then the conditioned residual
  float* fineness;
  float* count;    // mean fineness of the windows that a network pixel is in
  float* windows;  // kWindowPlanes: means, factors
  float* fits;     // kFitPlanes: f times the slopes and offsets of windows; then mean squares
  std::uint8_t* uncertain;

  static constexpr int kWindowPlanes = 9;
  static constexpr int kFitPlanes = 4;
  static constexpr int kFloatPlanes = 6 + kWindowPlanes + kFitPlanes;

  CUTOUT_HD std::ptrdiff_t size() const { return index_of(0, height, width); }
  CUTOUT_HD std::ptrdiff_t at(int x, int y) const { return index_of(x, y, width); }
  /// Beyond the image the border is repeated.
  CUTOUT_HD std::ptrdiff_t clamped(int x, int y) const {
    return at(clamp(x, 0, width - 1), clamp(y, 0, height - 1));
  }
  CUTOUT_HD const Tile& tile_of(int x, int y) const {
    return tiles[y / kTile * tiles_across + x / kTile];
  }
  CUTOUT_HD bool inside(int x, int y) const { return x >= 0 && y >= 0 && x < width && y < height; }
};

inline DeblurPlanes deblur_planes(int width, int height, void* scratch) {
  DeblurPlanes planes{};
  planes.width = width;
  planes.height = height;
  planes.tiles_across = ceil_div(width, kTile);
  planes.tiles_down = ceil_div(height, kTile);
  const std::ptrdiff_t tiles = index_of(0, planes.tiles_down, planes.tiles_across);
  const std::ptrdiff_t size = planes.size();
  // From the largest alignment to the smallest.
  planes.search = static_cast<Search*>(scratch);
  planes.sums = reinterpret_cast<double*>(planes.search + 1);
  planes.rows = planes.sums + tiles;
  planes.tiles = reinterpret_cast<Tile*>(planes.rows + planes.tiles_down);
  planes.slopes = reinterpret_cast<std::uint32_t*>(planes.tiles + tiles);
  planes.start = reinterpret_cast<float*>(planes.slopes + kSlopes);
  planes.direction = planes.start + size;
  planes.residual = planes.direction + size;
  planes.product = planes.residual + size;
  planes.fineness = planes.product + size;
  planes.count = planes.fineness + size;
  planes.windows = planes.count + size;
  planes.fits = planes.windows + DeblurPlanes::kWindowPlanes * size;
  planes.uncertain = reinterpret_cast<std::uint8_t*>(planes.fits + DeblurPlanes::kFitPlanes * size);
  return planes;
}

/// Bytes of the scratch of deblurring.
inline std::size_t deblur_scratch(int width, int height) {
  const auto size = static_cast<std::size_t>(index_of(0, height, width));
  const auto down = static_cast<std::size_t>(ceil_div(height, kTile));
  const std::size_t tiles = down * static_cast<std::size_t>(ceil_div(width, kTile));
  return sizeof(Search) + (tiles + down) * sizeof(double) + tiles * sizeof(Tile) +
         kSlopes * sizeof(std::uint32_t) + size * DeblurPlanes::kFloatPlanes * sizeof(float) +
         size * sizeof(std::uint8_t);
}

/// What a kernel on tiles begins with: a thread for each network pixel of one.
struct OnTiles {
  static constexpr int kWidth = kTile;
  static constexpr int kHeight = kTile;
  DeblurPlanes planes;
};

/// The smallest and the largest of `value(index)` of a network pixel and its neighbours, within
/// 0..1; beyond the image the border is repeated.
struct Extremes {
  float least = 1.0F;
  float most = 0.0F;

  template <typename Value>
  CUTOUT_HD Extremes(const DeblurPlanes& planes, int x, int y, const Value& value) {
    for (int j = -1; j <= 1; ++j) {
      for (int i = -1; i <= 1; ++i) {
        const float each = value(planes.clamped(x + i, y + j));
        least = each < least ? each : least;
        most = each > most ? each : most;
      }
    }
  }
};

/// The place of a thread in a kernel on tiles.
struct TileThread {
  int index;  // of the tile
  int left;   // of the tile
  int top;
  int x;  // the thread's network pixel
  int y;
  int number;  // of the thread

  CUTOUT_HD TileThread(const ThreadIndex& at, const DeblurPlanes& planes)
      : index(at.block_y * planes.tiles_across + at.block_x),
        left(at.block_x * kTile),
        top(at.block_y * kTile),
        x(left + at.thread_x),
        y(top + at.thread_y),
        number(at.thread_y * kTile + at.thread_x) {}
};

/// Shares the elements of an array of kRows x kColumns out to a block's threads: body(row, column).
template <int kRows, int kColumns, typename Body>
CUTOUT_HD void share_out(const TileThread& thread, const Body& body) {
  for (int i = thread.number; i < kRows * kColumns; i += kTile * kTile) {
    body(i / kColumns, i % kColumns);
  }
}

/// A tile's sum, in the order of matte/deblur.cc: phase 0 by the first kSumLanes threads, phase 1
/// by the first one. `values`: of the tile, read in its uncertain part.
template <int kPhase>
CUTOUT_HD void sum_tile(const TileThread& thread, const Tile& tile,
                        const float (&values)[kTile][kTile], float (&lanes)[kSumLanes],
                        double* sum) {
  if constexpr (kPhase == 0) {
    if (thread.number >= kSumLanes) return;
    float lane = 0;
    for (int y = tile.top; y < tile.bottom; ++y) {
      for (int x = tile.left + thread.number; x < tile.right; x += kSumLanes) {
        lane += values[y - thread.top][x - thread.left];
      }
    }
    lanes[thread.number] = lane;
  } else {
    if (thread.number == 0) *sum = sum_of_lanes(lanes);
  }
}

}  // namespace cutout::cuda
