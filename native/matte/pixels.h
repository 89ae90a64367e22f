#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/image_view.h"

namespace cutout {

/// What happens to colours under alpha 0: set to 0, or kept (for the ZIP's color.jpg).
enum class HiddenColour { kClear, kKeep };

/// round(a * b / 255) for a, b in 0..255.
inline std::uint32_t multiply_255(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t product = a * b + 128;
  return (product + (product >> 8)) >> 8;
}

/// `pixel` with another alpha; its colour is masked with `hidden_mask` where that alpha is 0.
inline std::uint32_t with_alpha(std::uint32_t pixel, std::uint32_t alpha,
                                std::uint32_t hidden_mask) {
  const std::uint32_t mask = alpha == 0 ? hidden_mask : 0x00FFFFFFU;
  return (pixel & mask) | (alpha << 24);
}

/// Makes n RGBA8 pixels transparent.
inline void clear_alpha(std::uint8_t* pixels, int n, HiddenColour hidden) {
  if (hidden == HiddenColour::kClear) {
    std::memset(pixels, 0, static_cast<std::size_t>(n) * 4);
  } else {
    for (int x = 0; x < n; ++x) pixels[x * 4 + 3] = 0;
  }
}

/// The part of a box that lies in the image.
inline Box clip(const Box& box, const ImageView& image) {
  const int left = std::clamp(box.left, 0, image.width);
  const int top = std::clamp(box.top, 0, image.height);
  const auto end = [](int begin, int length, int limit) {
    return static_cast<int>(
        std::clamp<std::int64_t>(static_cast<std::int64_t>(begin) + length, 0, limit));
  };
  const int right = std::max(left, end(box.left, box.width, image.width));
  const int bottom = std::max(top, end(box.top, box.height, image.height));
  return {left, top, right - left, bottom - top};
}

}  // namespace cutout
