#include "matte/refine.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

#include "core/simd.h"
#include "matte/colour.h"
#include "matte/local_model.h"
#include "matte/sharpen.h"
#include "matte/tiles.h"
#include "matte/upsample.h"

namespace cutout {

namespace {

constexpr int kTileWidth = 256;  // pixels
constexpr int kTileHeight = 64;
constexpr int kSegment = 64;      // pixels of a row that are judged together
constexpr int kLanes = 8;         // pixels that are interpolated together
constexpr float kGray = 128.0F;   // what lies behind a picture's own transparency, as for networks
constexpr float kSurety = 2e-3F;  // variance of a trusted alpha, in units of the colours'
constexpr float kNoise = 1e-3F;   // squared distance of a colour from F and B's line that is noise

/// What is interpolated from cells to pixels.
enum Channel {
  kPlane,  // four numbers
  kFore = kPlane + 4,
  kBack = kFore + 3,
  kLack = kBack + 3,  // the sharper alpha less the models' at the cell
  kTrust,
  kChannels
};

// Vectors of the compiler, as in image/filter.cc.
typedef float F32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef std::int32_t I32x8 __attribute__((vector_size(32), aligned(4), may_alias));

/// Where the centres of the pixels of one axis lie among cells: `t` of the way from cell `first` to
/// the next one (none at the last cell: t is 0 there), and the spline's weights of cells
/// first - 1 .. first + 2, the border repeated. The last pixel is repeated for whole vectors.
struct Axis {
  std::vector<int> first;
  std::vector<float> t;
  std::array<std::vector<float>, 4> spline;

  Axis(int in, int out) {
    const auto count = static_cast<std::size_t>(out);
    const std::size_t padded = count + kLanes - 1;
    first.resize(padded);
    t.resize(padded);
    for (std::vector<float>& weights : spline) weights.resize(padded);
    const std::vector<Cubic> cubics = cubic_positions(in, out);
    for (std::size_t i = 0; i < padded; ++i) {
      const std::size_t pixel = std::min(i, count - 1);
      const Cubic& cubic = cubics[pixel];
      const double centre =
          std::clamp((static_cast<double>(pixel) + 0.5) * in / out - 0.5, 0.0, in - 1.0);
      first[i] = cubic.at[1];
      t[i] = static_cast<float>(centre - first[i]);
      for (std::size_t k = 0; k < 4; ++k) spline[k][i] = cubic.weights[k];
    }
  }
};

CUTOUT_INLINE float blend(float a, float b, float t) { return a + t * (b - a); }

/// alpha^2 + (1 - alpha)^2.
CUTOUT_INLINE float squares(float alpha) {
  const float rest = 1.0F - alpha;
  return alpha * alpha + rest * rest;
}

CUTOUT_INLINE std::uint32_t to_byte(float v) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(v * 255.0F + 0.5F));
}

