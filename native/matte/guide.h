#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "matte/math/probability.h"

namespace cutout {

/// The image at the size of the network's output, as the guide of refinement. One of its pixels is
/// called a network pixel. Owns nothing. Three planes, rows without padding; colour = plane * scale
/// + offset, in 0..1, so that a network's normalised input can be used as it is.
struct Guide {
  int width = 0;
  int height = 0;
  std::array<const float*, 3> planes{};
  std::array<float, 3> scale{1, 1, 1};
  std::array<float, 3> offset{};

  /// Number of network pixels.
  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  }
  /// Index of a network pixel in a plane.
  [[nodiscard]] std::size_t at(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
           static_cast<std::size_t>(x);
  }
  [[nodiscard]] float colour(std::size_t channel, std::size_t index) const {
    return planes[channel][index] * scale[channel] + offset[channel];
  }
};

/// Columns first .. first + n - 1 of a row of `width` values; columns outside repeat the border.
inline void copy_padded(const float* row, int width, int first, int n, float* out) {
  const int before = std::clamp(-first, 0, n);
  const int behind = std::clamp(first + n - width, 0, n - before);
  const int inside = n - before - behind;
  std::fill_n(out, before, row[0]);
  std::memcpy(out + before, row + first + before, static_cast<std::size_t>(inside) * sizeof(float));
  std::fill_n(out + before + inside, behind, row[width - 1]);
}

}  // namespace cutout
