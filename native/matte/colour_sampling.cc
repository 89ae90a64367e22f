#include "matte/colour_sampling.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

CUTOUT_SIMD void begin_row(const float* __restrict p, int n, float* __restrict alpha,
                           std::uint8_t* __restrict labels) {
  for (int i = 0; i < n; ++i) {
    alpha[i] = clamp01(p[i]);
    labels[i] = label_of(alpha[i]);
  }
}

/// Labels that a network pixel shares with its neighbours in the row. `labels` has kForeRadius more
/// values with both bits at either end.
CUTOUT_SIMD void along_row(const std::uint8_t* __restrict labels, int n,
                           std::uint8_t* __restrict out) {
  for (int i = 0; i < n; ++i) {
    const auto near = static_cast<std::uint8_t>(labels[i - 2] & labels[i - 1] & labels[i] &
                                                labels[i + 1] & labels[i + 2]);
    out[i] = static_cast<std::uint8_t>((near & kBackSample) |
                                       (near & labels[i - 3] & labels[i + 3] & kForeSample));
  }
}

CUTOUT_SIMD void and_row(const std::uint8_t* __restrict from, std::uint8_t mask, int n,
                         std::uint8_t* __restrict to) {
  for (int i = 0; i < n; ++i) to[i] = static_cast<std::uint8_t>(to[i] & (from[i] | mask));
}

CUTOUT_SIMD std::uint8_t finish_row(const std::uint8_t* __restrict labels,
                                    const std::uint8_t* __restrict inside, int n,
                                    float* __restrict samples, std::uint8_t* __restrict unknown) {
  std::uint8_t any = 0;
  for (int i = 0; i < n; ++i) {
    const auto known = static_cast<std::uint8_t>(labels[i] | (inside[i] & kForeSample));
    samples[i] = level_of(known);
    unknown[i] = static_cast<std::uint8_t>(known == 0);
    any = static_cast<std::uint8_t>(any | labels[i]);
  }
  return any;
}

/// Neighbours that have to hold for a wide part, along a row or a column.
constexpr int kWholeRun = 2 * kWideRadius + 1;
constexpr int kDoubled = 32;  // the greatest power of two below
static_assert(kDoubled < kWholeRun && kWholeRun <= 2 * kDoubled);

/// 1 where `holds` is true for all values within kWideRadius along the row; it is true beyond the
/// ends. `runs` holds width + 2 * kWideRadius values: 1 where as many from there on hold as were
/// doubled so far.
template <typename Holds>
CUTOUT_INLINE void wide_along(const float* __restrict alpha, int width, Holds holds,
                              std::uint8_t* __restrict runs, std::uint8_t* __restrict wide) {
  const int bordered = width + 2 * kWideRadius;
  std::memset(runs, 1, kWideRadius);
  std::memset(runs + kWideRadius + width, 1, kWideRadius);
  for (int x = 0; x < width; ++x) {
    runs[kWideRadius + x] = static_cast<std::uint8_t>(holds(alpha[x]));
  }
  for (int length = 1; length < kDoubled; length *= 2) {
    const int n = bordered - 2 * length + 1;
#pragma GCC ivdep  // values are read before they are overwritten
    for (int x = 0; x < n; ++x) runs[x] &= runs[x + length];
  }
  for (int x = 0; x < width; ++x) {
    wide[x] = static_cast<std::uint8_t>(runs[x] & runs[x + kWholeRun - kDoubled]);
  }
}

CUTOUT_INLINE std::uint8_t longer(std::uint8_t run, bool holds) {
  return holds ? static_cast<std::uint8_t>(std::min<int>(run + 1, kWholeRun)) : std::uint8_t{0};
}

CUTOUT_SIMD void lengthen_runs(const std::uint8_t* __restrict wide, int n,
                               std::uint8_t* __restrict runs) {
  for (int i = 0; i < n; ++i) runs[i] = longer(runs[i], wide[i] != 0);
}

CUTOUT_SIMD void whole_runs(const std::uint8_t* __restrict runs, int n,
                            std::uint8_t* __restrict wide) {
  for (int i = 0; i < n; ++i) wide[i] = static_cast<std::uint8_t>(runs[i] == kWholeRun);
}

/// The same along the columns `left` .. `right` - 1, in place: a row is written after it was read.
void wide_down(const Guide& guide, int left, int right, std::uint8_t* wide) {
  const int n = right - left;
  std::vector<std::uint8_t> runs(static_cast<std::size_t>(n), kWideRadius);
  const std::vector<std::uint8_t> beyond(static_cast<std::size_t>(n), 1);
  for (int y = 0; y < guide.height + kWideRadius; ++y) {
    lengthen_runs(y < guide.height ? wide + guide.at(left, y) : beyond.data(), n, runs.data());
    if (y >= kWideRadius) whole_runs(runs.data(), n, wide + guide.at(left, y - kWideRadius));
  }
}

CUTOUT_SIMD void wide_row(const float* alpha, int width, std::uint8_t* runs, std::uint8_t* inside,
                          std::uint8_t* faint) {
  wide_along(
      alpha, width, [](float p) { return is_inside(p); }, runs, inside);
  wide_along(
      alpha, width, [](float p) { return is_faint(p); }, runs, faint);
}

CUTOUT_SIMD void blend_row(const float* __restrict near, const float* __restrict far, int n,
                           float* __restrict out) {
  for (int i = 0; i < n; ++i) out[i] = interpolate(near[i], far[i]);
}

