#include "matte/refine.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstring>
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

/// Two neighbouring cells and where between them a pixel's centre lies.
struct Linear {
  int first;
  int second;
  float t;
};

std::vector<Linear> linear_positions(int in, int out) {
  std::vector<Linear> positions(static_cast<std::size_t>(out));
  for (int i = 0; i < out; ++i) {
    const double centre = std::clamp((i + 0.5) * in / out - 0.5, 0.0, in - 1.0);
    const int first = static_cast<int>(centre);
    positions[static_cast<std::size_t>(i)] = {first, std::min(first + 1, in - 1),
                                              static_cast<float>(centre - first)};
  }
  return positions;
}

CUTOUT_INLINE float blend(float a, float b, float t) { return a + t * (b - a); }

CUTOUT_INLINE float clamp01(float v) {
  const float above = v > 0.0F ? v : 0.0F;
  return above < 1.0F ? above : 1.0F;
}

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

/// Everything that is known at the guide's size.
struct Cells {
  const Guide& guide;
  SharpMatte matte;
  CellColours colours;
  std::vector<std::uint8_t> coloured;  // 1: this tile's cells have colours
  int tiles_across = 0;

  Cells(const Guide& g, std::span<const float> p, ThreadPool& pool) : guide(g) {
    matte = sharpen_matte(guide, p, pool);
    // A pixel beside an unsure cell also looks at that cell's neighbour.
    const std::vector<Tile> tiles = tiles_near(matte.unsure, guide.width, guide.height, 2);
    colours = estimate_colours(guide, matte.alpha.data(), tiles, pool);
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
    const std::uint8_t* upper = matte.unsure.data() + guide.at(0, a);
    const std::uint8_t* lower = matte.unsure.data() + guide.at(0, b);
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

/// A row of cells at the picture's width: kChannels planes of kTileWidth.
CUTOUT_SIMD void widen(const float* __restrict cells, int stride, const Linear* __restrict at,
                       int origin, int n, float* __restrict out) {
  for (int k = 0; k < kChannels; ++k) {
    const float* __restrict channel = cells + static_cast<std::ptrdiff_t>(k) * stride - origin;
    float* __restrict to = out + static_cast<std::ptrdiff_t>(k) * kTileWidth;
    for (int i = 0; i < n; ++i) to[i] = blend(channel[at[i].first], channel[at[i].second], at[i].t);
  }
}

CUTOUT_SIMD void widen_alpha(const float* __restrict alpha, const Cubic* __restrict columns, int n,
                             float* __restrict out) {
  for (int i = 0; i < n; ++i) {
    const Cubic& c = columns[i];
    out[i] = between(alpha[c.at[0]], alpha[c.at[1]], alpha[c.at[2]], alpha[c.at[3]], c.weights[0],
                     c.weights[1], c.weights[2], c.weights[3]);
  }
}

CUTOUT_SIMD Seen refine_pixels(std::uint32_t* __restrict pixels, int n,
                               const float* __restrict upper, const float* __restrict lower,
                               float t, const float* const* alpha, const float* weights,
                               std::uint32_t hidden_mask) {
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
    const std::uint32_t pixel = refined_pixel(
        pixels[i], q,
        [&](int k) { return blend(upper[k * kTileWidth + i], lower[k * kTileWidth + i], t); },
        hidden_mask);
    pixels[i] = pixel;
    const std::uint32_t own = pixel >> 24;
    seen.any |= own;
    seen.all &= own;
    seen.foreground += own >> 7;
  }
  return seen;
}

/// Rows of cells as one tile of the picture needs them, made when they are first asked for.
class TileRows {
 public:
  TileRows(const Cells& cells, const std::vector<Linear>& columns,
           const std::vector<Cubic>& cubic_columns, int x, int n)
      : cells_(cells),
        columns_(columns.data() + x),
        cubic_columns_(cubic_columns.data() + x),
        n_(n),
        left_(columns_[0].first),
        width_(columns_[n - 1].second - left_ + 1),
        model_(cells.guide, cells.matte.alpha.data(), left_, width_) {
    row_.resize(static_cast<std::size_t>(std::max<int>(kChannels, kModelChannels)) *
                static_cast<std::size_t>(width_));
    model_row_.resize(static_cast<std::size_t>(kModelChannels) * static_cast<std::size_t>(width_));
    for (Wide& wide : wide_) wide.values.resize(kChannels * kTileWidth);
    for (Wide& wide : alpha_) wide.values.resize(kTileWidth);
  }

