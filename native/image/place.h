#pragma once

#include <cstdint>
#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// Moves a part of an image onto a canvas, all in one buffer: `source` (pixels of the image) is
/// placed in `target` (pixels of the canvas), reduced with Lanczos3 where the target is smaller and
/// then enlarged with the Catmull-Rom cubic where it is larger (enlarge.h). The rest of the canvas
/// is transparent black. Without scaling every byte is copied, colours under alpha 0 included.
/// Pixels of the image outside `source` have no influence.
///
/// | limit   |                                                                                          |
/// |---------|------------------------------------------------------------------------------------------|
/// | buffer  | large enough for image and canvas; the image (straight RGBA8, no padding) is at its      |
/// |         | front, afterwards the canvas. Bytes behind the canvas are undefined                      |
/// | source  | inside the image, not empty                                                              |
/// | target  | inside the canvas, not empty; smaller or larger than the source by any factor            |
/// | scratch | scaled: 128 rows of the target and a few of the source (enlarge.h); else nothing         |
/// | threads | resampling over the pool, moves in the caller; same bytes for any number of threads      |
void place(std::span<std::uint8_t> buffer, int width, const Box& source, int canvas_width,
           int canvas_height, const Box& target, ThreadPool& pool);

}  // namespace cutout
