#include "matte/matting_energy.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/simd.h"
#include "matte/math/matting_energy.h"

namespace cutout {

namespace {

constexpr int kWindowInset = kHalo - kModelRadius;
static_assert(kWindowInset >= 2 * kBlurRadius + kModelRadius);
// Colours are read by the windows, alpha by the blur of the blur too.
constexpr int kColourInset = kWindowInset - kModelRadius;
constexpr int kValueInset = std::min(kColourInset, kHalo - 2 * kBlurRadius);

// Of each window, planes of WindowLayout::stride columns.
enum WindowPlane { kFineness, kRed, kGreen, kBlue, kFactors, kCount = kFactors + 6, kWindowPlanes };

struct WindowLayout {
  int stride;
  int rows;

  explicit WindowLayout(const Tile& tile)
      : stride(patch_end(extent_of(tile), kWindowInset) - kWindowInset),
        rows(tile.bottom - tile.top + 2 * kModelRadius) {}
  [[nodiscard]] std::size_t plane() const {
    return static_cast<std::size_t>(stride) * static_cast<std::size_t>(rows);
  }
  /// Window at column i, row j of a patch.
  [[nodiscard]] std::ptrdiff_t at(int i, int j) const {
    return static_cast<std::ptrdiff_t>(j - kWindowInset) * stride + (i - kWindowInset);
  }
};

CUTOUT_SIMD void colour_row(const float* __restrict from, float scale, float offset, int n,
                            float* __restrict out) {
  for (int i = 0; i < n; ++i) out[i] = from[i] * scale + offset;
}

CUTOUT_SIMD void product(const float* __restrict a, const float* __restrict b, const Extent& extent,
                         int inset, float* __restrict out) {
  const int right = patch_end(extent, inset);
  for (int j = inset; j < extent.down - inset; ++j) {
    for (int i = inset; i < right; ++i) {
      out[j * kPatchStride + i] = a[j * kPatchStride + i] * b[j * kPatchStride + i];
    }
  }
}

/// value * (colour * scale + offset)
CUTOUT_SIMD void colour_product(const float* __restrict value, const float* __restrict colour,
                                std::ptrdiff_t stride, float scale, float offset,
                                const Extent& extent, float* __restrict out) {
  const int n = patch_end(extent, kColourInset) - kColourInset;
  for (int j = kColourInset; j < extent.down - kColourInset; ++j, colour += stride) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(j) * kPatchStride + kColourInset;
    for (int i = 0; i < n; ++i) out[row + i] = value[row + i] * (colour[i] * scale + offset);
  }
}

/// f from the mean squares of the change by blurring and of the change by blurring that again.
CUTOUT_SIMD void fineness_patch(const float* __restrict once, const float* __restrict twice,
                                const Extent& extent, float* __restrict out) {
  const int right = patch_end(extent, kWindowInset);
  for (int j = kWindowInset; j < extent.down - kWindowInset; ++j) {
    for (int i = kWindowInset; i < right; ++i) {
      const int at = j * kPatchStride + i;
      out[at] = energy::fineness(once[at], twice[at]);
    }
  }
}

/// Means and factors of n windows from the sums of colours and of their products.
CUTOUT_SIMD void factor_row(const float* const* sums, std::ptrdiff_t from, int n, float* window,
                            std::ptrdiff_t plane) {
#pragma GCC ivdep  // planes do not overlap
  for (int i = 0; i < n; ++i) {
    const energy::Window of = energy::window_of([&](int k) { return sums[k][from + i]; });
    const Covariance& covariance = of.covariance;
    window[kRed * plane + i] = of.red;
    window[kGreen * plane + i] = of.green;
    window[kBlue * plane + i] = of.blue;
    window[kFactors * plane + i] = covariance.over0;
    window[(kFactors + 1) * plane + i] = covariance.over1;
    window[(kFactors + 2) * plane + i] = covariance.over2;
    window[(kFactors + 3) * plane + i] = covariance.l10;
    window[(kFactors + 4) * plane + i] = covariance.l20;
    window[(kFactors + 5) * plane + i] = covariance.l21;
  }
}

/// Sums of r v, g v, b v and v of n windows -> f times the plane's slopes and offset, in place.
CUTOUT_SIMD void fit_row(const float* __restrict window, std::ptrdiff_t plane, int n,
                         float* __restrict red, float* __restrict green, float* __restrict blue,
                         float* __restrict value) {
  for (int i = 0; i < n; ++i) {
    const float* at = window + i;
    const energy::Window of{
        at[kRed * plane],
        at[kGreen * plane],
        at[kBlue * plane],
        {at[kFactors * plane], at[(kFactors + 1) * plane], at[(kFactors + 2) * plane],
         at[(kFactors + 3) * plane], at[(kFactors + 4) * plane], at[(kFactors + 5) * plane]}};
    float r = red[i];
    float g = green[i];
    float b = blue[i];
    float v = value[i];
    energy::fit_plane(of, at[kFineness * plane], r, g, b, v);
    red[i] = r;
    green[i] = g;
    blue[i] = b;
    value[i] = v;
  }
}

/// (1 - c) (blurred - p), or without p. Confidence and output begin at (inset, inset).
CUTOUT_SIMD void weigh(const float* __restrict confidence, const float* __restrict output,
                       std::ptrdiff_t stride, float share, const Extent& extent, int inset,
                       float* __restrict blurred) {
  const int n = patch_end(extent, inset) - inset;
  for (int j = inset; j < extent.down - inset; ++j, confidence += stride, output += stride) {
    float* __restrict row = blurred + static_cast<std::ptrdiff_t>(j) * kPatchStride + inset;
    for (int i = 0; i < n; ++i) {
      row[i] = energy::data_residual(confidence[i], output[i], share, row[i]);
    }
  }
}

/// value - (sum of window planes) of n network pixels, times the smoothness, from the window sums.
/// Colours are `red` etc. * scale + offset.
CUTOUT_SIMD void laplacian_row(const float* __restrict count, const float* __restrict value,
                               const float* __restrict red, const float* __restrict green,
                               const float* __restrict blue, const float* scale,
                               const float* offset, const float* __restrict r,
                               const float* __restrict g, const float* __restrict b,
                               const float* __restrict constant, int n, float* __restrict out) {
  for (int i = 0; i < n; ++i) {
    out[i] = energy::laplacian(count[i], value[i], red[i] * scale[0] + offset[0],
                               green[i] * scale[1] + offset[1], blue[i] * scale[2] + offset[2],
                               r[i], g[i], b[i], constant[i]);
  }
}

CUTOUT_SIMD void multiply_row(const float* __restrict smooth, const float* __restrict blurred,
                              const float* __restrict value, const float* __restrict confidence,
                              const float* __restrict fineness,
                              const std::uint8_t* __restrict unknown, int n,
                              float* __restrict out) {
  for (int i = 0; i < n; ++i) {
    const float sum = energy::hessian(smooth[i], blurred[i], value[i], confidence[i], fineness[i]);
    out[i] = unknown[i] != 0 ? sum : 0.0F;
  }
}

CUTOUT_SIMD void descent_row(const float* __restrict smooth, const float* __restrict blurred,
                             const float* __restrict value, const float* __restrict confidence,
                             const float* __restrict sampled,
                             const std::uint8_t* __restrict unknown, int n, float* __restrict out) {
  for (int i = 0; i < n; ++i) {
    const float sum = energy::descent(smooth[i], blurred[i], value[i], confidence[i], sampled[i]);
    out[i] = unknown[i] != 0 ? sum : 0.0F;
  }
}

CUTOUT_SIMD void diagonal_row(const float* __restrict confidence, const float* __restrict fineness,
                              const float* __restrict count, float blur, int n,
                              float* __restrict out) {
  for (int i = 0; i < n; ++i) {
    out[i] = energy::diagonal(confidence[i], fineness[i], count[i], blur);
  }
}

}  // namespace