/// The numbers of one pixel: `value(channel)` interpolated, `q` the upsampled alpha -> the pixel.
template <typename Value>
CUTOUT_INLINE std::uint32_t refined_pixel(std::uint32_t pixel, float q, const Value& value,
                                          std::uint32_t hidden_mask) {
  const std::uint32_t own = pixel >> 24;
  const float cover = static_cast<float>(static_cast<std::int32_t>(own)) * (1.0F / 255.0F);
  const float gray = kGray * (1.0F - cover);
  const auto colour_of = [&](int shift) {
    const auto byte = static_cast<std::int32_t>((pixel >> shift) & 255U);
    return (static_cast<float>(byte) * cover + gray) * (1.0F / 255.0F);
  };
  const float colour[3] = {colour_of(0), colour_of(8), colour_of(16)};
  const float plane[4] = {value(kPlane), value(kPlane + 1), value(kPlane + 2), value(kPlane + 3)};
  const float fore[3] = {value(kFore), value(kFore + 1), value(kFore + 2)};
  const float back[3] = {value(kBack), value(kBack + 1), value(kBack + 2)};
  const float trust = value(kTrust);
  const float guided = clamp01(model_alpha(colour, plane, fore, back) + value(kLack));
  const float first = clamp01(blend(q, guided, trust));
  const float d[3] = {fore[0] - back[0], fore[1] - back[1], fore[2] - back[2]};
  const auto left = [&](int c, float a) { return colour[c] - back[c] - a * d[c]; };
  const float r[3] = {left(0, first), left(1, first), left(2, first)};
  const float apart = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
  const float along = r[0] * d[0] + r[1] * d[1] + r[2] * d[2];
  const float beside = r[0] * r[0] + r[1] * r[1] + r[2] * r[2] - along * along / (apart + kNoise);
  const float surety = trust * kSurety / (kNoise + (beside > 0.0F ? beside : 0.0F));
  const float alpha = clamp01(first + surety * along / (squares(first) + surety * apart));
  const float share = alpha / squares(alpha);
  const auto own_colour = [&](int c) { return to_byte(clamp01(fore[c] + share * left(c, alpha))); };
  const std::uint32_t clean = own_colour(0) | (own_colour(1) << 8) | (own_colour(2) << 16);
  const std::uint32_t m = to_byte(alpha);
  // All bits where the pixel is mixed: arithmetic, not a branch, so that the loop is vectorised.
  const std::uint32_t mixed =
      0U - (static_cast<std::uint32_t>(own == 255) & static_cast<std::uint32_t>(m != 255) &
            static_cast<std::uint32_t>(m != 0));
  const std::uint32_t rgb = (clean & mixed) | (pixel & ~mixed & 0x00FFFFFFU);
  return with_alpha(rgb, multiply_255(own, m), hidden_mask);
}

/// How many times wider the picture is than the guide, the geometric mean of both directions.
float enlargement_of(const Guide& guide, const ImageView& picture) {
  const double pixels = static_cast<double>(picture.width) * picture.height;
  return static_cast<float>(std::sqrt(pixels / static_cast<double>(guide.cells())));
}

constexpr std::size_t kCellGrain = 16384;

/// The alpha that colours are estimated for.
CUTOUT_INLINE float told_alpha(float alpha, float settled, float told) {
  return alpha + settled * (told - alpha);
}

CUTOUT_SIMD void told_cells(const float* __restrict alpha, const float* __restrict settled,
                            const float* __restrict told, std::size_t n, float* __restrict out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = told_alpha(alpha[i], settled[i], told[i]);
}

CellColours colours_of(const Guide& guide, const float* alpha, const std::vector<Tile>& tiles,
                       ThreadPool& pool) {
  if (guide.settled == nullptr || tiles.empty()) {
    return estimate_colours(guide, alpha, tiles, pool);
  }
  const auto told = std::make_unique_for_overwrite<float[]>(guide.cells());
  pool.parallel_for(guide.cells(), kCellGrain, [&](std::size_t begin, std::size_t end) {
    told_cells(alpha + begin, guide.settled + begin, guide.told + begin, end - begin,
               told.get() + begin);
  });
  return estimate_colours(guide, told.get(), tiles, pool);
}

/// Everything that is known at the guide's size.
struct Cells {
  const Guide& guide;
  SharpMatte matte;
  CellColours colours;
  std::vector<std::uint8_t> coloured;  // 1: this tile's cells have colours
  int tiles_across = 0;

  Cells(const Guide& g, std::span<const float> p, float enlargement, ThreadPool& pool) : guide(g) {
    matte = sharpen_matte(guide, p, enlargement, pool);
    // A pixel beside an unsure cell also looks at that cell's neighbour.
    const std::vector<Tile> tiles = tiles_near(matte.unsure.get(), guide.width, guide.height, 2);
    colours = colours_of(guide, matte.alpha.get(), tiles, pool);
    tiles_across = (guide.width + kTile - 1) / kTile;
    const int down = (guide.height + kTile - 1) / kTile;
    coloured.resize(static_cast<std::size_t>(tiles_across) * static_cast<std::size_t>(down));
    for (const Tile& tile : tiles) {
      coloured[static_cast<std::size_t>(tile.top / kTile) * static_cast<std::size_t>(tiles_across) +
               static_cast<std::size_t>(tile.left / kTile)] = 1;
    }
  }

