#pragma once

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// Reduces the image to `width` x `height` with Lanczos3 on premultiplied colours. The result,
/// straight and without row padding, lies in the first width * height * 4 bytes of the same memory;
/// bytes behind it are undefined. RGB is 0 where the result's alpha is 0. At its own size the image
/// only loses its row padding.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | straight RGBA8, stride >= width * 4                                                    |
/// | size      | 1..rgba.width x 1..rgba.height                                                         |
/// | in == out | yes: finished rows wait in a ring until the rows that still need their place were read |
/// | threads   | rows of a band over the pool; bit-equal for any number of threads                      |
/// | scratch   | 2 bands of 64 rows of the result, a float row of the image for each running range      |
/// | agreement | alpha and premultiplied colour within 1 of the scalar version                          |
void reduce_in_place(ImageView rgba, int width, int height, ThreadPool& pool);

}  // namespace cutout