MattingEnergy::MattingEnergy(const Guide& guide, const EnergyTerms& terms, const BlurWeights& blur,
                             std::vector<Tile> tiles, ThreadPool& pool)
    : guide_(guide), terms_(terms), blur_(blur), tiles_(std::move(tiles)) {
  blur_diagonal_ = energy::blur_diagonal(blur.data());
  std::size_t size = 0;
  for (const Tile& tile : tiles_) {
    starts_.push_back(size);
    size += kWindowPlanes * WindowLayout(tile).plane();
  }
  windows_ = make_large_array<float>(size);
  pool.parallel_for(tiles_.size(), 1, [&](std::size_t begin, std::size_t end) {
    const auto scratch = std::make_unique_for_overwrite<Scratch>();
    for (std::size_t i = begin; i < end; ++i) prepare(i, *scratch);
  });
}

float MattingEnergy::offset(std::size_t channel) const {
  return guide_.offset[channel] - kModelMiddle;
}

void MattingEnergy::prepare(std::size_t index, Scratch& scratch) {
  const Tile& tile = tiles_[index];
  const Extent extent = extent_of(tile);
  const WindowLayout layout(tile);
  float* windows = windows_.get() + starts_[index];
  const auto plane = static_cast<std::ptrdiff_t>(layout.plane());
  const auto keep = [&](const Patch& patch, WindowPlane to) {
    for (int j = kWindowInset; j < extent.down - kWindowInset; ++j) {
      std::copy_n(patch.data() + j * kPatchStride + kWindowInset, layout.stride,
                  windows + to * plane + layout.at(kWindowInset, j));
    }
  };
  load_patch(guide_, terms_.start, tile, 0, scratch.value);
  Patch& once = scratch.changes;
  Patch& twice = scratch.model[0];
  blur_patch(scratch.value, extent, kBlurRadius, blur_, scratch.lines, scratch.blurred);
  subtract_patch(scratch.value, scratch.blurred, extent, kBlurRadius, once);
  blur_patch(once, extent, 2 * kBlurRadius, blur_, scratch.lines, scratch.blurred);
  subtract_patch(once, scratch.blurred, extent, 2 * kBlurRadius, twice);
  mean_squares(once, extent, kWindowInset, scratch.lines, scratch.model[1]);
  mean_squares(twice, extent, kWindowInset, scratch.lines, scratch.model[2]);
  Patch& fineness = scratch.value;
  fineness_patch(scratch.model[1].data(), scratch.model[2].data(), extent, fineness.data());
  clear_beyond(guide_, tile, fineness);  // no window around what is not in the image
  keep(fineness, kFineness);
  sum_windows(fineness, extent, kHalo, scratch.lines, scratch.sums);
  for (int j = kHalo; j < extent.down - kHalo; ++j) {
    colour_row(scratch.sums.data() + j * kPatchStride + kHalo, kWindowMean, 0.0F,
               extent.across - 2 * kHalo, windows + kCount * plane + layout.at(kHalo, j));
  }
  for (std::size_t c = 0; c < scratch.colours.size(); ++c) {
    load_scaled(guide_, guide_.planes[c], tile, kColourInset, guide_.scale[c], offset(c),
                scratch.colours[c]);
  }
  const std::array<Patch*, 9> sums{&scratch.model[0], &scratch.model[1], &scratch.model[2],
                                   &scratch.model[3], &scratch.model[4], &scratch.value,
                                   &scratch.sums,     &scratch.blurred,  &scratch.changes};
  Patch& products = scratch.products;
  for (std::size_t c = 0; c < 3; ++c) {
    sum_windows(scratch.colours[c], extent, kWindowInset, scratch.lines, *sums[c]);
  }
  std::size_t next = 3;
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t d = c; d < 3; ++d, ++next) {
      product(scratch.colours[c].data(), scratch.colours[d].data(), extent, kColourInset,
              products.data());
      sum_windows(products, extent, kWindowInset, scratch.lines, *sums[next]);
    }
  }
  std::array<const float*, 9> at{};
  for (std::size_t k = 0; k < at.size(); ++k) at[k] = sums[k]->data();
  for (int j = kWindowInset; j < extent.down - kWindowInset; ++j) {
    factor_row(at.data(), static_cast<std::ptrdiff_t>(j) * kPatchStride + kWindowInset,
               layout.stride, windows + layout.at(kWindowInset, j), plane);
  }
}

