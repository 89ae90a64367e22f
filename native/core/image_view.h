#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace cutout {

// Kernels read a pixel as one word whose top byte is alpha, and deflate compares bytes as words.
static_assert(std::endian::native == std::endian::little, "only little-endian processors");

/// A borrowed view of straight (not premultiplied) RGBA8 pixels. Owns nothing; the owner outlives
/// every view. `stride` is the distance between the first bytes of two rows, in bytes, at least
/// width * 4.
template <typename Byte>
struct BasicImageView {
  Byte* data = nullptr;
  int width = 0;   // pixels
  int height = 0;  // pixels
  std::ptrdiff_t stride = 0;

  [[nodiscard]] Byte* row(int y) const { return data + static_cast<std::ptrdiff_t>(y) * stride; }
  [[nodiscard]] bool empty() const { return width <= 0 || height <= 0; }

  /// A writable view converts to a read-only one.
  operator BasicImageView<const Byte>() const { return {data, width, height, stride}; }
};

using ImageView = BasicImageView<std::uint8_t>;
using ConstImageView = BasicImageView<const std::uint8_t>;

/// Rectangle in pixels; empty where `width` or `height` is 0.
struct Box {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;

  [[nodiscard]] bool empty() const { return width <= 0 || height <= 0; }
  bool operator==(const Box&) const = default;
};

/// The part that lies in both boxes; all 0 if there is none.
inline Box intersection(const Box& a, const Box& b) {
  const int left = std::max(a.left, b.left);
  const int top = std::max(a.top, b.top);
  const Box both{left, top, std::min(a.left + a.width, b.left + b.width) - left,
                 std::min(a.top + a.height, b.top + b.height) - top};
  return both.empty() ? Box{} : both;
}

/// The view of a part of an image, inside it.
template <typename Byte>
BasicImageView<Byte> part_of(const BasicImageView<Byte>& image, const Box& part) {
  return {image.row(part.top) + static_cast<std::ptrdiff_t>(part.left) * 4, part.width, part.height,
          image.stride};
}

/// The part of a box that lies in the image.
inline Box clip(const Box& box, const ConstImageView& image) {
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
