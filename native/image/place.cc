#include "image/place.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "image/enlarge.h"
#include "image/in_place.h"
#include "image/resample.h"

namespace cutout {

namespace {

std::size_t bytes_of(int width, int height) {
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 4;
}

/// Moves the packed rows at the front of the buffer to `target` and clears the rest of the canvas,
/// from the last row to the first: rows that are still to be moved lie before the one that is
/// written.
void spread(std::uint8_t* buffer, int width, int height, const Box& target) {
  const std::size_t row = bytes_of(target.width, 1);
  const std::size_t left = bytes_of(target.left, 1);
  const std::size_t right = bytes_of(width, 1) - left - row;
  const int bottom = target.top + target.height;
  std::memset(buffer + bytes_of(width, bottom), 0, bytes_of(width, height - bottom));
  for (int y = target.height - 1; y >= 0; --y) {
    std::uint8_t* line = buffer + bytes_of(width, target.top + y);
    std::memmove(line + left, buffer + bytes_of(target.width, y), row);
    std::memset(line, 0, left);
    std::memset(line + left + row, 0, right);
  }
  std::memset(buffer, 0, bytes_of(width, target.top));
}

}  // namespace

void place(std::span<std::uint8_t> buffer, int width, const Box& source, int canvas_width,
           int canvas_height, const Box& target, ThreadPool& pool) {
  ConstImageView shown_part{buffer.data() + bytes_of(width, source.top) + bytes_of(source.left, 1),
                            source.width, source.height,
                            static_cast<std::ptrdiff_t>(bytes_of(width, 1))};
  const int reduced_width = std::min(source.width, target.width);
  const int reduced_height = std::min(source.height, target.height);
  if (reduced_width < source.width || reduced_height < source.height) {
    pack_rows(shown_part, buffer.data());
    const ImageView packed{buffer.data(), source.width, source.height,
                           static_cast<std::ptrdiff_t>(bytes_of(source.width, 1))};
    reduce_in_place(packed, reduced_width, reduced_height, pool);
    shown_part = {buffer.data(), reduced_width, reduced_height,
                  static_cast<std::ptrdiff_t>(bytes_of(reduced_width, 1))};
  }
  enlarge_in_place(buffer, shown_part, target.width, target.height, pool);
  if (target.width != canvas_width || target.height != canvas_height) {
    spread(buffer.data(), canvas_width, canvas_height, target);
  }
}

}  // namespace cutout
