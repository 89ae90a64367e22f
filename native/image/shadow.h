#pragma once

#include <vector>

#include "core/image_view.h"
#include "core/thread_pool.h"

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

/// Share of the shadow in row y, which fades to 0 at `end` over `rows`.
inline float fade_at(int y, int end, int rows) {
  if (rows == 0) return 1;
  const float share = (static_cast<float>(end - y) - 0.5F) / static_cast<float>(rows);
  return share < 0.0F ? 0.0F : (share > 1.0F ? 1.0F : share);
}

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
  [[nodiscard]] const Box& box() const { return box_; }

  /// Strength 0..opacity of the shadow at the pixels of box() in row y of the canvas. `out` holds
  /// box().width numbers.
  void row(int y, float* out) const;

 private:
  void reduce(ConstImageView canvas, const Box& subject, ThreadPool& pool);
  void blur(const std::vector<float>& weights, ThreadPool& pool);

  DropShadow shadow_;  // its fade is 0 where the border does not cut the subject
  int fade_end_;       // row of the canvas where a fading shadow is 0
  Box box_;
  int block_ = 1;  // side in pixels, a power of two
  Box plane_;      // its corner in pixels of the canvas, without the offset; its size in blocks
  std::vector<float> blocks_;
};

}  // namespace cutout
