#include "image/resample.h"

#include <cstddef>
#include <cstring>
#include <vector>

#include "core/simd.h"
#include "image/filter.h"
#include "image/math/filter.h"

namespace cutout {

namespace {

constexpr std::size_t kBand = 64;  // rows that are computed before any of them is written back
constexpr std::size_t kGrain = 8;

// Vector types as in filter.cc.
typedef float F32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef std::int32_t I32x8 __attribute__((vector_size(32)));
typedef std::uint8_t U8x8 __attribute__((vector_size(8)));

/// Row y of the result depends on nothing before row y - 3. The band that is written ends one band
/// before the one that is computed, so it never overwrites pixels that are still read.
static_assert(kBand > 4);

/// Premultiplied float RGBA (filter.h) -> straight RGBA8, rounded and clamped; 0 where alpha rounds
/// to 0.
CUTOUT_SIMD void store_straight(const float* __restrict premultiplied, int pixels,
                                std::uint8_t* __restrict out) {
  // Two pixels at a time.
  const F32x8 zero = {};
  const F32x8 half = zero + 0.5F;
  const F32x8 full = zero + 255.0F;
  int x = 0;
  for (; x + 2 <= pixels; x += 2) {
    const F32x8 pair = *reinterpret_cast<const F32x8*>(premultiplied + x * 4);
    const F32x8 alpha = __builtin_shuffle(pair, I32x8{3, 3, 3, 3, 7, 7, 7, 7});
    const F32x8 scale = alpha >= half ? full / alpha : zero;
    const F32x8 straight = __builtin_shuffle(pair * scale, pair, I32x8{0, 1, 2, 11, 4, 5, 6, 15});
    const F32x8 rounded = straight + half;
    const F32x8 least = rounded > zero ? rounded : zero;
    const F32x8 value = least < full ? least : full;
    const U8x8 bytes = __builtin_convertvector(__builtin_convertvector(value, I32x8), U8x8);
    std::memcpy(out + static_cast<std::ptrdiff_t>(x) * 4, &bytes, sizeof bytes);
  }
  if (x == pixels) return;
  const float* last = premultiplied + static_cast<std::ptrdiff_t>(x) * 4;
  const float scale = straight_scale(last[3]);
  for (int c = 0; c < 3; ++c) out[x * 4 + c] = straight_byte(last[c] * scale);
  out[x * 4 + 3] = straight_byte(last[3]);
}

/// Writes the reduced image to its own first byte.
void reduce(ImageView rgba, const Taps& rows, const Taps& columns, ThreadPool& pool) {
  const std::size_t row_bytes = static_cast<std::size_t>(columns.outputs()) * 4;
  const auto count = static_cast<std::size_t>(rows.outputs());
  std::vector<std::uint8_t> bands(2 * kBand * row_bytes);
  const auto waiting = [&](std::size_t y) { return bands.data() + y % (2 * kBand) * row_bytes; };

  // Each step computes band `start` and writes back the band two before it; two more steps than
  // bands empty the ring.
  for (std::size_t start = 0; start < count + 2 * kBand; start += kBand) {
    const auto body = [&](std::size_t begin, std::size_t end) {
      std::vector<float> filtered(filtered_row_size(rgba.width, columns), 0.0F);
      std::vector<float> pixels(row_bytes);
      for (std::size_t y = start + begin; y < start + end; ++y) {
        if (const std::size_t old = y - 2 * kBand; y >= 2 * kBand && old < count) {
          std::memcpy(rgba.data + old * row_bytes, waiting(old), row_bytes);
        }
        if (y < count) {
          filter_rows(rgba, rows, static_cast<int>(y), filtered.data());
          filter_columns(filtered.data(), columns, pixels.data());
          store_straight(pixels.data(), columns.outputs(), waiting(y));
        }
      }
    };
    pool.parallel_for(kBand, kGrain, body);
  }
}

}  // namespace

void pack_rows(ConstImageView rgba, std::uint8_t* out) {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(rgba.width) * 4;
  if (out == rgba.data && rgba.stride == row) return;
  for (int y = 0; y < rgba.height; ++y) {  // top to bottom: a row never lies before its place
    std::memmove(out + y * row, rgba.row(y), static_cast<std::size_t>(row));
  }
}

void reduce_in_place(ImageView rgba, int width, int height, ThreadPool& pool) {
  if (width == rgba.width && height == rgba.height) return pack_rows(rgba, rgba.data);
  reduce(rgba, lanczos3_taps(rgba.height, height), lanczos3_taps(rgba.width, width), pool);
}

}  // namespace cutout