  [[nodiscard]] int left() const { return left_; }
  [[nodiscard]] int right() const { return left_ + width_ - 1; }

  const float* channels(int y) {
    Wide& wide = wide_[static_cast<std::size_t>(y) % wide_.size()];
    if (wide.index != y) {
      wide.index = y;
      fill_row(y);
      widen(row_.data(), width_, columns_, left_, n_, wide.values.data());
    }
    return wide.values.data();
  }

  const float* alpha(int y) {
    Wide& wide = alpha_[static_cast<std::size_t>(y) % alpha_.size()];
    if (wide.index != y) {
      wide.index = y;
      widen_alpha(cells_.matte.alpha.data() + cells_.guide.at(0, y), cubic_columns_, n_,
                  wide.values.data());
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
    model_.row(y, model_row_.data(), width_);
    std::memcpy(row_.data(), model_row_.data(), 4 * width * sizeof(float));  // kA0 .. kB
    for (int x = 0; x < width_;) {
      const int end = std::min(width_, ((left_ + x) / kTile + 1) * kTile - left_);
      const std::size_t bytes = static_cast<std::size_t>(end - x) * sizeof(float);
      const bool known = cells_.has_colours(left_ + x, y);
      for (int c = 0; c < 3; ++c) {
        const auto channel = static_cast<std::size_t>(c);
        float* fore = row_.data() + (kFore + channel) * width + x;
        float* back = row_.data() + (kBack + channel) * width + x;
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
    lack_row(row_.data(), width_, guide.planes[0] + cell, guide.planes[1] + cell,
             guide.planes[2] + cell, guide.scale.data(), guide.offset.data(),
             cells_.matte.alpha.data() + cell, width_, row_.data() + kLack * width);
    std::memcpy(row_.data() + kTrust * width, cells_.matte.trust.data() + cell,
                width * sizeof(float));
  }

  const Cells& cells_;
  const Linear* columns_;
  const Cubic* cubic_columns_;
  int n_;
  int left_;   // first column of cells
  int width_;  // cells
  LocalModel model_;
  std::vector<float> row_;
  std::vector<float> model_row_;
  std::array<Wide, 2> wide_;  // neighbouring rows never share a place
  std::array<Wide, 4> alpha_;
};

struct Positions {
  std::vector<Linear> rows;
  std::vector<Linear> columns;
  std::vector<Cubic> cubic_rows;
  std::vector<Cubic> cubic_columns;

  Positions(const Guide& guide, const ImageView& picture)
      : rows(linear_positions(guide.height, picture.height)),
        columns(linear_positions(guide.width, picture.width)),
        cubic_rows(cubic_positions(guide.height, picture.height)),
        cubic_columns(cubic_positions(guide.width, picture.width)) {}
};

/// One tile of the picture; `part` is inside the region of interest and not empty.
void refine_tile(ImageView rgba, const Cells& cells, const Positions& at, const Box& part,
                 HiddenColour hidden, Summary& summary) {
  const std::uint32_t hidden_mask = hidden == HiddenColour::kClear ? 0 : 0x00FFFFFFU;
  TileRows rows(cells, at.columns, at.cubic_columns, part.left, part.width);
  std::array<std::uint32_t, kSegment> pixels;
  for (int y = part.top; y < part.top + part.height; ++y) {
    const Linear& linear = at.rows[static_cast<std::size_t>(y)];
    const Cubic& cubic = at.cubic_rows[static_cast<std::size_t>(y)];
    std::uint8_t* line = rgba.row(y);
    for (int x = 0; x < part.width; x += kSegment) {
      const int n = std::min(kSegment, part.width - x);
      const int left = part.left + x;
      std::uint8_t* bytes = line + static_cast<std::ptrdiff_t>(left) * 4;
      const int first = at.columns[static_cast<std::size_t>(left)].first;
      const int last = at.columns[static_cast<std::size_t>(left + n - 1)].second;
      const bool unsure = cells.unsure(first, last, linear.first, linear.second);
      if (!unsure && cells.matte.alpha[cells.guide.at(first, linear.first)] == 0.0F) {
        clear_alpha(bytes, n, hidden);
        summary.opaque = false;
        continue;
      }
      const std::size_t size = static_cast<std::size_t>(n) * 4;
      std::memcpy(pixels.data(), bytes, size);  // rows may start at any byte
      Seen seen;
      if (unsure) {
        std::array<const float*, 4> alpha{};
        for (std::size_t k = 0; k < 4; ++k) alpha[k] = rows.alpha(cubic.at[k]) + x;
        const float* upper = rows.channels(linear.first) + x;
        const float* lower = rows.channels(linear.second) + x;
        seen = refine_pixels(pixels.data(), n, upper, lower, linear.t, alpha.data(),
                             cubic.weights.data(), hidden_mask);
        std::memcpy(bytes, pixels.data(), size);
      } else {
        seen = look_at(pixels.data(), n);
        if (seen.all != 255 && hidden == HiddenColour::kClear) {
          for (int i = 0; i < n; ++i) {
            pixels[static_cast<std::size_t>(i)] =
                with_alpha(pixels[static_cast<std::size_t>(i)],
                           pixels[static_cast<std::size_t>(i)] >> 24, hidden_mask);
          }
          std::memcpy(bytes, pixels.data(), size);
        }
      }
      summary.add(seen, bytes, left, n, y);
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
  const Cells cells(guide, p, pool);
  const Positions positions(guide, rgba);
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
      if (!part.empty()) refine_tile(rgba, cells, positions, part, hidden, parts[i]);
    }
  });
  Summary whole;
  for (const Summary& part : parts) whole.add(part);
  return whole.result();
}

MatteSummary refine_matte_scalar(ImageView rgba, const Guide& guide, std::span<const float> p,
                                 const Box& roi, HiddenColour hidden) {
  const SharpMatte matte = sharpen_matte_scalar(guide, p);
  const CellColours colours = estimate_colours_scalar(guide, matte.alpha.data());
  const Positions positions(guide, rgba);
  const std::uint32_t hidden_mask = hidden == HiddenColour::kClear ? 0 : 0x00FFFFFFU;
  std::vector<std::array<float, kChannels>> cells(guide.cells());
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const std::size_t cell = guide.at(x, y);
      std::array<float, kChannels>& at = cells[cell];
      const auto model = local_model_scalar(guide, matte.alpha.data(), x, y);
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
      const Linear& row = positions.rows[static_cast<std::size_t>(y)];
      const Linear& column = positions.columns[static_cast<std::size_t>(x)];
      const Cubic& cubic_row = positions.cubic_rows[static_cast<std::size_t>(y)];
      const Cubic& cubic = positions.cubic_columns[static_cast<std::size_t>(x)];
      std::array<float, 4> lines{};
      for (std::size_t k = 0; k < 4; ++k) {
        const float* alpha = matte.alpha.data() + guide.at(0, cubic_row.at[k]);
        lines[k] =
            between(alpha[cubic.at[0]], alpha[cubic.at[1]], alpha[cubic.at[2]], alpha[cubic.at[3]],
                    cubic.weights[0], cubic.weights[1], cubic.weights[2], cubic.weights[3]);
      }
      const float q = between(lines[0], lines[1], lines[2], lines[3], cubic_row.weights[0],
                              cubic_row.weights[1], cubic_row.weights[2], cubic_row.weights[3]);
      const auto value = [&](int k) {
        const auto channel = static_cast<std::size_t>(k);
        const auto across = [&](int cell_row) {
          return blend(cells[guide.at(column.first, cell_row)][channel],
                       cells[guide.at(column.second, cell_row)][channel], column.t);
        };
        return blend(across(row.first), across(row.second), row.t);
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
