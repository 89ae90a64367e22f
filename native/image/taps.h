#pragma once

#include <cstddef>
#include <vector>

namespace cutout {

/// One axis of a separable filter. Output i is the sum over k < count[i] of
///   weights[i * stride + k] * input[first[i] + k].
/// `stride` is a multiple of 4 and the weights from count[i] on are 0, so a reader may take whole
/// groups of four as long as the input is followed by `stride` readable numbers. The weights of an
/// output sum to 1.
struct Taps {
  int stride = 0;
  std::vector<int> first;
  std::vector<int> count;
  std::vector<float> weights;

  [[nodiscard]] int outputs() const { return static_cast<int>(first.size()); }
  [[nodiscard]] const float* of(int output) const {
    return weights.data() + static_cast<std::size_t>(output) * static_cast<std::size_t>(stride);
  }
};

/// Shrinking: the mean over the exact interval an output covers, fractions of pixels included.
/// Enlarging: linear interpolation between pixel centres, the border repeated. Equal: a copy.
Taps area_taps(int in, int out);

/// Lanczos with three lobes, widened by in / out (>= 1) so that it does not alias; at the border
/// the taps outside the picture are left out and the others normalised. Equal: a copy.
Taps lanczos3_taps(int in, int out);

}  // namespace cutout
