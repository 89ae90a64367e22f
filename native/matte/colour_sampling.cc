#include "matte/colour_sampling.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/simd.h"
#include "matte/math/colour_sampling.h"
#include "matte/math/probability.h"
#include "matte/pyramid.h"
#include "matte/tiles.h"

namespace cutout {

namespace {

constexpr std::size_t kRowGrain = 32;
constexpr std::size_t kTileGrain = 4;
constexpr std::size_t kValueGrain = 1 << 16;
constexpr int kStrip = 128;  // columns

// Bits of a label beside kForeSample and kBackSample: what all network pixels within kWideRadius
// are.
constexpr std::uint8_t kInsideBit = 4;
constexpr std::uint8_t kFaintBit = 8;
constexpr std::uint8_t kAllBits = kForeSample | kBackSample | kInsideBit | kFaintBit;

CUTOUT_SIMD void begin_row(const float* __restrict p, int n, float* __restrict alpha,
                           std::uint8_t* __restrict labels) {
  for (int i = 0; i < n; ++i) {
    alpha[i] = clamp01(p[i]);
    labels[i] = static_cast<std::uint8_t>(label_of(alpha[i]) +
                                          static_cast<int>(is_inside(alpha[i])) * kInsideBit +
                                          static_cast<int>(is_faint(alpha[i])) * kFaintBit);
  }
}

// The lengths of two runs that cover a neighbourhood together.
constexpr int kNearRun = 4;
constexpr int kWideRun = 32;
static_assert(kNearRun <= 2 * kBackRadius + 1 && 2 * kForeRadius + 1 <= 2 * kNearRun);
static_assert(kWideRun <= 2 * kWideRadius + 1 && 2 * kWideRadius + 1 <= 2 * kWideRun);

/// The bits of `from` cells from each one on become those of `to`, a power of two times as many.
CUTOUT_INLINE void lengthen_runs(std::uint8_t* cells, int bytes, int cell, int from, int to) {
  for (int length = from; length < to; length *= 2) {
    const int step = length * cell;
#pragma GCC ivdep  // values are read before they are overwritten
    for (int i = 0; i < bytes - (2 * length - 1) * cell; ++i) cells[i] &= cells[i + step];
  }
}

/// The bits of all cells within `radius`.
CUTOUT_INLINE std::uint8_t around(const std::uint8_t* at, int cell, int radius, int run) {
  return static_cast<std::uint8_t>(at[-radius * cell] & at[(radius + 1 - run) * cell]);
}

/// Along one axis, the bits that a cell shares with all within the radius of each bit. The `count`
/// cells, of `cell` bytes each, have kWideRadius more with all bits at either end; they are
/// scratch.
CUTOUT_SIMD void share_bits(std::uint8_t* __restrict cells, int count, int cell,
                            std::uint8_t* __restrict out) {
  const int bytes = (count + 2 * kWideRadius) * cell;
  const std::uint8_t* const first = cells + kWideRadius * cell;
  lengthen_runs(cells, bytes, cell, 1, kNearRun);
  for (int i = 0; i < count * cell; ++i) {
    out[i] =
        static_cast<std::uint8_t>((around(first + i, cell, kForeRadius, kNearRun) & kForeSample) |
                                  (around(first + i, cell, kBackRadius, kNearRun) & kBackSample));
  }
  lengthen_runs(cells, bytes, cell, kNearRun, kWideRun);
  for (int i = 0; i < count * cell; ++i) {
    const int wide = around(first + i, cell, kWideRadius, kWideRun) & (kInsideBit | kFaintBit);
    out[i] = static_cast<std::uint8_t>(out[i] | wide);
  }
}

// What sampling finds: nothing where a network pixel is a sample itself.
constexpr std::uint8_t kSought = 1;
constexpr std::uint8_t kNotRaised = 2;

/// Returns the bits of all labels.
CUTOUT_SIMD std::uint8_t finish_row(const std::uint8_t* __restrict labels, int n,
                                    float* __restrict samples, std::uint8_t* __restrict unknown) {
  std::uint8_t any = 0;
  for (int i = 0; i < n; ++i) {
    const auto inside = static_cast<std::uint8_t>((labels[i] & kInsideBit) != 0 ? kForeSample : 0);
    const auto known =
        static_cast<std::uint8_t>((labels[i] & (kForeSample | kBackSample)) | inside);
    const int faint = (labels[i] & kFaintBit) != 0 ? kSought | kNotRaised : kSought;
    samples[i] = level_of(known);
    unknown[i] = static_cast<std::uint8_t>(known == 0 ? faint : 0);
    any = static_cast<std::uint8_t>(any | labels[i]);
  }
  return any;
}

CUTOUT_SIMD void blend_row(const float* __restrict near, const float* __restrict far, int n,
                           float* __restrict out) {
  for (int i = 0; i < n; ++i) out[i] = interpolate(near[i], far[i]);
}

/// `layers`: the means of F, then of B, of n network pixels, planes of kTile.
CUTOUT_SIMD void sample_row(const float* __restrict red, const float* __restrict green,
                            const float* __restrict blue, const float* scale, const float* offset,
                            const float* __restrict layers, const std::uint8_t* __restrict unknown,
                            int n, float* __restrict alpha, float* __restrict sample_confidence,
                            float* __restrict sampled_alpha) {
  for (int i = 0; i < n; ++i) {
    const float colour[3] = {red[i] * scale[0] + offset[0], green[i] * scale[1] + offset[1],
                             blue[i] * scale[2] + offset[2]};
    const float* at = layers + i;
    const float fore[4] = {at[0], at[kTile], at[2 * kTile], at[3 * kTile]};
    const float back[4] = {at[4 * kTile], at[5 * kTile], at[6 * kTile], at[7 * kTile]};
    const Sample sample = limited_where_faint(sample_of(colour, fore, back, alpha[i]), alpha[i],
                                              unknown[i] > kSought);
    const float value = moved_towards(alpha[i], sample);
    alpha[i] = unknown[i] != 0 ? value : alpha[i];
    sample_confidence[i] = unknown[i] != 0 ? sample.confidence : 0.0F;
    sampled_alpha[i] = unknown[i] != 0 ? sample.alpha : 0.0F;
  }
}

void sample_tile(const Guide& guide, const Level& colours, const std::uint8_t* unknown,
                 const Tile& tile, ColourSampling& result) {
  const int n = tile.right - tile.left;
  Widened widened(colours, guide.width, tile.left, n);
  std::array<float, static_cast<std::size_t>(Widened::kMeans) * kTile> layers{};
  for (int y = tile.top; y < tile.bottom; ++y) {
    const CoarseTaps v = coarse_taps(y, colours.height);
    for (int c = 0; c < Widened::kMeans; ++c) {
      blend_row(widened.row(c, v.near), widened.row(c, v.far), n, layers.data() + c * kTile);
    }
    const std::size_t index = guide.at(tile.left, y);
    sample_row(guide.planes[0] + index, guide.planes[1] + index, guide.planes[2] + index,
               guide.scale.data(), guide.offset.data(), layers.data(), unknown + index, n,
               result.alpha.get() + index, result.sample_confidence.get() + index,
               result.sampled_alpha.get() + index);
  }
}

}  // namespace

ColourSampling sample_colours(const Guide& guide, std::span<const float> p, ThreadPool& pool) {
  ColourSampling result{make_large_array<float>(guide.size()),
                        make_large_array<float>(guide.size()),
                        make_large_array<float>(guide.size())};
  // Labels shared along rows, then what is sought.
  const auto labels = make_large_array<std::uint8_t>(guide.size());
  const int width = guide.width;
  const auto height = static_cast<std::size_t>(guide.height);
  constexpr std::size_t kBorders = 2 * kWideRadius;
  pool.parallel_for(height, kRowGrain, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint8_t> cells;
    for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
      const std::size_t index = guide.at(0, y);
      cells.assign(static_cast<std::size_t>(width) + kBorders, kAllBits);
      begin_row(p.data() + index, width, result.alpha.get() + index, cells.data() + kWideRadius);
      share_bits(cells.data(), width, 1, labels.get() + index);
      std::fill_n(result.sample_confidence.get() + index, width, 0.0F);
      std::fill_n(result.sampled_alpha.get() + index, width, 0.0F);
    }
  });
  const auto samples = make_large_array<float>(guide.size());
  std::atomic<unsigned> found{0};
  const auto strips = static_cast<std::size_t>((width + kStrip - 1) / kStrip);
  pool.for_each(strips, 1, [&](std::size_t strip) {
    const int left = static_cast<int>(strip) * kStrip;
    const int n = std::min(kStrip, width - left);
    const auto row = [&](std::size_t y) { return guide.at(left, static_cast<int>(y)); };
    const auto across = static_cast<std::size_t>(n);
    std::vector<std::uint8_t> cells((height + kBorders) * across, kAllBits);
    for (std::size_t y = 0; y < height; ++y) {
      std::copy_n(labels.get() + row(y), n, cells.data() + (y + kWideRadius) * across);
    }
    std::vector<std::uint8_t> shared(height * across);
    share_bits(cells.data(), guide.height, n, shared.data());
    for (std::size_t y = 0; y < height; ++y) {
      found |=
          finish_row(shared.data() + y * across, n, samples.get() + row(y), labels.get() + row(y));
    }
  });
  constexpr unsigned kBoth = kForeSample | kBackSample;
  if ((found & kBoth) != kBoth) return result;
  const std::vector<Tile> tiles = tiles_near(labels.get(), guide.width, guide.height, 0);
  if (tiles.empty()) return result;
  const Level colours = spread_colours(guide, samples.get(), kUnknown, pool);
  pool.for_each(tiles.size(), kTileGrain, [&](std::size_t i) {
    sample_tile(guide, colours, labels.get(), tiles[i], result);
  });
  return result;
}

ColourSampling without_samples(const Guide& guide, std::span<const float> p, ThreadPool& pool) {
  ColourSampling result{make_large_array<float>(guide.size()),
                        make_large_array<float>(guide.size()),
                        make_large_array<float>(guide.size()), true};
  pool.parallel_for(guide.size(), kValueGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) result.alpha[i] = clamp01(p[i]);
    std::fill_n(result.sample_confidence.get() + begin, end - begin, 0.0F);
    std::fill_n(result.sampled_alpha.get() + begin, end - begin, 0.0F);
  });
  return result;
}

}  // namespace cutout
