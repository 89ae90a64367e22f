#pragma once

#include <cstdint>
#include <span>

#include "core/image_view.h"
#include "core/status.h"
#include "core/thread_pool.h"

namespace cutout {

/// Moves a part of a picture onto a canvas, all in one buffer: `source` (pixels of the picture)
/// comes to lie in `target` (pixels of the canvas), reduced with Lanczos3 (resample.h) when the
/// target is smaller. What the target does not cover is transparent black. Without scaling every
/// byte is copied as it is, hidden colours included.
///
/// | limit   |                                                                                          |
/// |---------|------------------------------------------------------------------------------------------|
/// | buffer  | starts with the picture (straight RGBA8, width * height, no padding), ends up starting   |
/// |         | with the canvas; holds both. Behind the canvas its content is undefined                  |
/// | source  | inside the picture, not empty                                                            |
/// | target  | inside the canvas, not empty, at most as large as the source in each direction           |
/// | errors  | kBadInput when one of these does not hold; nothing is changed then                       |
/// | threads | resampling over the pool, moves in the caller; same bytes for any number of threads      |
Status place(std::span<std::uint8_t> buffer, int width, int height, const Box& source,
             int canvas_width, int canvas_height, const Box& target, ThreadPool& pool);

}  // namespace cutout
