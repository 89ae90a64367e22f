#pragma once

#include <vector>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// A black shadow: the subject's alpha, moved and blurred. Lengths in pixels of the canvas.
struct DropShadow {
  float opacity = 0;  // 0..1, what an unblurred inner point gets
  float sigma = 0;    // of the Gaussian, > 0
  int offset_x = 0;   // to the right
  int offset_y = 0;   // down
  int fade = 0;  // rows over which it fades to nothing at the canvas's lower border; 0: it does not
};

/// Where a subject in `subject` and its shadow can be seen: the subject's box joined with
///   left = subject.left + offset_x - e, right = subject.right + offset_x + e, likewise vertically,
///   e = ceil(3 * sigma),
/// so that a caller can grow a crop by it. Nothing is drawn outside: a Gaussian of a straight edge
/// has fallen to 0.13 % there.
Box shadow_extent(const Box& subject, const DropShadow& shadow);

/// The shadow of one subject, kept at a reduced size: means of the alpha over cells of a power of
/// two of pixels (3 to 6 cells a sigma), blurred there, linear in between. The blur is narrowed by
/// what taking means and interpolating add, so that the whole has the wanted sigma.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | straight RGBA8, any stride >= width * 4; only alpha inside `subject` is read           |
/// | sigma     | 0.1 and above. Work and scratch of the blur depend on sigma relative to the subject,   |
/// |           | not on pixels: 2 % of its longer side is a plane of at most 450 x 450 cells            |
/// | threads   | rows over the pool; bit-equal for any number of threads. `row` is reentrant            |
/// | agreement | within 0.015 of the scalar version (opacity 1)                                         |
class ShadowPlane {
 public:
  /// `subject` lies inside the canvas and holds every pixel with alpha > 0.
  ShadowPlane(ConstImageView canvas, const Box& subject, const DropShadow& shadow,
              ThreadPool& pool);

  /// Part of the canvas that `row` can be asked for: the shadow's own extent, clipped.
  [[nodiscard]] const Box& box() const { return box_; }

  /// Strength 0..opacity of the shadow at the pixels of box() in row y of the canvas. `out` holds
  /// box().width numbers.
  void row(int y, float* out) const;

 private:
  void reduce(ConstImageView canvas, const Box& subject, ThreadPool& pool);
  void blur(double sigma, ThreadPool& pool);

  Box box_;
  int cell_ = 1;  // pixels, a power of two
  int left_ = 0;  // of the plane, in pixels of the canvas before the shadow is moved
  int top_ = 0;
  int width_ = 0;  // cells
  int height_ = 0;
  int offset_x_ = 0;
  int offset_y_ = 0;
  int fade_end_ = 0;  // row of the canvas where a fading shadow is 0
  int fade_ = 0;      // rows, 0: does not fade
  float opacity_ = 0;
  std::vector<float> cells_;
};

/// The definition: the Gaussian of the moved alpha at every pixel of the canvas, in double
/// precision and at full size. canvas.width * canvas.height numbers.
std::vector<float> shadow_scalar(ConstImageView canvas, const Box& subject,
                                 const DropShadow& shadow);

}  // namespace cutout