  [[nodiscard]] bool has_colours(int x, int y) const {
    return coloured[static_cast<std::size_t>(y / kTile) * static_cast<std::size_t>(tiles_across) +
                    static_cast<std::size_t>(x / kTile)] != 0;
  }
  /// True if a cell in columns left..right of rows a and b is unsure.
  [[nodiscard]] bool unsure(int left, int right, int a, int b) const {
    const std::uint8_t* upper = matte.unsure.get() + guide.at(0, a);
    const std::uint8_t* lower = matte.unsure.get() + guide.at(0, b);
    std::uint32_t any = 0;
    for (int x = left; x <= right; ++x) any |= static_cast<std::uint32_t>(upper[x] | lower[x]);
    return any != 0;
  }
};

CUTOUT_SIMD void lack_row(const float* __restrict cells, int stride, const float* __restrict red,
                          const float* __restrict green, const float* __restrict blue,
                          const float* scale, const float* offset, const float* __restrict alpha,
                          int n, float* __restrict out) {
  for (int i = 0; i < n; ++i) {
    const float* at = cells + i;
    const float colour[3] = {red[i] * scale[0] + offset[0], green[i] * scale[1] + offset[1],
                             blue[i] * scale[2] + offset[2]};
    const float plane[4] = {at[0], at[stride], at[2 * stride], at[3 * stride]};
    const float fore[3] = {at[kFore * stride], at[(kFore + 1) * stride], at[(kFore + 2) * stride]};
    const float back[3] = {at[kBack * stride], at[(kBack + 1) * stride], at[(kBack + 2) * stride]};
    out[i] = alpha[i] - model_alpha(colour, plane, fore, back);
  }
}

/// A row of cells, planes `stride` apart, at the picture's width: kChannels planes of kTileWidth.
/// `first` counts from the row's own first cell `left`; behind a plane kLanes numbers are readable.
CUTOUT_SIMD void widen(const float* __restrict cells, int stride, const int* __restrict first,
                       const float* __restrict t, int left, int n, float* __restrict out) {
  for (int i = 0; i < n; i += kLanes) {
    const float* from = cells + (first[i] - left);
    float* to = out + i;
    if (first[i + kLanes - 1] - first[i] < kLanes - 1) {
      // All of them lie among eight cells: one load and two permutations instead of gathers.
      const I32x8 at = *reinterpret_cast<const I32x8*>(first + i) - first[i];
      const F32x8 share = *reinterpret_cast<const F32x8*>(t + i);
      for (int k = 0; k < kChannels; ++k, from += stride, to += kTileWidth) {
        const F32x8 loaded = *reinterpret_cast<const F32x8*>(from);
        const F32x8 a = __builtin_shuffle(loaded, at);
        const F32x8 b = __builtin_shuffle(loaded, at + 1);
        *reinterpret_cast<F32x8*>(to) = a + share * (b - a);
      }
    } else {  // columns behind the n-th may belong to cells that are not in the row
      for (int k = 0; k < kChannels; ++k, from += stride, to += kTileWidth) {
        for (int j = 0; j < kLanes && i + j < n; ++j) {
          const int at = first[i + j] - first[i];
          to[j] = blend(from[at], from[at + 1], t[i + j]);
        }
      }
    }
  }
}

