#pragma once

#include <array>
#include <vector>

#include "matte/guide.h"
#include "matte/math/local_model.h"

namespace cutout {

/// The planes of a strip of network pixels, row by row. Rows may be asked for in any order; top to
/// bottom is fast, since the sums of eight rows are kept.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | alpha     | guide.size() numbers in 0..1                                                           |
/// | strip     | columns left .. left + width - 1 of the guide, at least one                            |
/// | scratch   | 13 * 9 floats a column, whole vectors of columns                                       |
/// | threads   | one object a thread; the result of a network pixel depends on its window only          |
/// | agreement | bit-equal to the scalar version; rounding errors of alpha are bounded in               |
/// |           | test/native/localModel.test.ts                                                        |
class LocalModel {
 public:
  LocalModel(const Guide& guide, const float* alpha, int left, int width);

  /// Row y as out[channel * stride + i], i the column in the strip; kPlaneChannels channels.
  void row(int y, float* out, int stride);

 private:
  const float* sums(int y);

  const Guide& guide_;
  const float* alpha_;
  int left_;
  int width_;
  int padded_;                     // columns of a plane of sums, rounded up to whole vectors
  int bordered_;                   // the same with the window's border
  std::array<float, 3> offset_{};  // of the guide's colours, less 1/2
  std::vector<float> line_;        // colours and alpha of one row with its border
  std::vector<float> products_;    // of one row
  std::array<int, 8> kept_{};
  std::array<std::vector<float>, 8> rows_;  // sums along rows, by row modulo 8
};

}  // namespace cutout
