#include "matte/refine.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "core/simd.h"
#include "matte/cubic_taps.h"
#include "matte/deblur.h"
#include "matte/foreground_colours.h"
#include "matte/local_model.h"
#include "matte/math/full_size.h"
#include "matte/tiles.h"

namespace cutout {

namespace {

constexpr int kTileWidth = 256;  // pixels
constexpr int kTileHeight = 64;
constexpr int kSegment = 64;  // pixels of a row that are classified together
constexpr int kLanes = GuideAxis::kLanes;

// Vector types as in image/filter.cc.
typedef float F32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef std::int32_t I32x8 __attribute__((vector_size(32), aligned(4), may_alias));

constexpr std::size_t kPixelGrain = 16384;

CUTOUT_SIMD void toward_samples_row(const float* __restrict alpha,
                                    const float* __restrict sample_confidence,
                                    const float* __restrict sampled_alpha, std::size_t n,
                                    float* __restrict out) {
  for (std::size_t i = 0; i < n; ++i)
    out[i] = toward_samples(alpha[i], sample_confidence[i], sampled_alpha[i]);
}

int tiles_across(const Guide& guide) { return (guide.width + kTile - 1) / kTile; }

/// Index of the tile that holds a network pixel.
std::size_t tile_of(const Guide& guide, int x, int y) {
  return static_cast<std::size_t>(y / kTile) * static_cast<std::size_t>(tiles_across(guide)) +
         static_cast<std::size_t>(x / kTile);
}

/// Whether a network pixel in columns left .. right of row a or b is uncertain.
bool any_uncertain(const SolvedEdges& edges, int left, int right, int a, int b) {
  const std::uint8_t* upper = edges.matte.uncertain.get() + edges.guide.at(0, a);
  const std::uint8_t* lower = edges.matte.uncertain.get() + edges.guide.at(0, b);
  std::uint32_t any = 0;
  for (int x = left; x <= right; ++x) any |= static_cast<std::uint32_t>(upper[x] | lower[x]);
  return any != 0;
}

/// Offsets of n planes that go through the alpha of their own network pixels.
CUTOUT_SIMD void offset_row(const float* __restrict values, int stride, const float* __restrict red,
                            const float* __restrict green, const float* __restrict blue,
                            const float* scale, const float* offset, const float* __restrict alpha,
                            int n, float* __restrict out) {
  for (int i = 0; i < n; ++i) {
    const float* at = values + i;
    const float colour[3] = {red[i] * scale[0] + offset[0], green[i] * scale[1] + offset[1],
                             blue[i] * scale[2] + offset[2]};
    const float slopes[3] = {at[0], at[stride], at[2 * stride]};
    out[i] = offset_through(colour, slopes, alpha[i]);
  }
}

/// Interpolates a row of network pixels, planes `stride` apart, to the image's width: kChannels
/// planes of kTileWidth. The row starts with network pixel `left`; kLanes numbers behind a plane
/// are readable.
CUTOUT_SIMD void interpolate_row(const float* __restrict values, int stride,
                                 const int* __restrict base, const float* __restrict t, int left,
                                 int n, float* __restrict out) {
  for (int i = 0; i < n; i += kLanes) {
    const float* from = values + (base[i] - left);
    float* to = out + i;
    if (base[i + kLanes - 1] - base[i] < kLanes - 1) {
      // All lanes read from eight adjacent network pixels: one load and two permutations.
      const I32x8 at = *reinterpret_cast<const I32x8*>(base + i) - base[i];
      const F32x8 share = *reinterpret_cast<const F32x8*>(t + i);
      for (int k = 0; k < kChannels; ++k, from += stride, to += kTileWidth) {
        const F32x8 loaded = *reinterpret_cast<const F32x8*>(from);
        const F32x8 a = __builtin_shuffle(loaded, at);
        const F32x8 b = __builtin_shuffle(loaded, at + 1);
        *reinterpret_cast<F32x8*>(to) = a + share * (b - a);
      }
    } else {  // columns from the n-th on may refer to network pixels outside the row
      for (int k = 0; k < kChannels; ++k, from += stride, to += kTileWidth) {
        for (int j = 0; j < kLanes && i + j < n; ++j) {
          const int at = base[i + j] - base[i];
          to[j] = blend(from[at], from[at + 1], t[i + j]);
        }
      }
    }
  }
}

/// Enlarges a row of alpha to the image's width by the spline with `weights`. The row starts with
/// the network pixel before `left`; kLanes numbers behind it are readable.
CUTOUT_SIMD void interpolate_alpha_row(const float* __restrict alpha, const int* __restrict base,
                                       const float* const* weights, int left, int n,
                                       float* __restrict out) {
  const float* __restrict wa = weights[0];
  const float* __restrict wb = weights[1];
  const float* __restrict wc = weights[2];
  const float* __restrict wd = weights[3];
  for (int i = 0; i < n; i += kLanes) {
    const float* from = alpha + (base[i] - left);
    if (base[i + kLanes - 1] - base[i] < kLanes) {
      const I32x8 at = *reinterpret_cast<const I32x8*>(base + i) - base[i];
      const F32x8 a = __builtin_shuffle(*reinterpret_cast<const F32x8*>(from), at);
      const F32x8 b = __builtin_shuffle(*reinterpret_cast<const F32x8*>(from + 1), at);
      const F32x8 c = __builtin_shuffle(*reinterpret_cast<const F32x8*>(from + 2), at);
      const F32x8 d = __builtin_shuffle(*reinterpret_cast<const F32x8*>(from + 3), at);
      const F32x8 value = *reinterpret_cast<const F32x8*>(wa + i) * a +
                          *reinterpret_cast<const F32x8*>(wb + i) * b +
                          *reinterpret_cast<const F32x8*>(wc + i) * c +
                          *reinterpret_cast<const F32x8*>(wd + i) * d;
      const F32x8 low = b < c ? b : c;
      const F32x8 high = b < c ? c : b;
      *reinterpret_cast<F32x8*>(out + i) = value < low ? low : (value > high ? high : value);
    } else {
      for (int j = i; j < i + kLanes && j < n; ++j) {
        const float* at = from + (base[j] - base[i]);
        out[j] = between(at[0], at[1], at[2], at[3], wa[j], wb[j], wc[j], wd[j]);
      }
    }
  }
}

CUTOUT_SIMD void refine_pixels(std::uint8_t* __restrict rgba, int n, const float* __restrict upper,
                               const float* __restrict lower, float t, const float* const* alpha,
                               const float* weights, std::uint32_t hidden_mask) {
  const float* __restrict a = alpha[0];
  const float* __restrict b = alpha[1];
  const float* __restrict c = alpha[2];
  const float* __restrict d = alpha[3];
  const float w0 = weights[0];
  const float w1 = weights[1];
  const float w2 = weights[2];
  const float w3 = weights[3];
  for (int i = 0; i < n; ++i) {
    const float q = between(a[i], b[i], c[i], d[i], w0, w1, w2, w3);
    std::uint32_t pixel;
    std::memcpy(&pixel, rgba + i * 4, sizeof pixel);  // rows may start at any byte
    pixel = refined_pixel(
        pixel, q,
        [&](int k) { return blend(upper[k * kTileWidth + i], lower[k * kTileWidth + i], t); },
        hidden_mask);
    std::memcpy(rgba + i * 4, &pixel, sizeof pixel);
  }
}

CUTOUT_SIMD void clear_hidden(std::uint8_t* rgba, int n) {
  for (int i = 0; i < n; ++i) {
    std::uint32_t pixel;
    std::memcpy(&pixel, rgba + i * 4, sizeof pixel);
    pixel = with_alpha(pixel, pixel >> 24, 0);
    std::memcpy(rgba + i * 4, &pixel, sizeof pixel);
  }
}

/// Interpolated rows for one tile of the image, computed when first asked for.
class TileRows {
 public:
  TileRows(const SolvedEdges& edges, const GuideAxis& columns, int x, int n)
      : edges_(edges),
        base_(columns.base.data() + x),
        t_(columns.t.data() + x),
        n_(n),
        left_(base_[0]),
        width_(std::min(base_[n - 1] + 1, edges.guide.width - 1) - left_ + 1),
        stride_(width_ + kLanes),
        model_(edges.guide, edges.matte.alpha.get(), left_, width_) {
    for (std::size_t k = 0; k < 4; ++k) spline_[k] = columns.spline[k].data() + x;
    row_.resize(static_cast<std::size_t>(kChannels * stride_));
    line_.resize(static_cast<std::size_t>(width_ + 3 + kLanes));
    for (CachedRow& cached : channel_rows_) cached.values = scratch(kChannels * kTileWidth);
    for (CachedRow& cached : alpha_rows_) cached.values = scratch(kTileWidth);
  }