/// A row of alpha, which starts with the cell before `left` and has kLanes readable numbers behind
/// it, at the picture's width. `weights`: the spline's.
CUTOUT_SIMD void widen_alpha(const float* __restrict alpha, const int* __restrict first,
                             const float* const* weights, int left, int n, float* __restrict out) {
  const float* __restrict wa = weights[0];
  const float* __restrict wb = weights[1];
  const float* __restrict wc = weights[2];
  const float* __restrict wd = weights[3];
  for (int i = 0; i < n; i += kLanes) {
    const float* from = alpha + (first[i] - left);
    if (first[i + kLanes - 1] - first[i] < kLanes) {
      const I32x8 at = *reinterpret_cast<const I32x8*>(first + i) - first[i];
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
        const float* at = from + (first[j] - first[i]);
        out[j] = between(at[0], at[1], at[2], at[3], wa[j], wb[j], wc[j], wd[j]);
      }
    }
  }
}

CUTOUT_SIMD Seen refine_pixels(std::uint8_t* __restrict rgba, int n, const float* __restrict upper,
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
  Seen seen;
  for (int i = 0; i < n; ++i) {
    const float q = between(a[i], b[i], c[i], d[i], w0, w1, w2, w3);
    std::uint32_t pixel;
    std::memcpy(&pixel, rgba + i * 4, sizeof pixel);  // rows may start at any byte
    pixel = refined_pixel(
        pixel, q,
        [&](int k) { return blend(upper[k * kTileWidth + i], lower[k * kTileWidth + i], t); },
        hidden_mask);
    std::memcpy(rgba + i * 4, &pixel, sizeof pixel);
    const std::uint32_t own = pixel >> 24;
    seen.any |= own;
    seen.all &= own;
    seen.foreground += own >> 7;
  }
  return seen;
}

CUTOUT_SIMD void clear_hidden(std::uint8_t* rgba, int n) {
  for (int i = 0; i < n; ++i) {
    std::uint32_t pixel;
    std::memcpy(&pixel, rgba + i * 4, sizeof pixel);
    pixel = with_alpha(pixel, pixel >> 24, 0);
    std::memcpy(rgba + i * 4, &pixel, sizeof pixel);
  }
}

/// Rows of cells as one tile of the picture needs them, made when they are first asked for.
class TileRows {
 public:
  TileRows(const Cells& cells, const Axis& columns, int x, int n)
      : cells_(cells),
        first_(columns.first.data() + x),
        t_(columns.t.data() + x),
        n_(n),
        left_(first_[0]),
        width_(std::min(first_[n - 1] + 1, cells.guide.width - 1) - left_ + 1),
        stride_(width_ + kLanes),
        model_(cells.guide, cells.matte.alpha.get(), left_, width_, Models::kPlane) {
    for (std::size_t k = 0; k < 4; ++k) spline_[k] = columns.spline[k].data() + x;
    row_.resize(static_cast<std::size_t>(kChannels * stride_));
    line_.resize(static_cast<std::size_t>(width_ + 3 + kLanes));
    for (Wide& wide : wide_) wide.values.resize(kChannels * kTileWidth);
    for (Wide& wide : alpha_) wide.values.resize(kTileWidth);
  }

  const float* channels(int y) {
    Wide& wide = wide_[static_cast<std::size_t>(y) % wide_.size()];
    if (wide.index != y) {
      wide.index = y;
      fill_row(y);
      widen(row_.data(), stride_, first_, t_, left_, n_, wide.values.data());
    }
    return wide.values.data();
  }

  const float* alpha(int y) {
    Wide& wide = alpha_[static_cast<std::size_t>(y) % alpha_.size()];
    if (wide.index != y) {
      wide.index = y;
      copy_cells(cells_.matte.alpha.get() + cells_.guide.at(0, y), cells_.guide.width, left_ - 1,
                 width_ + 3, line_.data());
      widen_alpha(line_.data(), first_, spline_.data(), left_, n_, wide.values.data());
    }
    return wide.values.data();
  }

 private:
  struct Wide {
    int index = INT_MIN;
    std::vector<float> values;
  };

