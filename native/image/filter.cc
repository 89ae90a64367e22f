#include "image/filter.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/simd.h"
#include "image/math/filter.h"

namespace cutout {

namespace {

using Byte = std::uint8_t;

// GCC vector types, lowered to the instruction set of each clone. `aligned(4)`: loads may start at
// any float.
typedef float F32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float F32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef std::int32_t I32x8 __attribute__((vector_size(32)));

/// True if the `pixels` have alpha 255.
CUTOUT_SIMD bool opaque(const Byte* rgba, int pixels) {
  std::uint32_t all = ~0U;
  for (int i = 0; i < pixels; ++i) {
    std::uint32_t pixel;
    std::memcpy(&pixel, rgba + i * 4, sizeof pixel);
    all &= pixel;
  }
  return all >> 24 == 255;
}

/// sums += weight * row, one or four rows in a pass.
CUTOUT_SIMD void add_row(float* __restrict sums, const Byte* __restrict row, float weight, int n) {
  for (int i = 0; i < n; ++i) sums[i] += weight * static_cast<float>(row[i]);
}

CUTOUT_SIMD void add_four_rows(float* __restrict sums, const Byte* __restrict row,
                               std::ptrdiff_t stride, const float* weights, int n) {
  const Byte* __restrict a = row;
  const Byte* __restrict b = row + stride;
  const Byte* __restrict c = row + 2 * stride;
  const Byte* __restrict d = row + 3 * stride;
  const float wa = weights[0];
  const float wb = weights[1];
  const float wc = weights[2];
  const float wd = weights[3];
  for (int i = 0; i < n; ++i) {
    float sum = sums[i];
    sum += wa * static_cast<float>(a[i]);
    sum += wb * static_cast<float>(b[i]);
    sum += wc * static_cast<float>(c[i]);
    sum += wd * static_cast<float>(d[i]);
    sums[i] = sum;
  }
}

CUTOUT_SIMD void add_premultiplied_row(float* __restrict sums, const Byte* __restrict row,
                                       float weight, int pixels) {
  for (int i = 0; i < pixels; ++i) add_premultiplied(row + i * 4, weight, sums + i * 4);
}

/// Adds two pixels, premultiplied and weighted; `weight` is divided by 255. Inlined into each
/// clone.
[[gnu::always_inline]] inline void add_weighted_pair(F32x8& sum, const Byte* rgba, float weight) {
  std::int32_t words[2];
  std::memcpy(words, rgba, sizeof words);
  const auto [p, q] = words;
  const I32x8 bytes = (I32x8{p, p, p, p, q, q, q, q} >> I32x8{0, 8, 16, 24, 0, 8, 16, 24}) & 255;
  const F32x8 pair = __builtin_convertvector(bytes, F32x8);
  const F32x8 full = {255, 255, 255, 255, 255, 255, 255, 255};
  const F32x8 alpha = __builtin_shuffle(pair, I32x8{3, 3, 3, 3, 7, 7, 7, 7});
  sum += __builtin_shuffle(pair, full, I32x8{0, 1, 2, 8, 4, 5, 6, 8}) * (alpha * weight);
}

/// Adds four rows as four calls of add_premultiplied_row do.
CUTOUT_SIMD void add_four_premultiplied_rows(float* __restrict sums, const Byte* __restrict row,
                                             std::ptrdiff_t stride, const float* weights,
                                             int pixels) {
  float scaled[4];
  for (int k = 0; k < 4; ++k) scaled[k] = weights[k] * (1.0F / 255.0F);
  int i = 0;
  for (; i + 2 <= pixels; i += 2) {
    const Byte* pair = row + i * 4;
    F32x8 sum = *reinterpret_cast<F32x8*>(sums + i * 4);
    for (int k = 0; k < 4; ++k) add_weighted_pair(sum, pair + k * stride, scaled[k]);
    *reinterpret_cast<F32x8*>(sums + i * 4) = sum;
  }
  if (i == pixels) return;
  for (int k = 0; k < 4; ++k) {
    add_one_of_four(row + k * stride + i * 4, scaled[k], sums + i * 4);
  }
}

void filter_tile(const Byte* top, std::ptrdiff_t stride, const float* weights, int count,
                 int pixels, float* sums) {
  bool all_opaque = true;
  for (int k = 0; k < count && all_opaque; ++k) all_opaque = opaque(top + k * stride, pixels);
  std::fill_n(sums, pixels * 4, 0.0F);
  int k = 0;
  for (; k + 4 <= count; k += 4) {
    const Byte* row = top + k * stride;
    if (all_opaque) {
      add_four_rows(sums, row, stride, weights + k, pixels * 4);
    } else {
      add_four_premultiplied_rows(sums, row, stride, weights + k, pixels);
    }
  }
  for (; k < count; ++k) {
    if (all_opaque) {
      add_row(sums, top + k * stride, weights[k], pixels * 4);
    } else {
      add_premultiplied_row(sums, top + k * stride, weights[k], pixels);
    }
  }
}

CUTOUT_SIMD void filter_columns_with(const float* row, const int* first, const float* weights,
                                     int stride, int outputs, float* out) {
  for (int x = 0; x < outputs; ++x) {
    const float* from = row + static_cast<std::ptrdiff_t>(first[x]) * 4;
    const float* w = weights + static_cast<std::ptrdiff_t>(x) * stride;
    F32x8 even = {};
    F32x8 odd = {};
    for (int k = 0; k < stride; k += 4, from += 16, w += 4) {
      const F32x8 pair = {w[0], w[0], w[0], w[0], w[1], w[1], w[1], w[1]};
      const F32x8 next = {w[2], w[2], w[2], w[2], w[3], w[3], w[3], w[3]};
      even += pair * *reinterpret_cast<const F32x8*>(from);
      odd += next * *reinterpret_cast<const F32x8*>(from + 8);
    }
    even += odd;
    const F32x4 low = {even[0], even[1], even[2], even[3]};
    const F32x4 high = {even[4], even[5], even[6], even[7]};
    *reinterpret_cast<F32x4*>(out + static_cast<std::ptrdiff_t>(x) * 4) = low + high;
  }
}

}  // namespace

void filter_rows(ConstImageView rgba, const Taps& rows, int y, float* row) {
  const Byte* top = rgba.row(rows.first[static_cast<std::size_t>(y)]);
  const int count = rows.count[static_cast<std::size_t>(y)];
  for (int x = 0; x < rgba.width; x += kFilterTile) {
    const int pixels = std::min(kFilterTile, rgba.width - x);
    const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(x) * 4;
    filter_tile(top + offset, rgba.stride, rows.of(y), count, pixels, row + offset);
  }
}

void filter_columns(const float* row, const Taps& columns, float* out) {
  filter_columns_with(row, columns.first.data(), columns.weights.data(), columns.stride,
                      columns.outputs(), out);
}

}  // namespace cutout