/// `layers`: the means of F, then of B, of n network pixels, planes of kTile.
CUTOUT_SIMD void sample_row(const float* __restrict red, const float* __restrict green,
                            const float* __restrict blue, const float* scale, const float* offset,
                            const float* __restrict layers, const std::uint8_t* __restrict unknown,
                            const std::uint8_t* __restrict faint, int n, float* __restrict alpha,
                            float* __restrict sample_confidence, float* __restrict sampled_alpha) {
  for (int i = 0; i < n; ++i) {
    const float colour[3] = {red[i] * scale[0] + offset[0], green[i] * scale[1] + offset[1],
                             blue[i] * scale[2] + offset[2]};
    const float* at = layers + i;
    const float fore[4] = {at[0], at[kTile], at[2 * kTile], at[3 * kTile]};
    const float back[4] = {at[4 * kTile], at[5 * kTile], at[6 * kTile], at[7 * kTile]};
    const Sample sample =
        limited_where_faint(sample_of(colour, fore, back, alpha[i]), alpha[i], faint[i] != 0);
    const float value = moved_towards(alpha[i], sample);
    alpha[i] = unknown[i] != 0 ? value : alpha[i];
    sample_confidence[i] = unknown[i] != 0 ? sample.confidence : 0.0F;
    sampled_alpha[i] = unknown[i] != 0 ? sample.alpha : 0.0F;
  }
}

void sample_tile(const Guide& guide, const Level& colours, const std::uint8_t* unknown,
                 const std::uint8_t* faint, const Tile& tile, ColourSampling& result) {
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
               guide.scale.data(), guide.offset.data(), layers.data(), unknown + index,
               faint + index, n, result.alpha.get() + index, result.sample_confidence.get() + index,
               result.sampled_alpha.get() + index);
  }
}

/// Labels of a row -> labels shared with the neighbours in the row.
void common_along(const std::uint8_t* labels, int width, std::vector<std::uint8_t>& bordered,
                  std::uint8_t* out) {
  bordered.assign(static_cast<std::size_t>(width + 2 * kForeRadius), kForeSample | kBackSample);
  std::copy_n(labels, width, bordered.data() + kForeRadius);
  along_row(bordered.data() + kForeRadius, width, out);
}

}  // namespace

ColourSampling sample_colours(const Guide& guide, std::span<const float> p, ThreadPool& pool) {
  ColourSampling result{make_large_array<float>(guide.size()),
                        make_large_array<float>(guide.size()),
                        make_large_array<float>(guide.size())};
  const auto along = make_large_array<std::uint8_t>(guide.size());
  const auto inside = make_large_array<std::uint8_t>(guide.size());
  const auto faint = make_large_array<std::uint8_t>(guide.size());
  const auto height = static_cast<std::size_t>(guide.height);
  const int width = guide.width;
  pool.parallel_for(height, kRowGrain, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint8_t> labels(static_cast<std::size_t>(width));
    std::vector<std::uint8_t> bordered;
    std::vector<std::uint8_t> runs(static_cast<std::size_t>(width + 2 * kWideRadius));
    for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
      const std::size_t index = guide.at(0, y);
      begin_row(p.data() + index, width, result.alpha.get() + index, labels.data());
      std::fill_n(result.sample_confidence.get() + index, width, 0.0F);
      std::fill_n(result.sampled_alpha.get() + index, width, 0.0F);
      common_along(labels.data(), width, bordered, along.get() + index);
      wide_row(result.alpha.get() + index, width, runs.data(), inside.get() + index,
               faint.get() + index);
    }
  });
  const auto strips = static_cast<std::size_t>((width + kStrip - 1) / kStrip);
  pool.for_each(strips, 1, [&](std::size_t i) {
    const int left = static_cast<int>(i) * kStrip;
    const int right = std::min(left + kStrip, width);
    wide_down(guide, left, right, inside.get());
    wide_down(guide, left, right, faint.get());
  });
  const auto samples = make_large_array<float>(guide.size());
  const auto unknown = make_large_array<std::uint8_t>(guide.size());
  std::atomic<unsigned> found{0};
  pool.parallel_for(height, kRowGrain, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint8_t> labels(static_cast<std::size_t>(width));
    for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
      std::fill(labels.begin(), labels.end(), static_cast<std::uint8_t>(kForeSample | kBackSample));
      const int last = std::min(y + kForeRadius, guide.height - 1);
      for (int j = std::max(y - kForeRadius, 0); j <= last; ++j) {
        const bool near = j >= y - kBackRadius && j <= y + kBackRadius;
        and_row(along.get() + guide.at(0, j), near ? 0 : kBackSample, width, labels.data());
      }
      const std::size_t index = guide.at(0, y);
      found |= finish_row(labels.data(), inside.get() + index, width, samples.get() + index,
                          unknown.get() + index);
    }
  });
  if (found != (kForeSample | kBackSample)) return result;
  const std::vector<Tile> tiles = tiles_near(unknown.get(), guide.width, guide.height, 0);
  if (tiles.empty()) return result;
  const Level colours =
      spread_colours(guide, samples.get(), kUnknown, Means::kColoursAndSquaredLengths, tiles, pool);
  pool.for_each(tiles.size(), kTileGrain, [&](std::size_t i) {
    sample_tile(guide, colours, unknown.get(), faint.get(), tiles[i], result);
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
