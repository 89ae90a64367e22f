#include "image/resample.h"

#include <cstddef>
#include <cstring>
#include <vector>

#include "core/simd.h"
#include "image/filter.h"
#include "image/in_place.h"
#include "image/math/filter.h"

namespace cutout {

namespace {

// Vector types as in filter.cc.
typedef float F32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef std::int32_t I32x8 __attribute__((vector_size(32)));
typedef std::uint8_t U8x8 __attribute__((vector_size(8)));

/// Row y of the result depends on nothing before row y - 3.
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

}  // namespace

void reduce_in_place(ImageView rgba, int width, int height, ThreadPool& pool) {
  if (width == rgba.width && height == rgba.height) return pack_rows(rgba, rgba.data);
  const Taps rows = lanczos3_taps(rgba.height, height);
  const Taps columns = lanczos3_taps(rgba.width, width);
  write_in_place(rgba.data, width, height, pool, [&] {
    return [&, filtered = std::vector<float>(filtered_row_size(rgba.width, columns), 0.0F),
            pixels = std::vector<float>(static_cast<std::size_t>(width) * 4)](
               int y, std::uint8_t* out) mutable {
      filter_rows(rgba, rows, y, filtered.data());
      filter_columns(filtered.data(), columns, pixels.data());
      store_straight(pixels.data(), width, out);
    };
  });
}

}  // namespace cutout
