#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "core/simd.h"

namespace cutout {

/// A borrowed picture at the size of the network's answer: what the matte is measured against.
/// Three planes, rows without padding; colour = plane * scale + offset, in 0..1, so that a
/// network's normalised input serves as it is.
struct Guide {
  int width = 0;
  int height = 0;
  std::array<const float*, 3> planes{};
  std::array<float, 3> scale{1, 1, 1};
  std::array<float, 3> offset{};
  // Standard deviation of the network's own blur, in cells; 0: as its answer says (blur.h).
  float blur = 0;
  // A cell each, 0..1: how far its answer is what its own colour says already (correct.h); null:
  // the answer has not been corrected.
  const float* settled = nullptr;
  const float* told = nullptr;  // what its colour says, 0..1; null where `settled` is

  [[nodiscard]] std::size_t cells() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  }
  [[nodiscard]] std::size_t at(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
           static_cast<std::size_t>(x);
  }
  [[nodiscard]] float colour(std::size_t channel, std::size_t cell) const {
    return planes[channel][cell] * scale[channel] + offset[channel];
  }
};

/// NaN: 0.
CUTOUT_INLINE float clamp01(float v) {
  const float above = v > 0.0F ? v : 0.0F;
  return above < 1.0F ? above : 1.0F;
}

/// Columns first .. first + n - 1 of a row of `width` cells, the border repeated.
inline void copy_cells(const float* row, int width, int first, int n, float* out) {
  const int before = std::clamp(-first, 0, n);
  const int behind = std::clamp(first + n - width, 0, n - before);
  const int inside = n - before - behind;
  std::fill_n(out, before, row[0]);
  std::memcpy(out + before, row + first + before, static_cast<std::size_t>(inside) * sizeof(float));
  std::fill_n(out + before + inside, behind, row[width - 1]);
}

}  // namespace cutout
