#pragma once

#include <cstdint>

#include "image/math/pixel.h"

namespace cutout {

/// The Catmull-Rom enlargement of image/enlarge.h, pixel by pixel. `p`: the four RGBA words of a
/// column, `w` their weights.

/// Pixels of a row, from 0 on, that are classified together: none, all or some are transparent. It
/// decides the last bits of a result.
inline constexpr int kCubicPiece = 64;

/// The cubic itself.
CUTOUT_HD double cubic_at(double x) {
  const double a = x < 0 ? -x : x;
  if (a < 1) return (1.5 * a - 2.5) * a * a + 1;
  if (a < 2) return ((-0.5 * a + 2.5) * a - 4) * a + 2;
  return 0;
}

/// A colour, 0..255, of four opaque pixels.
CUTOUT_HD float opaque_colour(const std::uint32_t* p, const float* w, int shift) {
  return clamp_to(w[0] * byte_of(p[0], shift) + w[1] * byte_of(p[1], shift) +
                      w[2] * byte_of(p[2], shift) + w[3] * byte_of(p[3], shift),
                  255.0F);
}

/// Four pixels of any alpha, premultiplied: alpha 0..255 and what colours are limited and scaled
/// by.
struct MixedColumn {
  float shares[4];
  float alpha;
  float scale;
};

CUTOUT_HD MixedColumn mixed_column(const std::uint32_t* p, const float* w) {
  MixedColumn column{{w[0] * byte_of(p[0], 24), w[1] * byte_of(p[1], 24), w[2] * byte_of(p[2], 24),
                      w[3] * byte_of(p[3], 24)},
                     0.0F,
                     0.0F};
  const float total = column.shares[0] + column.shares[1] + column.shares[2] + column.shares[3];
  column.alpha = clamp_to(total, 255.0F);
  column.scale = 1.0F / (total > 255.0F ? total : 255.0F);
  return column;
}

CUTOUT_HD float mixed_colour(const MixedColumn& column, const std::uint32_t* p, int shift) {
  const float sum =
      column.shares[0] * byte_of(p[0], shift) + column.shares[1] * byte_of(p[1], shift) +
      column.shares[2] * byte_of(p[2], shift) + column.shares[3] * byte_of(p[3], shift);
  return clamp_to(sum * column.scale, column.alpha);
}

}  // namespace cutout
