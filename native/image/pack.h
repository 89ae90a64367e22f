#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/image_view.h"

namespace cutout {

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