/// scratch.value -> kSmoothness times its Laplacian in scratch.changes, `kHalo` from the border.
void MattingEnergy::smooth(std::size_t index, Scratch& scratch) const {
  const Tile& tile = tiles_[index];
  const Extent extent = extent_of(tile);
  const WindowLayout layout(tile);
  const float* windows = windows_.get() + starts_[index];
  const auto plane = static_cast<std::ptrdiff_t>(layout.plane());
  std::array<PatchView, 3> colours{};
  const std::array<float, 3> offsets{offset(0), offset(1), offset(2)};
  for (std::size_t c = 0; c < 3; ++c) {
    colours[c] = view_patch(guide_, guide_.planes[c], tile, kColourInset, scratch.colours[c]);
    colour_product(scratch.value.data(), colours[c].first, colours[c].stride, guide_.scale[c],
                   offsets[c], extent, scratch.sums.data());
    sum_windows(scratch.sums, extent, kWindowInset, scratch.lines, scratch.model[c]);
  }
  sum_windows(scratch.value, extent, kWindowInset, scratch.lines, scratch.model[3]);
  for (int j = kWindowInset; j < extent.down - kWindowInset; ++j) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(j) * kPatchStride + kWindowInset;
    fit_row(windows + layout.at(kWindowInset, j), plane, extent.across - 2 * kWindowInset,
            scratch.model[0].data() + row, scratch.model[1].data() + row,
            scratch.model[2].data() + row, scratch.model[3].data() + row);
  }
  for (std::size_t k = 4; k > 0; --k) {
    sum_windows(scratch.model[k - 1], extent, kHalo, scratch.lines, scratch.model[k]);
  }
  for (int j = kHalo; j < extent.down - kHalo; ++j) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(j) * kPatchStride + kHalo;
    const auto colour = [&](std::size_t c) {
      constexpr int kInside = kHalo - kColourInset;
      return colours[c].first + (j - kColourInset) * colours[c].stride + kInside;
    };
    laplacian_row(windows + kCount * plane + layout.at(kHalo, j), scratch.value.data() + row,
                  colour(0), colour(1), colour(2), guide_.scale.data(), offsets.data(),
                  scratch.model[1].data() + row, scratch.model[2].data() + row,
                  scratch.model[3].data() + row, scratch.model[4].data() + row,
                  extent.across - 2 * kHalo, scratch.changes.data() + row);
  }
}

