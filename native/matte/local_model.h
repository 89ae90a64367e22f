#pragma once

#include <array>
#include <vector>

#include "core/simd.h"
#include "matte/guide.h"

namespace cutout {

/// Alpha as a function of colour, fitted to a window of 7 x 7 network pixels (the border repeated).
/// Two models:
///  - a plane, alpha = a . colour + b, the least-squares fit of the colour guided filter (He 2010);
///  - a colour line (Levin 2006) between two colours, the means of foreground and background with
///    the weights alpha^2 and (1 - alpha)^2.
///
/// Each channel is an array of its own.
enum ModelChannel { kA0, kA1, kA2, kB, kFore0, kFore1, kFore2, kBack0, kBack1, kBack2 };
inline constexpr int kModelChannels = 10;
inline constexpr int kPlaneChannels = 4;  // kA0 .. kB

/// Which models are fitted: the plane alone takes 13 sums over the window, both 21.
enum class Models { kPlane, kBoth };
inline constexpr int kModelRadius = 3;     // network pixels
inline constexpr float kLinePrior = 0.2F;  // weight of the plane's alpha on the line, colour^2

/// Alpha of a colour by both models: the line counts where its two colours are far apart, the plane
/// where they are alike. All colours in 0..1.
CUTOUT_INLINE float model_alpha(const float* colour, const float* plane, const float* fore,
                                const float* back) {
  float g = plane[0] * colour[0] + plane[1] * colour[1] + plane[2] * colour[2] + plane[3];
  g = g > 0.0F ? g : 0.0F;
  g = g < 1.0F ? g : 1.0F;
  const float d0 = fore[0] - back[0];
  const float d1 = fore[1] - back[1];
  const float d2 = fore[2] - back[2];
  const float along =
      (colour[0] - back[0]) * d0 + (colour[1] - back[1]) * d1 + (colour[2] - back[2]) * d2;
  float line = (along + kLinePrior * g) / (d0 * d0 + d1 * d1 + d2 * d2 + kLinePrior);
  line = line > 0.0F ? line : 0.0F;
  return line < 1.0F ? line : 1.0F;
}

/// The models of a strip of network pixels, row by row. Rows may be asked for in any order; top to
/// bottom is fast, since the sums of eight rows are kept.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | alpha     | guide.size() numbers in 0..1                                                           |
/// | strip     | columns left .. left + width - 1 of the guide, at least one                            |
/// | scratch   | 21 * 9 floats a column, whole vectors of columns                                       |
/// | threads   | one object a thread; the result of a network pixel depends on its window only          |
/// | agreement | bit-equal to the scalar version; rounding errors of alpha are bounded in               |
/// |           | test/native/localModel.test.ts                                                        |
class LocalModel {
 public:
  LocalModel(const Guide& guide, const float* alpha, int left, int width, Models models);

  /// Row y as out[channel * stride + i], i the column in the strip: kModelChannels or
  /// kPlaneChannels channels.
  void row(int y, float* out, int stride);

 private:
  const float* sums(int y);

  const Guide& guide_;
  const float* alpha_;
  int left_;
  int width_;
  int product_count_;              // products that are summed
  int padded_;                     // columns of a plane of sums, rounded up to whole vectors
  int bordered_;                   // the same with the window's border
  std::array<float, 3> offset_{};  // of the guide's colours, less 1/2
  std::vector<float> line_;        // colours and alpha of one row with its border
  std::vector<float> products_;    // of one row
  std::array<int, 8> kept_{};
  std::array<std::vector<float>, 8> rows_;  // sums along rows, by row modulo 8
};

/// Both models of one network pixel.
std::array<float, kModelChannels> local_model_scalar(const Guide& guide, const float* alpha, int x,
                                                     int y);

}  // namespace cutout
