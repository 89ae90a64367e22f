#pragma once

#include <array>
#include <cstddef>

#include "matte/guide.h"
#include "matte/math/stencil.h"
#include "matte/tiles.h"

namespace cutout {

/// A tile of a plane and kHalo network pixels around it, for steps that follow each other without
/// leaving the cache. A step computes what is at least `inset` network pixels from the patch's
/// border. Loops run over whole vectors, at most `inset` columns too far into the next row, where
/// no result depends on them.
inline constexpr int kHalo = 14;
inline constexpr int kPatchRows = kTile + 2 * kHalo;
inline constexpr int kPatchStride = 64;
inline constexpr int kPatchVector = 16;
static_assert(kPatchRows <= kPatchStride);

using Patch = std::array<float, static_cast<std::size_t>(kPatchRows) * kPatchStride + kPatchVector>;

/// Used columns and rows of a patch.
struct Extent {
  int across;
  int down;
};

inline Extent extent_of(const Tile& tile) {
  return {tile.right - tile.left + 2 * kHalo, tile.bottom - tile.top + 2 * kHalo};
}

/// Returns the column behind the last one that a step computes.
inline int patch_end(const Extent& extent, int inset) {
  return inset + (extent.across - 2 * inset + kPatchVector - 1) / kPatchVector * kPatchVector;
}

/// Loads what is at least `inset` from the patch's border of a plane of the guide's size; the
/// plane's border is repeated beyond the image.
void load_patch(const Guide& guide, const float* plane, const Tile& tile, int inset, Patch& patch);

/// A plane of the guide's size as a patch: network pixel (inset, inset) of it and the distance of
/// its rows.
struct PatchView {
  const float* first;
  std::ptrdiff_t stride;
};

/// What load_patch() loads, of the plane itself where it lies inside, else of `patch`. Loops over
/// whole vectors may read it.
PatchView view_patch(const Guide& guide, const float* plane, const Tile& tile, int inset,
                     Patch& patch);

/// load_patch() of plane * scale + offset.
void load_scaled(const Guide& guide, const float* plane, const Tile& tile, int inset, float scale,
                 float offset, Patch& patch);

/// Sets what lies beyond the image to 0.
void clear_beyond(const Guide& guide, const Tile& tile, Patch& patch);

using BlurWeights = std::array<float, kBlurRadius + 1>;

BlurWeights blur_weights(float sigma);

/// The blur; inset >= kBlurRadius.
void blur_patch(const Patch& from, const Extent& extent, int inset, const BlurWeights& weights,
                Patch& lines, Patch& out);

/// a - b
void subtract_patch(const Patch& a, const Patch& b, const Extent& extent, int inset, Patch& out);

/// Sums over windows of 7 x 7 values; inset >= 3.
void sum_windows(const Patch& from, const Extent& extent, int inset, Patch& lines, Patch& out);

/// Means of the squares of 7 x 7 values; inset >= kModelRadius.
void mean_squares(const Patch& from, const Extent& extent, int inset, Patch& lines, Patch& out);

}  // namespace cutout
