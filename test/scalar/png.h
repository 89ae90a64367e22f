#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "png/encode.h"
#include "png/filter.h"

namespace cutout::test {

// The definitions of the kernels of native/png, byte by byte, with the arguments of the kernels.

inline std::uint32_t crc32_scalar(std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  crc = ~crc;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

inline std::uint32_t adler32_scalar(std::span<const std::uint8_t> bytes, std::uint32_t adler) {
  constexpr std::uint32_t kModulus = 65521;
  std::uint32_t a = adler & 0xFFFFU;
  std::uint32_t b = adler >> 16;
  for (const std::uint8_t byte : bytes) {
    a = (a + byte) % kModulus;
    b = (b + a) % kModulus;
  }
  return (b << 16) | a;
}

inline std::uint8_t paeth_scalar(int left, int above, int corner) {
  const int estimate = left + above - corner;
  const int to_left = std::abs(estimate - left);
  const int to_above = std::abs(estimate - above);
  const int to_corner = std::abs(estimate - corner);
  if (to_left <= to_above && to_left <= to_corner) return static_cast<std::uint8_t>(left);
  return static_cast<std::uint8_t>(to_above <= to_corner ? above : corner);
}

inline std::uint64_t filter_row_scalar(png::Filter filter, const std::uint8_t* row,
                                       const std::uint8_t* above, std::size_t size,
                                       std::size_t pixel, std::uint8_t* out) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const int left = i >= pixel ? row[i - pixel] : 0;
    const int corner = i >= pixel ? above[i - pixel] : 0;
    int predicted = 0;
    switch (filter) {
      case png::Filter::kNone:
        break;
      case png::Filter::kSub:
        predicted = left;
        break;
      case png::Filter::kUp:
        predicted = above[i];
        break;
      case png::Filter::kAverage:
        predicted = (left + above[i]) / 2;
        break;
      case png::Filter::kPaeth:
        predicted = paeth_scalar(left, above[i], corner);
        break;
    }
    out[i] = static_cast<std::uint8_t>(row[i] - predicted);
    sum += std::min<std::uint64_t>(out[i], 256u - out[i]);
  }
  return sum;
}

/// The largest file that encode_png may write, as its table says.
inline std::uint64_t png_bound(int width, int height, const PngOptions& options) {
  const std::uint64_t row = static_cast<std::uint64_t>(width) * (options.alpha_only ? 1 : 4) + 1;
  const std::uint64_t raw = row * static_cast<std::uint64_t>(height) + options.icc.size();
  return raw + raw / 1000 + 400;
}

}  // namespace cutout::test