  void fill_row(int y) {
    const Guide& guide = cells_.guide;
    const std::size_t cell = guide.at(left_, y);
    const auto width = static_cast<std::size_t>(width_);
    static_assert(kPlane + kPlaneChannels == kFore);
    model_.row(y, plane(kPlane), stride_);
    for (int x = 0; x < width_;) {
      const int end = std::min(width_, ((left_ + x) / kTile + 1) * kTile - left_);
      const std::size_t bytes = static_cast<std::size_t>(end - x) * sizeof(float);
      const bool known = cells_.has_colours(left_ + x, y);
      for (int c = 0; c < 3; ++c) {
        const auto channel = static_cast<std::size_t>(c);
        float* fore = plane(kFore + c) + x;
        float* back = plane(kBack + c) + x;
        if (known) {
          const std::size_t at = cell + static_cast<std::size_t>(x);
          std::memcpy(fore, cells_.colours.fore[channel].get() + at, bytes);
          std::memcpy(back, cells_.colours.back[channel].get() + at, bytes);
        } else {
          std::memset(fore, 0, bytes);
          std::memset(back, 0, bytes);
        }
      }
      x = end;
    }
    lack_row(row_.data(), stride_, guide.planes[0] + cell, guide.planes[1] + cell,
             guide.planes[2] + cell, guide.scale.data(), guide.offset.data(),
             cells_.matte.alpha.get() + cell, width_, plane(kLack));
    std::memcpy(plane(kTrust), cells_.matte.trust.get() + cell, width * sizeof(float));
  }

  float* plane(int channel) { return row_.data() + static_cast<std::ptrdiff_t>(channel) * stride_; }

  const Cells& cells_;
  const int* first_;  // of the tile's columns, as in Axis
  const float* t_;
  std::array<const float*, 4> spline_{};
  int n_;
  int left_;    // first column of cells
  int width_;   // cells
  int stride_;  // cells of a plane
  LocalModel model_;
  std::vector<float> row_;
  std::vector<float> line_;
  std::array<Wide, 2> wide_;  // neighbouring rows never share a place
  std::array<Wide, 4> alpha_;
};

/// What there is to do with the pixels of a segment in all rows between two rows of cells.
enum class Kind : std::uint8_t { kClear, kKeep, kRefine };
using Kinds = std::array<Kind, kTileWidth / kSegment>;

Kinds kinds_of(const Cells& cells, const Axis& columns, const Box& part, int upper, int lower) {
  Kinds kinds{};
  for (int x = 0; x < part.width; x += kSegment) {
    const int left = part.left + x;
    const int first = columns.first[static_cast<std::size_t>(left)];
    const int right = std::min(left + kSegment, part.left + part.width) - 1;
    const int last =
        std::min(columns.first[static_cast<std::size_t>(right)] + 1, cells.guide.width - 1);
    kinds[static_cast<std::size_t>(x / kSegment)] =
        cells.unsure(first, last, upper, lower)                   ? Kind::kRefine
        : cells.matte.alpha[cells.guide.at(first, upper)] == 0.0F ? Kind::kClear
                                                                  : Kind::kKeep;
  }
  return kinds;
}

