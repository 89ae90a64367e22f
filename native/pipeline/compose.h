#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"
#include "image/shadow.h"

namespace cutout {

/// Geometry and layers of a result, in whole pixels. Fields as in src/engine/types.ts.
struct ComposePlan {
  int width = 0;  // of the canvas
  int height = 0;
  Box source;                            // part of the image that is shown
  Box target;                            // its place on the canvas; scaled where the sizes differ
  std::array<std::uint8_t, 4> colour{};  // straight RGBA behind everything; alpha 0: none
  ConstImageView background;             // straight RGBA of the canvas's size instead of `colour`
  std::optional<DropShadow> shadow;
};

struct ComposeSummary {
  Box box;              // of the subject's matte on the canvas, without its shadow
  bool opaque = false;  // every pixel of the result has alpha 255
};

/// The numbered steps of one composition, on the calling thread and idle threads of the pool:
///  1. crop, scale and place the image (image/place.h)
///  2. find the subject's box
///  3. blur its shadow at a reduced size (image/shadow.h)
///  4. lay the image over shadow and background (image/layers.h)
///
/// RGB equals the image's where its alpha is 255 and it was not scaled. Colours under alpha 0 are
/// kept where nothing is drawn behind them (for the ZIP's color.jpg), and are 0 after scaling.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | buffer    | as place.h: the image at its front becomes the canvas at its front                     |
/// | background| any stride; not in the buffer                                                          |
/// | shadow    | sigma 0.1..4096, opacity 0..1, offsets at most 65535 either way, fade >= 0             |
/// | scratch   | 128 rows of the target when it is scaled (place.h), the shadow's plane (shadow.h)      |
/// | threads   | rows over the pool; same bytes and summary for any number of threads                   |
/// | errors    | Stopped by the pool of a job (thread_pool.h); the buffer is undefined then             |
/// | agreement | within 1 of the scalar version without a shadow; 4 with one                            |
ComposeSummary compose(std::span<std::uint8_t> buffer, int width, const ComposePlan& plan,
                       ThreadPool& pool);

}  // namespace cutout
