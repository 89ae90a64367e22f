#include "matte/foreground_colours.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "core/simd.h"
#include "matte/math/foreground_colours.h"
#include "matte/pyramid.h"

namespace cutout {

namespace {

constexpr std::size_t kTileGrain = 4;

constexpr int kSide = kTile + 2 * (kJacobiSteps + 1);
constexpr int kSpare = 16;  // values behind the last that a loop over whole vectors may touch
constexpr int kPatch = kSide * kSide + kSpare;
constexpr int kVector = 16;
static_assert((kSide - 2) % kVector == 0);

/// A tile and the border its result depends on: colour, alpha, then F and B twice, planes of
/// kPatch. Not initialised.
struct Patches {
  float colour[3][kPatch];
  float alpha[kPatch];
  float layers[2][6][kPatch];  // before and after a step: F r, g, b, B r, g, b
};

/// Used columns and rows of a patch.
struct Extent {
  int across;
  int down;
};

/// What a tile's result depends on; without the outermost columns a whole number of vectors. Values
/// outside of what a step needs have no influence on the result.
Extent extent_of(const Tile& tile) {
  const int inner = tile.right - tile.left + 2 * kJacobiSteps;
  return {(inner + kVector - 1) / kVector * kVector + 2,
          tile.bottom - tile.top + 2 * (kJacobiSteps + 1)};
}

CUTOUT_SIMD void jacobi(const float* __restrict colour, const float* __restrict alpha,
                        const float* __restrict from, const Extent& extent, int inset,
                        float* __restrict to) {
  const int inner = extent.across - 2;
  for (int j = inset; j < extent.down - inset; ++j) {
#pragma GCC ivdep  // planes lie apart
    for (int at = j * kSide + 1; at < j * kSide + 1 + inner; ++at) {
      const float a = alpha[at];
      const Neighbours w{weight_between(a, alpha[at - 1]), weight_between(a, alpha[at + 1]),
                         weight_between(a, alpha[at - kSide]),
                         weight_between(a, alpha[at + kSide])};
      const System m = system_of(a, w);
      for (int c = 0; c < 3; ++c) {
        const float* fore = from + c * kPatch + at;
        const float* back = from + (c + 3) * kPatch + at;
        const float own = colour[c * kPatch + at];
        const float b0 = right_side(a * own, w, {fore[-1], fore[1], fore[-kSide], fore[kSide]});
        const float b1 =
            right_side((1.0F - a) * own, w, {back[-1], back[1], back[-kSide], back[kSide]});
        to[c * kPatch + at] = solve_fore(m, b0, b1);
        to[(c + 3) * kPatch + at] = solve_back(m, b0, b1);
      }
    }
  }
}

CUTOUT_SIMD void scale_row(float* __restrict row, float scale, float offset, int n) {
  for (int i = 0; i < n; ++i) row[i] = row[i] * scale + offset;
}

/// First estimates of both layers in one channel.
CUTOUT_SIMD void guess_row(const float* __restrict alpha, const float* __restrict colour,
                           const float* const* fore_rows, const float* const* back_rows, int n,
                           float* __restrict fore, float* __restrict back) {
  const float* __restrict fore_near = fore_rows[0];
  const float* __restrict fore_far = fore_rows[1];
  const float* __restrict back_near = back_rows[0];
  const float* __restrict back_far = back_rows[1];
  for (int i = 0; i < n; ++i) {
    fore[i] = first_guess(colour[i], power8(alpha[i]), interpolate(fore_near[i], fore_far[i]));
    back[i] =
        first_guess(colour[i], power8(1.0F - alpha[i]), interpolate(back_near[i], back_far[i]));
  }
}

void solve_tile(const Guide& guide, const float* alpha, const Level& coarse, const Tile& tile,
                Patches& at, LayerColours& out) {
  const Extent extent = extent_of(tile);
  const int n = extent.across;
  const int left = tile.left - kJacobiSteps - 1;
  Widened widened(coarse, guide.width, left, n);
  for (int j = 0; j < extent.down; ++j) {
    const int y = std::clamp(tile.top - kJacobiSteps - 1 + j, 0, guide.height - 1);
    const CoarseTaps v = coarse_taps(y, coarse.height);
    const std::size_t row = guide.at(0, y);
    const int k = j * kSide;
    copy_padded(alpha + row, guide.width, left, n, at.alpha + k);
    for (int c = 0; c < 3; ++c) {
      const auto channel = static_cast<std::size_t>(c);
      copy_padded(guide.planes[channel] + row, guide.width, left, n, at.colour[c] + k);
      scale_row(at.colour[c] + k, guide.scale[channel], guide.offset[channel], n);
      const float* fore[2] = {widened.row(c, v.near), widened.row(c, v.far)};
      const float* back[2] = {widened.row(c + kWeight, v.near), widened.row(c + kWeight, v.far)};
      guess_row(at.alpha + k, at.colour[c] + k, fore, back, n, at.layers[0][c] + k,
                at.layers[0][c + 3] + k);
    }
  }
  for (int step = 0; step < kJacobiSteps; ++step) {
    jacobi(at.colour[0], at.alpha, at.layers[step % 2][0], extent, step + 1,
           at.layers[(step + 1) % 2][0]);
  }
  const auto& result = at.layers[kJacobiSteps % 2];
  for (int y = tile.top; y < tile.bottom; ++y) {
    const int k = (y - tile.top + kJacobiSteps + 1) * kSide + kJacobiSteps + 1;
    const std::size_t bytes = static_cast<std::size_t>(tile.right - tile.left) * sizeof(float);
    for (std::size_t c = 0; c < 3; ++c) {
      std::memcpy(out.fore[c].get() + guide.at(tile.left, y), result[c] + k, bytes);
      std::memcpy(out.back[c].get() + guide.at(tile.left, y), result[c + 3] + k, bytes);
    }
  }
}

}  // namespace

LayerColours estimate_colours(const Guide& guide, const float* alpha,
                              const std::vector<Tile>& tiles, ThreadPool& pool) {
  LayerColours colours;
  for (auto* layer : {&colours.fore, &colours.back}) {
    for (LargeArray<float>& plane : *layer) plane = make_large_array<float>(guide.size());
  }
  if (tiles.empty()) return colours;
  const Level coarse = spread_colours(guide, alpha, 0.0F, pool);
  pool.parallel_for(tiles.size(), kTileGrain, [&](std::size_t begin, std::size_t end) {
    const auto patches = std::make_unique_for_overwrite<Patches>();
    for (std::size_t i = begin; i < end; ++i) {
      solve_tile(guide, alpha, coarse, tiles[i], *patches, colours);
    }
  });
  return colours;
}

}  // namespace cutout
