#pragma once

#include <cstddef>
#include <cstdint>

namespace cutout {

/// A borrowed view of interleaved 8-bit pixels. Owns nothing; the owner outlives every view.
/// `stride` is the distance between the first bytes of two rows, in bytes, at least width *
/// channels.
template <typename Byte>
struct BasicImageView {
  Byte* data = nullptr;
  int width = 0;     // pixels
  int height = 0;    // pixels
  int channels = 0;  // 1, 3 or 4 bytes a pixel; 4 is straight (not premultiplied) RGBA
  std::ptrdiff_t stride = 0;

  [[nodiscard]] Byte* row(int y) const { return data + static_cast<std::ptrdiff_t>(y) * stride; }
  [[nodiscard]] bool empty() const { return width <= 0 || height <= 0; }

  /// A view for reading is made from one for writing, never the other way round.
  operator BasicImageView<const Byte>() const { return {data, width, height, channels, stride}; }
};

using ImageView = BasicImageView<std::uint8_t>;
using ConstImageView = BasicImageView<const std::uint8_t>;

/// Rectangle in pixels; `width` or `height` 0 means empty.
struct Box {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;

  [[nodiscard]] bool empty() const { return width <= 0 || height <= 0; }
  bool operator==(const Box&) const = default;
};

}  // namespace cutout
