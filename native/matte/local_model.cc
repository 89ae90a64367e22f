#include "matte/local_model.h"

#include <algorithm>
#include <climits>

#include "core/simd.h"

namespace cutout {

namespace {

using enum window::Product;

/// Planes are padded to whole vectors of any processor, so that loops need no remainder.
constexpr int kVector = 16;
constexpr int whole_vectors(int columns) { return (columns + kVector - 1) / kVector * kVector; }

/// One row of the three planes of the guide, unscaled, and of alpha.
using GuideRows = std::array<const float*, 4>;

/// n is a whole number of vectors.
CUTOUT_SIMD void fill_plane(const GuideRows& rows, const float* scale, const float* offset, int n,
                            float* __restrict out) {
#pragma GCC ivdep  // products do not overlap
  for (int i = 0; i < n; ++i) {
    plane_products(rows[0][i] * scale[0] + offset[0], rows[1][i] * scale[1] + offset[1],
                   rows[2][i] * scale[2] + offset[2], rows[3][i] - kModelMiddle, out + i, n);
  }
}

CUTOUT_SIMD void sum_along(const float* __restrict from, int n, float* __restrict out) {
  for (int i = 0; i < n; ++i) {
    out[i] =
        sum7(from[i], from[i + 1], from[i + 2], from[i + 3], from[i + 4], from[i + 5], from[i + 6]);
  }
}

CUTOUT_SIMD void sum_across(const float* const* rows, int n, float* __restrict out) {
  const float* __restrict a = rows[0];
  const float* __restrict b = rows[1];
  const float* __restrict c = rows[2];
  const float* __restrict d = rows[3];
  const float* __restrict e = rows[4];
  const float* __restrict f = rows[5];
  const float* __restrict g = rows[6];
  for (int i = 0; i < n; ++i) out[i] = sum7(a[i], b[i], c[i], d[i], e[i], f[i], g[i]);
}

CUTOUT_SIMD void solve_planes(const float* __restrict sums, int from, int n, float* __restrict out,
                              int stride) {
#pragma GCC ivdep  // channels do not overlap
  for (int i = 0; i < n; ++i) solve_plane(sums + i, from, out + i, stride);
}

}  // namespace

LocalModel::LocalModel(const Guide& guide, const float* alpha, int left, int width)
    : guide_(guide),
      alpha_(alpha),
      left_(left),
      width_(width),
      padded_(whole_vectors(width)),
      bordered_(whole_vectors(padded_ + 2 * kModelRadius)) {
  for (std::size_t c = 0; c < offset_.size(); ++c) offset_[c] = guide.offset[c] - kModelMiddle;
  line_.resize(4 * static_cast<std::size_t>(bordered_));
  products_.resize(static_cast<std::size_t>(kProducts * bordered_));
  kept_.fill(INT_MIN);
  for (std::vector<float>& row : rows_) {
    row.resize(static_cast<std::size_t>(kProducts * padded_));
  }
}

const float* LocalModel::sums(int y) {
  const int inside = std::clamp(y, 0, guide_.height - 1);
  const auto slot = static_cast<std::size_t>(inside % 8);
  float* out = rows_[slot].data();
  if (kept_[slot] == inside) return out;
  kept_[slot] = inside;
  const std::size_t start = guide_.at(0, inside);
  GuideRows rows = {guide_.planes[0] + start, guide_.planes[1] + start, guide_.planes[2] + start,
                    alpha_ + start};
  const int first = left_ - kModelRadius;
  const bool within = first >= 0 && first + bordered_ <= guide_.width;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (within) {
      rows[k] += first;
    } else {
      float* row = line_.data() + k * static_cast<std::size_t>(bordered_);
      copy_padded(rows[k], guide_.width, first, width_ + 2 * kModelRadius, row);
      rows[k] = row;
    }
  }
  fill_plane(rows, guide_.scale.data(), offset_.data(), bordered_, products_.data());
  for (int k = 0; k < kProducts; ++k) {
    sum_along(products_.data() + static_cast<std::ptrdiff_t>(k) * bordered_, padded_,
              out + static_cast<std::ptrdiff_t>(k) * padded_);
  }
  return out;
}

void LocalModel::row(int y, float* out, int stride) {
  std::array<const float*, kModelWindow> rows{};
  for (int k = 0; k < kModelWindow; ++k)
    rows[static_cast<std::size_t>(k)] = sums(y - kModelRadius + k);
  sum_across(rows.data(), kProducts * padded_, products_.data());
  solve_planes(products_.data(), padded_, width_, out, stride);
}

}  // namespace cutout