/// One tile of the picture; `part` is inside the region of interest and not empty.
void refine_tile(ImageView rgba, const Cells& cells, const Axis& rows, const Axis& columns,
                 const Box& part, HiddenColour hidden, Summary& summary) {
  const std::uint32_t hidden_mask = hidden == HiddenColour::kClear ? 0 : 0x00FFFFFFU;
  std::optional<TileRows> tile;  // many tiles need none of it
  Kinds kinds{};
  int known = -1;  // row of cells that `kinds` starts from
  for (int y = part.top; y < part.top + part.height; ++y) {
    const auto row = static_cast<std::size_t>(y);
    const int upper = rows.first[row];
    const int lower = std::min(upper + 1, cells.guide.height - 1);
    if (upper != known) kinds = kinds_of(cells, columns, part, upper, lower);
    known = upper;
    for (int x = 0, end = 0; x < part.width; x = end) {
      const Kind kind = kinds[static_cast<std::size_t>(x / kSegment)];
      do {
        end = std::min(end + kSegment, part.width);
      } while (end < part.width && kinds[static_cast<std::size_t>(end / kSegment)] == kind);
      const int n = end - x;
      std::uint8_t* bytes = rgba.row(y) + static_cast<std::ptrdiff_t>(part.left + x) * 4;
      if (kind == Kind::kClear) {
        clear_alpha(bytes, n, hidden);
        summary.opaque = false;
        continue;
      }
      Seen seen;
      if (kind == Kind::kRefine) {
        if (!tile) tile.emplace(cells, columns, part.left, part.width);
        std::array<const float*, 4> alpha{};
        std::array<float, 4> weights{};
        for (int k = 0; k < 4; ++k) {
          const int cell = std::clamp(upper - 1 + k, 0, cells.guide.height - 1);
          alpha[static_cast<std::size_t>(k)] = tile->alpha(cell) + x;
          weights[static_cast<std::size_t>(k)] = rows.spline[static_cast<std::size_t>(k)][row];
        }
        seen = refine_pixels(bytes, n, tile->channels(upper) + x, tile->channels(lower) + x,
                             rows.t[row], alpha.data(), weights.data(), hidden_mask);
      } else {
        seen = look_at(bytes, n);
        if (seen.all != 255 && hidden == HiddenColour::kClear) clear_hidden(bytes, n);
      }
      summary.add(seen, bytes, part.left + x, n, y);
    }
  }
}

void clear_box(ImageView rgba, const Box& box, HiddenColour hidden, Summary& summary) {
  if (box.empty()) return;
  for (int y = box.top; y < box.top + box.height; ++y) {
    clear_alpha(rgba.row(y) + static_cast<std::ptrdiff_t>(box.left) * 4, box.width, hidden);
  }
  summary.opaque = false;
}

/// The part of a tile that lies in `inside`; the rest of it is cleared.
Box clear_around(ImageView rgba, const Box& tile, const Box& inside, HiddenColour hidden,
                 Summary& summary) {
  const int left = std::max(tile.left, inside.left);
  const int top = std::max(tile.top, inside.top);
  const int right = std::min(tile.left + tile.width, inside.left + inside.width);
  const int bottom = std::min(tile.top + tile.height, inside.top + inside.height);
  if (left >= right || top >= bottom) {
    clear_box(rgba, tile, hidden, summary);
    return {};
  }
  const int height = bottom - top;
  clear_box(rgba, {tile.left, tile.top, tile.width, top - tile.top}, hidden, summary);
  clear_box(rgba, {tile.left, bottom, tile.width, tile.top + tile.height - bottom}, hidden,
            summary);
  clear_box(rgba, {tile.left, top, left - tile.left, height}, hidden, summary);
  clear_box(rgba, {right, top, tile.left + tile.width - right, height}, hidden, summary);
  return {left, top, right - left, height};
}

}  // namespace

MatteSummary refine_matte(ImageView rgba, const Guide& guide, std::span<const float> p,
                          const Box& roi, HiddenColour hidden, ThreadPool& pool) {
  const Cells cells(guide, p, enlargement_of(guide, rgba), pool);
  const Axis rows(guide.height, rgba.height);
  const Axis columns(guide.width, rgba.width);
  const Box inside = clip(roi, rgba);
  const int across = (rgba.width + kTileWidth - 1) / kTileWidth;
  const int down = (rgba.height + kTileHeight - 1) / kTileHeight;
  std::vector<Summary> parts(static_cast<std::size_t>(across) * static_cast<std::size_t>(down));
  pool.parallel_for(parts.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const int left = static_cast<int>(i) % across * kTileWidth;
      const int top = static_cast<int>(i) / across * kTileHeight;
      const Box tile{left, top, std::min(kTileWidth, rgba.width - left),
                     std::min(kTileHeight, rgba.height - top)};
      const Box part = clear_around(rgba, tile, inside, hidden, parts[i]);
      if (!part.empty()) refine_tile(rgba, cells, rows, columns, part, hidden, parts[i]);
    }
  });
  Summary whole;
  for (const Summary& part : parts) whole.add(part);
  return whole.result();
}

