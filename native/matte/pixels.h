#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/image_view.h"

namespace cutout {

/// What happens to colours under alpha 0: set to 0, or kept (for the ZIP's color.jpg).
enum class HiddenColour { kClear, kKeep };

/// Makes n RGBA8 pixels transparent.
inline void clear_alpha(std::uint8_t* pixels, int n, HiddenColour hidden) {
  if (hidden == HiddenColour::kClear) {
    std::memset(pixels, 0, static_cast<std::size_t>(n) * 4);
  } else {
    for (int x = 0; x < n; ++x) pixels[x * 4 + 3] = 0;
  }
}

/// Makes the pixels of `outer` that are not in `inner` transparent; both lie in the image.
inline void clear_around(ImageView image, const Box& outer, const Box& inner, HiddenColour hidden) {
  const auto clear = [&](int left, int right, int y) {
    if (left >= right) return;
    clear_alpha(image.row(y) + static_cast<std::ptrdiff_t>(left) * 4, right - left, hidden);
  };
  const int right = outer.left + outer.width;
  for (int y = outer.top; y < outer.top + outer.height; ++y) {
    if (y < inner.top || y >= inner.top + inner.height) {
      clear(outer.left, right, y);
    } else {
      clear(outer.left, inner.left, y);
      clear(inner.left + inner.width, right, y);
    }
  }
}

}  // namespace cutout
