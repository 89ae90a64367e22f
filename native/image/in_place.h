#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

inline constexpr std::size_t kBand = 64;      // rows that are computed before any is written back
inline constexpr std::size_t kRowSpare = 32;  // bytes that a maker may write behind a row

/// Writes rows of RGBA8 without padding to `out`, in memory that they are computed from. Each waits
/// in a ring until the band behind its own has been computed, so row y may depend on what lies at
/// the place of row y - kBand or behind it. `open()` returns a maker of rows for each running
/// range: maker(y, bytes). The bytes do not depend on the pool's threads.
template <typename Open>
void write_in_place(std::uint8_t* out, int width, int height, ThreadPool& pool, const Open& open) {
  const std::size_t row_bytes = static_cast<std::size_t>(width) * 4;
  const auto count = static_cast<std::size_t>(height);
  const std::size_t slots = std::min(count, 2 * kBand);
  std::vector<std::uint8_t> ring(slots * (row_bytes + kRowSpare));
  const auto waiting = [&](std::size_t y) {
    return ring.data() + y % slots * (row_bytes + kRowSpare);
  };
  // Each step computes a band and writes back the one two before it; the last two empty the ring.
  for (std::size_t start = 0; start < count + 2 * kBand; start += kBand) {
    pool.parallel_for(kBand, 8, [&](std::size_t begin, std::size_t end) {
      auto maker = open();
      for (std::size_t y = start + begin; y < start + end; ++y) {
        if (const std::size_t old = y - 2 * kBand; y >= 2 * kBand && old < count) {
          std::memcpy(out + old * row_bytes, waiting(old), row_bytes);
        }
        if (y < count) maker(static_cast<int>(y), waiting(y));
      }
    });
  }
}

/// Moves an image's rows together, without padding, to `out`, which lies in the same memory at or
/// before its first byte.
inline void pack_rows(ConstImageView rgba, std::uint8_t* out) {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(rgba.width) * 4;
  if (out == rgba.data && rgba.stride == row) return;
  for (int y = 0; y < rgba.height; ++y) {  // top to bottom: a row never lies before its place
    std::memmove(out + y * row, rgba.row(y), static_cast<std::size_t>(row));
  }
}

}  // namespace cutout
