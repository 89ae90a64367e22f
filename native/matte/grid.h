#pragma once

#include <array>
#include <cstddef>

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

}  // namespace cutout
