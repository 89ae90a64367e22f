#pragma once

#include <cstdint>

#include "core/image_view.h"
#include "core/status.h"
#include "core/thread_pool.h"

namespace cutout {

/// Reduces the picture to `width` x `height` with Lanczos3 on premultiplied colours. The result
/// lies, straight and rows without padding, in the first width * height * 4 bytes of the same
/// memory; what lies behind is undefined. RGB is 0 where the result's alpha is 0. With the size it
/// already has, the picture only loses its row padding and keeps every value.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | straight RGBA8, stride >= width * 4                                                    |
/// | size      | 1..rgba.width x 1..rgba.height; anything else is kBadInput and changes nothing         |
/// | in == out | yes, that is its purpose: a band of finished rows waits outside until the rows that    |
/// |           | still need its place have been read                                                    |
/// | threads   | rows of a band over the pool; bit-equal for any number of threads                      |
/// | scratch   | 2 bands of 64 rows of the result, a float row of the picture for each running range    |
/// | agreement | alpha and premultiplied colour within 1 of the scalar version                          |
Status reduce_in_place(ImageView rgba, int width, int height, ThreadPool& pool);

/// The definition, in double precision and two dimensions at once; `out` holds width * height * 4
/// bytes.
void reduce_scalar(ConstImageView rgba, int width, int height, std::uint8_t* out);

/// Premultiplied float RGBA (filter.h) -> straight RGBA8, rounded and clamped; 0 where alpha rounds
/// to 0.
void store_straight(const float* premultiplied, int pixels, std::uint8_t* out);

}  // namespace cutout