MatteSummary refine_matte_scalar(ImageView rgba, const Guide& guide, std::span<const float> p,
                                 const Box& roi, HiddenColour hidden) {
  const SharpMatte matte = sharpen_matte_scalar(guide, p, enlargement_of(guide, rgba));
  std::vector<float> told(matte.alpha.get(), matte.alpha.get() + guide.cells());
  for (std::size_t cell = 0; guide.settled != nullptr && cell < guide.cells(); ++cell) {
    told[cell] = told_alpha(told[cell], guide.settled[cell], guide.told[cell]);
  }
  const CellColours colours = estimate_colours_scalar(guide, told.data());
  const Axis rows(guide.height, rgba.height);
  const Axis columns(guide.width, rgba.width);
  const std::uint32_t hidden_mask = hidden == HiddenColour::kClear ? 0 : 0x00FFFFFFU;
  std::vector<std::array<float, kChannels>> cells(guide.cells());
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const std::size_t cell = guide.at(x, y);
      std::array<float, kChannels>& at = cells[cell];
      const auto model = local_model_scalar(guide, matte.alpha.get(), x, y);
      std::copy_n(model.begin(), 4, at.begin());
      for (std::size_t c = 0; c < 3; ++c) {
        at[kFore + c] = colours.fore[c][cell];
        at[kBack + c] = colours.back[c][cell];
      }
      const float colour[3] = {guide.colour(0, cell), guide.colour(1, cell), guide.colour(2, cell)};
      at[kLack] =
          matte.alpha[cell] - model_alpha(colour, at.data(), at.data() + kFore, at.data() + kBack);
      at[kTrust] = matte.trust[cell];
    }
  }
  Summary summary;
  for (int y = 0; y < rgba.height; ++y) {
    for (int x = 0; x < rgba.width; ++x) {
      std::uint8_t* bytes = rgba.row(y) + static_cast<std::ptrdiff_t>(x) * 4;
      if (x < roi.left || x >= roi.left + roi.width || y < roi.top || y >= roi.top + roi.height) {
        clear_alpha(bytes, 1, hidden);
        summary.add({0, 0, 0}, bytes, x, 1, y);
        continue;
      }
      const auto row = static_cast<std::size_t>(y);
      const auto column = static_cast<std::size_t>(x);
      const auto at = [&](int dx, int dy) {
        return guide.at(std::clamp(columns.first[column] + dx, 0, guide.width - 1),
                        std::clamp(rows.first[row] + dy, 0, guide.height - 1));
      };
      const auto spline = [](const Axis& axis, std::size_t i, const std::array<float, 4>& v) {
        return between(v[0], v[1], v[2], v[3], axis.spline[0][i], axis.spline[1][i],
                       axis.spline[2][i], axis.spline[3][i]);
      };
      std::array<float, 4> lines{};
      for (int k = 0; k < 4; ++k) {
        std::array<float, 4> taps{};
        for (int l = 0; l < 4; ++l) {
          taps[static_cast<std::size_t>(l)] = matte.alpha[at(l - 1, k - 1)];
        }
        lines[static_cast<std::size_t>(k)] = spline(columns, column, taps);
      }
      const float q = spline(rows, row, lines);
      const auto value = [&](int k) {
        const auto channel = static_cast<std::size_t>(k);
        const auto across = [&](int dy) {
          return blend(cells[at(0, dy)][channel], cells[at(1, dy)][channel], columns.t[column]);
        };
        return blend(across(0), across(1), rows.t[row]);
      };
      std::uint32_t pixel = 0;
      std::memcpy(&pixel, bytes, 4);
      pixel = refined_pixel(pixel, q, value, hidden_mask);
      std::memcpy(bytes, &pixel, 4);
      const std::uint32_t alpha = pixel >> 24;
      summary.add({alpha, alpha, alpha >> 7}, bytes, x, 1, y);
    }
  }
  return summary.result();
}

}  // namespace cutout
