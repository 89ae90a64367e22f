#include "matte/correct.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/simd.h"
#include "matte/pyramid.h"
#include "matte/tiles.h"
#include "matte/upsample.h"

namespace cutout {

namespace {

constexpr std::size_t kRowGrain = 32;
constexpr std::size_t kTileGrain = 4;
constexpr int kStrip = 128;    // columns
constexpr int kForeReach = 3;  // cells
constexpr int kBackReach = 2;
constexpr int kWideReach = 20;
constexpr float kSubject = 0.7F;  // more than that is rather subject
constexpr float kRest = 0.3F;     // less rather not
constexpr float kUnknown = 0.5F;
constexpr float kApart = 0.1F;    // squared distance of F and B that is believed by half
constexpr float kBeside = 2e-3F;  // squared distance from their line, likewise

// What a cell's answer, and then a neighbourhood, is without exception.
constexpr std::uint8_t kFore = 1;
constexpr std::uint8_t kBack = 2;

CUTOUT_INLINE std::uint8_t side_of(float p) {
  return static_cast<std::uint8_t>(static_cast<int>(p > kSureForeground) * kFore +
                                   static_cast<int>(p < kSureBackground) * kBack);
}

CUTOUT_INLINE float sure_of(std::uint8_t sides) {
  return kUnknown +
         0.5F * (static_cast<float>(sides & kFore) - 0.5F * static_cast<float>(sides & kBack));
}

/// What a cell's colour says of its alpha, and how far that is believed.
struct Evidence {
  float share;
  float belief;
};

CUTOUT_INLINE Evidence evidence_of(const float* colour, const float* fore, const float* back) {
  const float d[3] = {fore[0] - back[0], fore[1] - back[1], fore[2] - back[2]};
  const float x[3] = {colour[0] - back[0], colour[1] - back[1], colour[2] - back[2]};
  const float apart = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
  const float along = x[0] * d[0] + x[1] * d[1] + x[2] * d[2];
  const float share = along / (apart + 1e-6F);
  const float e[3] = {x[0] - share * d[0], x[1] - share * d[1], x[2] - share * d[2]};
  const float beside = e[0] * e[0] + e[1] * e[1] + e[2] * e[2];
  return {clamp01(share), apart / (apart + kApart) * (kBeside / (kBeside + beside))};
}

/// A wide faint part is haze, which colours like the subject's do not make a subject of.
CUTOUT_INLINE Evidence but_raised(const Evidence& evidence, float p, bool faint) {
  return {evidence.share, faint && evidence.share > p ? 0.0F : evidence.belief};
}

CUTOUT_INLINE float corrected(float p, const Evidence& evidence) {
  return clamp01(p + evidence.belief * (evidence.share - p));
}

CUTOUT_SIMD void begin_row(const float* __restrict p, int n, float* __restrict alpha,
                           std::uint8_t* __restrict sides) {
  for (int i = 0; i < n; ++i) {
    alpha[i] = clamp01(p[i]);
    sides[i] = side_of(alpha[i]);
  }
}

/// What a cell and its neighbours in the row have in common; `sides` has kForeReach more on either
/// end, and those are of both sides.
CUTOUT_SIMD void along_row(const std::uint8_t* __restrict sides, int n,
                           std::uint8_t* __restrict out) {
  for (int i = 0; i < n; ++i) {
    const auto near = static_cast<std::uint8_t>(sides[i - 2] & sides[i - 1] & sides[i] &
                                                sides[i + 1] & sides[i + 2]);
    out[i] =
        static_cast<std::uint8_t>((near & kBack) | (near & sides[i - 3] & sides[i + 3] & kFore));
  }
}

CUTOUT_SIMD void and_row(const std::uint8_t* __restrict from, std::uint8_t mask, int n,
                         std::uint8_t* __restrict to) {
  for (int i = 0; i < n; ++i) to[i] = static_cast<std::uint8_t>(to[i] & (from[i] | mask));
}

CUTOUT_SIMD std::uint8_t finish_row(const std::uint8_t* __restrict sides,
                                    const std::uint8_t* __restrict inside, int n,
                                    float* __restrict sure, std::uint8_t* __restrict open) {
  std::uint8_t any = 0;
  for (int i = 0; i < n; ++i) {
    const auto known = static_cast<std::uint8_t>(sides[i] | (inside[i] & kFore));
    sure[i] = sure_of(known);
    open[i] = static_cast<std::uint8_t>(known == 0);
    any = static_cast<std::uint8_t>(any | sides[i]);
  }
  return any;
}

/// How many values in a row, this one included, are of a kind: as many as are asked for at most.
constexpr int kWholeRun = 2 * kWideReach + 1;

CUTOUT_INLINE std::uint8_t longer(std::uint8_t run, bool holds) {
  return holds ? static_cast<std::uint8_t>(std::min<int>(run + 1, kWholeRun)) : std::uint8_t{0};
}

/// 1 where `holds` for all within kWideReach along the row; for what lies beyond the ends it does.
template <typename Holds>
void wide_along(const float* alpha, int width, Holds holds, std::uint8_t* wide) {
  std::uint8_t run = kWideReach;
  for (int x = 0; x < width + kWideReach; ++x) {
    run = longer(run, x >= width || holds(alpha[x]));
    if (x >= kWideReach) wide[x - kWideReach] = static_cast<std::uint8_t>(run == kWholeRun);
  }
}

CUTOUT_SIMD void lengthen_runs(const std::uint8_t* __restrict wide, int n,
                               std::uint8_t* __restrict runs) {
  for (int i = 0; i < n; ++i) runs[i] = longer(runs[i], wide[i] != 0);
}

CUTOUT_SIMD void whole_runs(const std::uint8_t* __restrict runs, int n,
                            std::uint8_t* __restrict wide) {
  for (int i = 0; i < n; ++i) wide[i] = static_cast<std::uint8_t>(runs[i] == kWholeRun);
}

/// The same down the columns `left` .. `right` - 1, in place: a row is written once it was read.
void wide_down(const Guide& guide, int left, int right, std::uint8_t* wide) {
  const int n = right - left;
  std::vector<std::uint8_t> runs(static_cast<std::size_t>(n), kWideReach);
  const std::vector<std::uint8_t> beyond(static_cast<std::size_t>(n), 1);
  for (int y = 0; y < guide.height + kWideReach; ++y) {
    lengthen_runs(y < guide.height ? wide + guide.at(left, y) : beyond.data(), n, runs.data());
    if (y >= kWideReach) whole_runs(runs.data(), n, wide + guide.at(left, y - kWideReach));
  }
}

CUTOUT_INLINE bool is_subject(float p) { return p > kSubject; }
CUTOUT_INLINE bool is_rest(float p) { return !(p >= kRest); }

CUTOUT_SIMD void blend_row(const float* __restrict near, const float* __restrict far, int n,
                           float* __restrict out) {
  for (int i = 0; i < n; ++i) out[i] = between_cells(near[i], far[i]);
}

/// `layers`: F r, g, b, B r, g, b of n cells, rows of kTile.
CUTOUT_SIMD void correct_row(const float* __restrict red, const float* __restrict green,
                             const float* __restrict blue, const float* scale, const float* offset,
                             const float* __restrict layers, const std::uint8_t* __restrict open,
                             const std::uint8_t* __restrict faint, int n, float* __restrict alpha,
                             float* __restrict settled, float* __restrict told) {
  for (int i = 0; i < n; ++i) {
    const float colour[3] = {red[i] * scale[0] + offset[0], green[i] * scale[1] + offset[1],
                             blue[i] * scale[2] + offset[2]};
    const float* at = layers + i;
    const float fore[3] = {at[0], at[kTile], at[2 * kTile]};
    const float back[3] = {at[3 * kTile], at[4 * kTile], at[5 * kTile]};
    const Evidence evidence = but_raised(evidence_of(colour, fore, back), alpha[i], faint[i] != 0);
    const float value = corrected(alpha[i], evidence);
    alpha[i] = open[i] != 0 ? value : alpha[i];
    settled[i] = open[i] != 0 ? evidence.belief : 0.0F;
    told[i] = open[i] != 0 ? evidence.share : 0.0F;
  }
}

void correct_tile(const Guide& guide, const Level& colours, const std::uint8_t* open,
                  const std::uint8_t* faint, const Tile& tile, CorrectedAlpha& result) {
  const int n = tile.right - tile.left;
  Widened widened(colours, guide.width, tile.left, n);
  std::array<float, static_cast<std::size_t>(Widened::kColours) * kTile> layers{};
  for (int y = tile.top; y < tile.bottom; ++y) {
    const Half v = half_of(y, colours.height);
    for (int c = 0; c < Widened::kColours; ++c) {
      blend_row(widened.row(c, v.near), widened.row(c, v.far), n, layers.data() + c * kTile);
    }
    const std::size_t cell = guide.at(tile.left, y);
    correct_row(guide.planes[0] + cell, guide.planes[1] + cell, guide.planes[2] + cell,
                guide.scale.data(), guide.offset.data(), layers.data(), open + cell, faint + cell,
                n, result.alpha.get() + cell, result.settled.get() + cell,
                result.told.get() + cell);
  }
}

/// Sides of a row -> those its cells have in common with their neighbours along it.
void common_along(const std::uint8_t* sides, int width, std::vector<std::uint8_t>& bordered,
                  std::uint8_t* out) {
  bordered.assign(static_cast<std::size_t>(width + 2 * kForeReach), kFore | kBack);
  std::copy_n(sides, width, bordered.data() + kForeReach);
  along_row(bordered.data() + kForeReach, width, out);
}

}  // namespace

CorrectedAlpha correct_alpha(const Guide& guide, std::span<const float> p, ThreadPool& pool) {
  CorrectedAlpha result{std::make_unique_for_overwrite<float[]>(guide.cells()),
                        std::make_unique_for_overwrite<float[]>(guide.cells()),
                        std::make_unique_for_overwrite<float[]>(guide.cells())};
  const auto along = std::make_unique_for_overwrite<std::uint8_t[]>(guide.cells());
  const auto inside = std::make_unique_for_overwrite<std::uint8_t[]>(guide.cells());
  const auto faint = std::make_unique_for_overwrite<std::uint8_t[]>(guide.cells());
  const auto height = static_cast<std::size_t>(guide.height);
  const int width = guide.width;
  pool.parallel_for(height, kRowGrain, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint8_t> sides(static_cast<std::size_t>(width));
    std::vector<std::uint8_t> bordered;
    for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
      const std::size_t cell = guide.at(0, y);
      begin_row(p.data() + cell, width, result.alpha.get() + cell, sides.data());
      std::fill_n(result.settled.get() + cell, width, 0.0F);
      std::fill_n(result.told.get() + cell, width, 0.0F);
      common_along(sides.data(), width, bordered, along.get() + cell);
      wide_along(result.alpha.get() + cell, width, is_subject, inside.get() + cell);
      wide_along(result.alpha.get() + cell, width, is_rest, faint.get() + cell);
    }
  });
  const auto strips = static_cast<std::size_t>((width + kStrip - 1) / kStrip);
  pool.parallel_for(strips, 1, [&](std::size_t begin, std::size_t end) {
    for (auto i = static_cast<int>(begin); i < static_cast<int>(end); ++i) {
      const int right = std::min((i + 1) * kStrip, width);
      wide_down(guide, i * kStrip, right, inside.get());
      wide_down(guide, i * kStrip, right, faint.get());
    }
  });
  const auto sure = std::make_unique_for_overwrite<float[]>(guide.cells());
  const auto open = std::make_unique_for_overwrite<std::uint8_t[]>(guide.cells());
  std::atomic<unsigned> found{0};
  pool.parallel_for(height, kRowGrain, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint8_t> sides(static_cast<std::size_t>(width));
    for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
      std::fill(sides.begin(), sides.end(), static_cast<std::uint8_t>(kFore | kBack));
      const int last = std::min(y + kForeReach, guide.height - 1);
      for (int j = std::max(y - kForeReach, 0); j <= last; ++j) {
        const bool near = j >= y - kBackReach && j <= y + kBackReach;
        and_row(along.get() + guide.at(0, j), near ? 0 : kBack, width, sides.data());
      }
      const std::size_t cell = guide.at(0, y);
      found |= finish_row(sides.data(), inside.get() + cell, width, sure.get() + cell,
                          open.get() + cell);
    }
  });
  if (found != (kFore | kBack)) return result;
  const std::vector<Tile> tiles = tiles_near(open.get(), guide.width, guide.height, 0);
  if (tiles.empty()) return result;
  const Level colours = spread_colours(guide, sure.get(), kUnknown, pool);
  pool.parallel_for(tiles.size(), kTileGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      correct_tile(guide, colours, open.get(), faint.get(), tiles[i], result);
    }
  });
  return result;
}