  const float* channels(int y) {
    CachedRow& cached = channel_rows_[static_cast<std::size_t>(y) % channel_rows_.size()];
    if (cached.index != y) {
      cached.index = y;
      fill_row(y);
      interpolate_row(row_.data(), stride_, base_, t_, left_, n_, cached.values.get());
    }
    return cached.values.get();
  }

  const float* alpha(int y) {
    CachedRow& cached = alpha_rows_[static_cast<std::size_t>(y) % alpha_rows_.size()];
    if (cached.index != y) {
      cached.index = y;
      copy_padded(edges_.matte.alpha.get() + edges_.guide.at(0, y), edges_.guide.width, left_ - 1,
                  width_ + 3, line_.data());
      interpolate_alpha_row(line_.data(), base_, spline_.data(), left_, n_, cached.values.get());
    }
    return cached.values.get();
  }

 private:
  using Scratch = std::unique_ptr<float[]>;

  struct CachedRow {
    int index = INT_MIN;
    Scratch values;
  };

  /// Not initialised.
  static Scratch scratch(int count) {
    return std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(count));
  }

  void fill_row(int y) {
    const Guide& guide = edges_.guide;
    const std::size_t index = guide.at(left_, y);
    const auto width = static_cast<std::size_t>(width_);
    model_.row(y, channel_row(kCoefficients), stride_);
    for (int x = 0; x < width_;) {
      const int end = std::min(width_, ((left_ + x) / kTile + 1) * kTile - left_);
      const Tile& part = edges_.coloured[tile_of(guide, left_ + x, y)];
      const bool any = y >= part.top && y < part.bottom;
      const int first = any ? std::clamp(part.left - left_, x, end) : end;
      const int behind = any ? std::clamp(part.right - left_, first, end) : end;
      for (int c = 0; c < 3; ++c) {
        const auto channel = static_cast<std::size_t>(c);
        const auto copy = [&](const float* colours, float* row) {
          std::fill(row + x, row + first, 0.0F);
          std::copy(colours + index + first, colours + index + behind, row + first);
          std::fill(row + behind, row + end, 0.0F);
        };
        copy(edges_.colours.fore[channel].get(), channel_row(kFore + c));
        copy(edges_.colours.back[channel].get(), channel_row(kBack + c));
      }
      x = end;
    }
    offset_row(row_.data(), stride_, guide.planes[0] + index, guide.planes[1] + index,
               guide.planes[2] + index, guide.scale.data(), guide.offset.data(),
               edges_.matte.alpha.get() + index, width_, channel_row(kOffset));
    std::memcpy(channel_row(kConfidence), edges_.matte.confidence.get() + index,
                width * sizeof(float));
  }

