#pragma once

#include <cstdint>
#include <span>

#include "core/image_view.h"
#include "core/status.h"
#include "core/thread_pool.h"

namespace cutout {

/// Enlarges a picture that lies anywhere in the buffer to `to_width` x `to_height` with
/// Catmull-Rom's cubic on premultiplied colours, the border repeated; the result lies at the front.
/// After each of the two passes, the vertical one first, overshoot is taken away: alpha into
/// 0..255, colours reduced along with an alpha above that (their straight value stays), then into
/// 0..alpha. So no ring and no speck appears where the picture is transparent. RGB is 0 where the
/// result's alpha is 0. With the size it already has, the picture keeps every value.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | straight RGBA8, any stride; the result's rows without padding                          |
/// | size      | at least the picture's in each direction, by any factor; at most the buffer            |
/// | errors    | kBadInput when one of these does not hold; nothing is changed then                     |
/// | in == out | yes. Rows that come to lie before what they are made of are written from the front     |
/// |           | on, the others from the end backwards; a band of finished rows waits outside until     |
/// |           | its place is free. What lies behind the result is undefined                            |
/// | threads   | rows of a band over the pool; bit-equal for any number of threads                      |
/// | scratch   | 4 bands of 64 rows of the result, a float row of the picture for each running range    |
/// | agreement | alpha and premultiplied colour within 1 of the scalar version                          |
Status enlarge_in_place(std::span<std::uint8_t> buffer, ConstImageView picture, int to_width,
                        int to_height, ThreadPool& pool);

/// The definition, in double precision; `out` holds width * height * 4 bytes.
void enlarge_scalar(ConstImageView rgba, int width, int height, std::uint8_t* out);

}  // namespace cutout