CorrectedAlpha correct_alpha_scalar(const Guide& guide, std::span<const float> p) {
  CorrectedAlpha result{std::make_unique<float[]>(guide.cells()),
                        std::make_unique<float[]>(guide.cells()),
                        std::make_unique<float[]>(guide.cells())};
  float* alpha = result.alpha.get();
  for (std::size_t i = 0; i < guide.cells(); ++i) alpha[i] = clamp01(p[i]);
  const auto all = [&](int x, int y, int reach, auto holds) {
    for (int j = std::max(y - reach, 0); j <= std::min(y + reach, guide.height - 1); ++j) {
      for (int i = std::max(x - reach, 0); i <= std::min(x + reach, guide.width - 1); ++i) {
        if (!holds(p[guide.at(i, j)])) return false;
      }
    }
    return true;
  };
  std::vector<float> sure(guide.cells());
  bool fore = false;
  bool back = false;
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const bool solid = all(x, y, kForeReach, [](float v) { return v > kSureForeground; });
      const bool inside = all(x, y, kWideReach, is_subject);
      const bool outside = all(x, y, kBackReach, [](float v) { return !(v >= kSureBackground); });
      sure[guide.at(x, y)] = solid || inside ? 1.0F : (outside ? 0.0F : kUnknown);
      fore = fore || solid;
      back = back || outside;
    }
  }
  if (!fore || !back) return result;
  const Level colours = spread_colours_scalar(guide, sure.data(), kUnknown);
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const std::size_t cell = guide.at(x, y);
      if (sure[cell] != kUnknown) continue;
      const float colour[3] = {guide.colour(0, cell), guide.colour(1, cell), guide.colour(2, cell)};
      const auto layer = [&](int plane) { return from_coarse(colours, plane, x, y); };
      const float foreground[3] = {layer(0), layer(1), layer(2)};
      const float background[3] = {layer(4), layer(5), layer(6)};
      const bool faint = all(x, y, kWideReach, is_rest);
      const Evidence evidence =
          but_raised(evidence_of(colour, foreground, background), alpha[cell], faint);
      alpha[cell] = corrected(alpha[cell], evidence);
      result.settled[cell] = evidence.belief;
      result.told[cell] = evidence.share;
    }
  }
  return result;
}

}  // namespace cutout
