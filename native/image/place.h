#pragma once

#include <cstdint>
#include <span>

#include "core/image_view.h"
#include "core/status.h"
#include "core/thread_pool.h"

namespace cutout {

/// Moves a part of a picture onto a canvas, all in one buffer: `source` (pixels of the picture)
/// comes to lie in `target` (pixels of the canvas), reduced with Lanczos3 where the target is
/// smaller and then enlarged with Catmull-Rom's cubic where it is larger (enlarge.h). What the
/// target does not cover is transparent black. Without scaling every byte is copied as it is,
/// hidden colours included; what surrounds `source` in the picture never shows.
///
/// | limit   |                                                                                          |
/// |---------|------------------------------------------------------------------------------------------|
/// | buffer  | starts with the picture (straight RGBA8, width * height, no padding), ends up starting   |
/// |         | with the canvas; holds both. Behind the canvas its content is undefined                  |
/// | source  | inside the picture, not empty                                                            |
/// | target  | inside the canvas, not empty; smaller or larger than the source by any factor            |
/// | errors  | kBadInput when one of these does not hold; nothing is changed then                       |
/// | scratch | scaled: 256 rows of the target and a few of the source (enlarge.h); else nothing         |
/// | threads | resampling over the pool, moves in the caller; same bytes for any number of threads      |
Status place(std::span<std::uint8_t> buffer, int width, int height, const Box& source,
             int canvas_width, int canvas_height, const Box& target, ThreadPool& pool);

}  // namespace cutout