/// 1/2 of the data term's gradient: the confidence-weighted error of the blurred value against
/// `share` of the output, blurred again, in scratch.model[0], `kHalo` from the border.
void MattingEnergy::data_gradient(const Tile& tile, float share, Scratch& scratch) const {
  constexpr int kInset = kHalo - kBlurRadius;
  const Extent extent = extent_of(tile);
  blur_patch(scratch.value, extent, kInset, blur_, scratch.lines, scratch.blurred);
  const PatchView confidence =
      view_patch(guide_, terms_.sample_confidence, tile, kInset, scratch.sums);
  const PatchView output = view_patch(guide_, terms_.output, tile, kInset, scratch.products);
  weigh(confidence.first, output.first, output.stride, share, extent, kInset,
        scratch.blurred.data());
  clear_beyond(guide_, tile, scratch.blurred);
  blur_patch(scratch.blurred, extent, kHalo, blur_, scratch.lines, scratch.model[0]);
}

/// Calls row(y, index in a patch) for a tile's rows once the energy's sums of scratch.value are in
/// scratch.changes and scratch.model[0]; `share` as for data_gradient().
template <typename Row>
void MattingEnergy::sum_terms(std::size_t index, float share, Scratch& scratch,
                              const Row& row) const {
  const Tile& tile = tiles_[index];
  smooth(index, scratch);
  data_gradient(tile, share, scratch);
  for (int y = tile.top; y < tile.bottom; ++y) {
    row(y, static_cast<std::size_t>((y - tile.top + kHalo) * kPatchStride + kHalo));
  }
}

void MattingEnergy::descent(std::size_t index, Scratch& scratch, float* out) const {
  const Tile& tile = tiles_[index];
  load_patch(guide_, terms_.start, tile, kValueInset, scratch.value);
  sum_terms(index, 1.0F, scratch, [&](int y, std::size_t i) {
    const std::size_t at = guide_.at(tile.left, y);
    descent_row(&scratch.changes[i], &scratch.model[0][i], &scratch.value[i],
                terms_.sample_confidence + at, terms_.sampled_alpha + at, terms_.uncertain + at,
                tile.right - tile.left, out + at);
  });
}

void MattingEnergy::multiply(std::size_t index, const float* direction, Scratch& scratch,
                             float* out) const {
  const Tile& tile = tiles_[index];
  load_patch(guide_, direction, tile, kValueInset, scratch.value);
  clear_beyond(guide_, tile, scratch.value);
  sum_terms(index, 0.0F, scratch, [&](int y, std::size_t i) {
    const std::size_t at = guide_.at(tile.left, y);
    multiply_row(&scratch.changes[i], &scratch.model[0][i], &scratch.value[i],
                 terms_.sample_confidence + at, fineness(index, y), terms_.uncertain + at,
                 tile.right - tile.left, out + at);
  });
}

void MattingEnergy::diagonal(std::size_t index, int y, float* out) const {
  const Tile& tile = tiles_[index];
  const WindowLayout layout(tile);
  const float* count = windows_.get() + starts_[index] + kCount * layout.plane() +
                       layout.at(kHalo, y - tile.top + kHalo);
  diagonal_row(terms_.sample_confidence + guide_.at(tile.left, y), fineness(index, y), count,
               blur_diagonal_, tile.right - tile.left, out);
}

const float* MattingEnergy::fineness(std::size_t index, int y) const {
  const Tile& tile = tiles_[index];
  const WindowLayout layout(tile);
  return windows_.get() + starts_[index] + kFineness * layout.plane() +
         layout.at(kHalo, y - tile.top + kHalo);
}

}  // namespace cutout
