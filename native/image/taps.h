#pragma once

#include <cstddef>
#include <vector>

namespace cutout {

/// One axis of a separable filter. Output i is the sum over k < count[i] of
///   weights[i * stride + k] * input[first[i] + k].
/// `stride` is a multiple of 4 and the weights from count[i] on are 0, so taps may be read in
/// groups of four where `stride` numbers behind the input are readable. The weights of an output
/// sum to 1.
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

/// Area average where `out` < `in`: the mean over the exact interval of an output, fractions of
/// pixels included. Linear interpolation between pixel centres, the border repeated, where `out` >
/// `in`.
Taps area_taps(int in, int out);

/// Lanczos with three lobes, widened by in / out (>= 1); taps outside the image are left out and
/// the others normalised. A copy where in == out.
Taps lanczos3_taps(int in, int out);

}  // namespace cutout