  float* channel_row(int channel) {
    return row_.data() + static_cast<std::ptrdiff_t>(channel) * stride_;
  }

  const SolvedEdges& edges_;
  const int* base_;  // GuideAxis::base of the tile's columns
  const float* t_;
  std::array<const float*, 4> spline_{};
  int n_;
  int left_;    // first network pixel
  int width_;   // network pixels
  int stride_;  // network pixels of a channel's row
  LocalModel model_;
  // 0 behind the last network pixel, which is interpolated with a weight of 0.
  std::vector<float> row_;
  std::vector<float> line_;
  std::array<CachedRow, 2> channel_rows_;  // by row modulo size: adjacent rows never share an entry
  std::array<CachedRow, 4> alpha_rows_;
};

/// What happens to the pixels of a segment in all rows between two rows of network pixels.
enum class Treatment : std::uint8_t { kClear, kKeep, kRefine };
using Treatments = std::array<Treatment, kTileWidth / kSegment>;

Treatments treatments_of(const SolvedEdges& edges, const GuideAxis& columns, const Box& part,
                         int upper, int lower) {
  Treatments treatments{};
  for (int x = 0; x < part.width; x += kSegment) {
    const int left = part.left + x;
    const int first = columns.base[static_cast<std::size_t>(left)];
    const int right = std::min(left + kSegment, part.left + part.width) - 1;
    const int last =
        std::min(columns.base[static_cast<std::size_t>(right)] + 1, edges.guide.width - 1);
    treatments[static_cast<std::size_t>(x / kSegment)] =
        any_uncertain(edges, first, last, upper, lower)           ? Treatment::kRefine
        : edges.matte.alpha[edges.guide.at(first, upper)] == 0.0F ? Treatment::kClear
                                                                  : Treatment::kKeep;
  }
  return treatments;
}

/// Refines one tile of the image; `part` lies inside the region of interest and is not empty.
void refine_tile(ImageView rgba, const SolvedEdges& edges, const GuideAxis& rows,
                 const GuideAxis& columns, const Box& part, HiddenColour hidden, Summary& summary) {
  const std::uint32_t hidden_mask = hidden == HiddenColour::kClear ? 0 : 0x00FFFFFFU;
  std::optional<TileRows> tile;  // only where a segment is refined
  Treatments treatments{};
  int known = -1;  // upper row of network pixels that `treatments` is for
  for (int y = part.top; y < part.top + part.height; ++y) {
    const auto row = static_cast<std::size_t>(y);
    const int upper = rows.base[row];
    const int lower = std::min(upper + 1, edges.guide.height - 1);
    if (upper != known) treatments = treatments_of(edges, columns, part, upper, lower);
    known = upper;
    for (int x = 0, end = 0; x < part.width; x = end) {
      const Treatment treatment = treatments[static_cast<std::size_t>(x / kSegment)];
      do {
        end = std::min(end + kSegment, part.width);
      } while (end < part.width &&
               treatments[static_cast<std::size_t>(end / kSegment)] == treatment);
      const int n = end - x;
      std::uint8_t* bytes = rgba.row(y) + static_cast<std::ptrdiff_t>(part.left + x) * 4;
      if (treatment == Treatment::kClear) {
        clear_alpha(bytes, n, hidden);
        summary.opaque = false;
        continue;
      }
      if (treatment == Treatment::kRefine) {
        if (!tile) tile.emplace(edges, columns, part.left, part.width);
        std::array<const float*, 4> alpha{};
        std::array<float, 4> weights{};
        for (int k = 0; k < 4; ++k) {
          const int sample = std::clamp(upper - 1 + k, 0, edges.guide.height - 1);
          alpha[static_cast<std::size_t>(k)] = tile->alpha(sample) + x;
          weights[static_cast<std::size_t>(k)] = rows.spline[static_cast<std::size_t>(k)][row];
        }
        refine_pixels(bytes, n, tile->channels(upper) + x, tile->channels(lower) + x, rows.t[row],
                      alpha.data(), weights.data(), hidden_mask);
      }
      const AlphaRun run = scan_alpha(bytes, n);
      if (treatment == Treatment::kKeep && run.all != 255 && hidden == HiddenColour::kClear) {
        clear_hidden(bytes, n);
      }
      summary.add(run, bytes, part.left + x, n, y);
    }
  }
}

}  // namespace

