#pragma once

#include <cstdint>
#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// Enlarges an image that lies anywhere in the buffer to `to_width` x `to_height` with the
/// Catmull-Rom cubic on premultiplied colours, the border repeated; the result lies at the front of
/// the buffer. After each of the two passes, the vertical one first, overshoot is limited: alpha to
/// 0..255, with the colours scaled by the same factor, then colours to 0..alpha. So nothing appears
/// where the image is transparent. RGB is 0 where the result's alpha is 0. At its own size the
/// image is only moved.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | straight RGBA8, any stride; the result's rows without padding                          |
/// | size      | at least the image's in each direction, by any factor; at most the buffer              |
/// | in == out | yes: the image is moved to the buffer's end, then the result grows from its front     |
/// |           | (in_place.h). Bytes behind the result are undefined                                    |
/// | threads   | rows of a band over the pool; bit-equal for any number of threads                      |
/// | scratch   | 2 bands of 64 rows of the result, a float row of the image for each running range      |
/// | agreement | alpha and premultiplied colour within 1 of the scalar version                          |
void enlarge_in_place(std::span<std::uint8_t> buffer, ConstImageView image, int to_width,
                      int to_height, ThreadPool& pool);

}  // namespace cutout
