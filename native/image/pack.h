#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/image_view.h"

namespace cutout {

/// Brings a picture's rows together at `out`, in the same memory: at or before its first byte. From
/// the first row on: a row never lies before its place.
inline void pack_rows(ConstImageView rgba, std::uint8_t* out) {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(rgba.width) * 4;
  if (out == rgba.data && rgba.stride == row) return;
  for (int y = 0; y < rgba.height; ++y) {
    std::memmove(out + y * row, rgba.row(y), static_cast<std::size_t>(row));
  }
}

}  // namespace cutout