LargeArray<float> alpha_for_colours(const Guide& guide, const float* alpha,
                                    const ColourSampling& samples, ThreadPool& pool) {
  auto sampled_alpha = make_large_array<float>(guide.size());
  pool.parallel_for(guide.size(), kPixelGrain, [&](std::size_t begin, std::size_t end) {
    toward_samples_row(alpha + begin, samples.sample_confidence.get() + begin,
                       samples.sampled_alpha.get() + begin, end - begin,
                       sampled_alpha.get() + begin);
  });
  return sampled_alpha;
}

SolvedEdges solve_edges(const Guide& guide, std::span<const float> p, const ColourSampling& samples,
                        ThreadPool& pool) {
  SolvedEdges edges;
  edges.matte = deblur_matte(guide, p, samples, pool);
  // A pixel beside an uncertain network pixel also reads that network pixel's neighbour.
  constexpr int kRead = 2;
  const std::uint8_t* uncertain = edges.matte.uncertain.get();
  std::vector<Tile> tiles = tiles_near(uncertain, guide.width, guide.height, kRead);
  for (Tile& tile : tiles) tile = part_near(tile, uncertain, guide.width, guide.height, kRead);
  LargeArray<float> moved;
  if (!tiles.empty() && !samples.none) {
    moved = alpha_for_colours(guide, edges.matte.alpha.get(), samples, pool);
  }
  const float* for_colours = moved ? moved.get() : edges.matte.alpha.get();
  edges.colours = estimate_colours(guide, for_colours, tiles, pool);
  const int tiles_down = (guide.height + kTile - 1) / kTile;
  edges.coloured.resize(static_cast<std::size_t>(tiles_across(guide)) *
                        static_cast<std::size_t>(tiles_down));
  for (const Tile& tile : tiles) edges.coloured[tile_of(guide, tile.left, tile.top)] = tile;
  edges.guide = guide;
  return edges;
}

MatteSummary write_edges(ImageView rgba, const SolvedEdges& edges, const Box& roi,
                         HiddenColour hidden, ThreadPool& pool) {
  const Guide& guide = edges.guide;
  const GuideAxis rows(guide.height, rgba.height);
  const GuideAxis columns(guide.width, rgba.width);
  const Box inside = clip(roi, rgba);
  const int image_tiles_across = (rgba.width + kTileWidth - 1) / kTileWidth;
  const int image_tiles_down = (rgba.height + kTileHeight - 1) / kTileHeight;
  std::vector<Summary> parts(static_cast<std::size_t>(image_tiles_across) *
                             static_cast<std::size_t>(image_tiles_down));
  pool.for_each(parts.size(), 1, [&](std::size_t i) {
    const int left = static_cast<int>(i) % image_tiles_across * kTileWidth;
    const int top = static_cast<int>(i) / image_tiles_across * kTileHeight;
    const Box tile{left, top, std::min(kTileWidth, rgba.width - left),
                   std::min(kTileHeight, rgba.height - top)};
    const Box part = intersection(tile, inside);
    if (part != tile) {
      clear_around(rgba, tile, part, hidden);
      parts[i].opaque = false;
    }
    if (!part.empty()) refine_tile(rgba, edges, rows, columns, part, hidden, parts[i]);
  });
  Summary whole;
  for (const Summary& part : parts) whole.add(part);
  return whole.result();
}

}  // namespace cutout
