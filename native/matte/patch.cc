#include "matte/patch.h"

#include <algorithm>
#include <cmath>

#include "core/image_view.h"
#include "core/simd.h"

namespace cutout {

namespace {

/// Two passes over the part of a patch that is at least `inset` from its border: along(at) of the
/// rows that down(at) reaches, `radius` away, to `lines`, then down(at) to `out`.
template <typename Along, typename Down>
CUTOUT_INLINE void two_passes(const Extent& extent, int inset, int radius, const Along& along,
                              const Down& down, float* __restrict lines, float* __restrict out) {
  const int right = patch_end(extent, inset);
  for (int j = inset - radius; j < extent.down - inset + radius; ++j) {
#pragma GCC ivdep  // patches do not overlap
    for (int i = inset; i < right; ++i) lines[j * kPatchStride + i] = along(j * kPatchStride + i);
  }
  for (int j = inset; j < extent.down - inset; ++j) {
#pragma GCC ivdep
    for (int i = inset; i < right; ++i) out[j * kPatchStride + i] = down(j * kPatchStride + i);
  }
}

CUTOUT_SIMD void scale_in_place(float* row, float scale, float offset, int n) {
  for (int i = 0; i < n; ++i) row[i] = row[i] * scale + offset;
}

/// Part of a tile's patch that is at least `inset` from its border, in network pixels.
Box loaded(const Tile& tile, int inset) {
  const Extent extent = extent_of(tile);
  return {tile.left - kHalo + inset, tile.top - kHalo + inset, extent.across - 2 * inset,
          extent.down - 2 * inset};
}

bool inside(const Guide& guide, const Box& box) {
  return box.left >= 0 && box.top >= 0 && box.left + box.width <= guide.width &&
         box.top + box.height <= guide.height;
}

float* first_of(Patch& patch, int inset) { return patch.data() + inset * (kPatchStride + 1); }

}  // namespace

BlurWeights blur_weights(float sigma) {
  std::array<double, kBlurRadius + 1> exact{};
  double sum = 0;
  for (int i = 0; i <= kBlurRadius; ++i) {
    const auto at = static_cast<std::size_t>(i);
    exact[at] = std::exp(-0.5 * i * i / (static_cast<double>(sigma) * static_cast<double>(sigma)));
    sum += (i == 0 ? 1 : 2) * exact[at];
  }
  BlurWeights weights{};
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(exact[i] / sum);
  return weights;
}

void load_patch(const Guide& guide, const float* plane, const Tile& tile, int inset, Patch& patch) {
  const Box box = loaded(tile, inset);
  float* out = first_of(patch, inset);
  for (int j = 0; j < box.height; ++j) {
    const int y = std::clamp(box.top + j, 0, guide.height - 1);
    copy_padded(plane + guide.at(0, y), guide.width, box.left, box.width, out + j * kPatchStride);
  }
}

PatchView view_patch(const Guide& guide, const float* plane, const Tile& tile, int inset,
                     Patch& patch) {
  const Box box = loaded(tile, inset);
  // Another row behind it, for vectors that begin inside.
  if (inside(guide, {box.left, box.top, box.width, box.height + 1})) {
    return {plane + guide.at(box.left, box.top), guide.width};
  }
  load_patch(guide, plane, tile, inset, patch);
  return {first_of(patch, inset), kPatchStride};
}

void load_scaled(const Guide& guide, const float* plane, const Tile& tile, int inset, float scale,
                 float offset, Patch& patch) {
  load_patch(guide, plane, tile, inset, patch);
  const Box box = loaded(tile, inset);
  float* const first = first_of(patch, inset);
  for (int j = 0; j < box.height; ++j) {
    scale_in_place(first + j * kPatchStride, scale, offset, box.width);
  }
}

void clear_beyond(const Guide& guide, const Tile& tile, Patch& patch) {
  if (inside(guide, loaded(tile, 0))) return;
  const Extent extent = extent_of(tile);
  const int before = std::clamp(kHalo - tile.left, 0, extent.across);
  const int behind =
      std::clamp(tile.left - kHalo + extent.across - guide.width, 0, extent.across - before);
  for (int j = 0; j < extent.down; ++j) {
    float* row = patch.data() + static_cast<std::ptrdiff_t>(j) * kPatchStride;
    const int y = tile.top - kHalo + j;
    const bool outside = y < 0 || y >= guide.height;
    std::fill_n(row, outside ? extent.across : before, 0.0F);
    std::fill_n(row + extent.across - behind, behind, 0.0F);
  }
}

CUTOUT_SIMD void blur_patch(const Patch& from, const Extent& extent, int inset,
                            const BlurWeights& weights, Patch& lines, Patch& out) {
  const float* __restrict w = weights.data();
  two_passes(
      extent, inset, kBlurRadius, [&](int at) { return blur9(from.data() + at, 1, w); },
      [&](int at) { return blur9(lines.data() + at, kPatchStride, w); }, lines.data(), out.data());
}

CUTOUT_SIMD void subtract_patch(const Patch& a, const Patch& b, const Extent& extent, int inset,
                                Patch& out) {
  const int right = patch_end(extent, inset);
  for (int j = inset; j < extent.down - inset; ++j) {
    const auto row = static_cast<std::ptrdiff_t>(j) * kPatchStride;
    const float* const left = a.data() + row;
    const float* const less = b.data() + row;
    float* const to = out.data() + row;
#pragma GCC ivdep
    for (int i = inset; i < right; ++i) to[i] = left[i] - less[i];
  }
}

CUTOUT_SIMD void sum_windows(const Patch& from, const Extent& extent, int inset, Patch& lines,
                             Patch& out) {
  two_passes(
      extent, inset, kModelRadius, [&](int at) { return sum_window(from.data() + at, 1); },
      [&](int at) { return sum_window(lines.data() + at, kPatchStride); }, lines.data(),
      out.data());
}

CUTOUT_SIMD void mean_squares(const Patch& from, const Extent& extent, int inset, Patch& lines,
                              Patch& out) {
  two_passes(
      extent, inset, kModelRadius, [&](int at) { return sum_squares(from.data() + at); },
      [&](int at) { return sum_window(lines.data() + at, kPatchStride) * kWindowMean; },
      lines.data(), out.data());
}

}  // namespace cutout
