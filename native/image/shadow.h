#pragma once

#include <vector>

#include "core/image_view.h"
#include "core/thread_pool.h"
#include "image/math/shadow.h"

namespace cutout {

/// A black shadow: the subject's alpha, moved and blurred. Lengths in pixels of the canvas.
struct DropShadow {
  float opacity = 0;  // 0..1, strength before the blur
  float sigma = 0;    // standard deviation of the Gaussian, > 0
  int offset_x = 0;   // to the right
  int offset_y = 0;   // down
  // Rows over which it fades to 0 at a lower border of the canvas that cuts the subject; 0: no
  // fade.
  int fade = 0;
};

/// What of the canvas a shadow covers, its blocks and their blur.
struct ShadowLayout {
  Box box;
  ShadowGrid grid;
  std::vector<float> blur;  // weights of a Gaussian in blocks, sum 1, an odd number
};

/// `subject` lies inside the canvas.
ShadowLayout shadow_layout(ConstImageView canvas, const Box& subject, const DropShadow& shadow);

/// Computes the shadow of one subject, row by row; image/layers.h draws a row under the subject.
///
/// It is held at a reduced size: means of alpha over square blocks, whose side is a
/// power of two of pixels (3 to 6 blocks a sigma), blurred and interpolated linearly. The variance
/// that means and interpolation add is subtracted from the blur's, so that sigma is exact.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | straight RGBA8, any stride >= width * 4; only alpha inside `subject` is read           |
/// | sigma     | 0.1 and above. Time and scratch depend on sigma relative to the subject's size: with   |
/// |           | 2 % of the longer side the plane has at most 450 x 450 blocks                          |
/// | threads   | rows over the pool; bit-equal for any number of threads. `row` is reentrant            |
/// | agreement | within 0.015 of the scalar version (opacity 1)                                         |
class ShadowPlane {
 public:
  /// `subject` lies inside the canvas and holds every pixel with alpha > 0.
  ShadowPlane(ConstImageView canvas, const Box& subject, const DropShadow& shadow,
              ThreadPool& pool);

  /// Part of the canvas that the shadow covers.
  [[nodiscard]] const Box& box() const { return layout_.box; }

  /// Strength 0..opacity of the shadow at the pixels of box() in row y of the canvas. `out` holds
  /// box().width numbers.
  void row(int y, float* out) const;

 private:
  void reduce(ConstImageView canvas, const Box& subject, ThreadPool& pool);
  void blur(ThreadPool& pool);

  ShadowLayout layout_;
  std::vector<float> blocks_;
};

}  // namespace cutout
