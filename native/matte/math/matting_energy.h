#pragma once

#include "core/simd.h"
#include "matte/math/local_model.h"
#include "matte/math/probability.h"
#include "matte/math/stencil.h"

namespace cutout {

// The terms of matting_energy.h for a network pixel or a window.

namespace energy {

// Weight of the matting Laplacian against the squared errors of the output.
inline constexpr float kSmoothness = 5.0F;
// Share s of the change by blurring that blurring again changes. At an edge of the image with n
// times the variance of the network's blur, in an output that the network blurred once more, it is
//   S(4) / S(2), S(m) = sum over k of (-1)^k binomial(m, k) sqrt(1 + n + k / 2):
// 0.1758 at a step (n = 0), 0.0844 where both blurs are alike (n = 1). Among strands 0.3 to 0.9.
inline constexpr float kWide = 0.0844F;
inline constexpr float kFine = 0.1758F;

// The trace of a window's Laplacian is 49 - 4: a plane has four numbers.
inline constexpr float kWindowDiagonal = 1.0F - 4.0F * kWindowMean;

/// Means of colours over a window, and the factors of their covariances.
struct Window {
  float red;
  float green;
  float blue;
  Covariance covariance;
};

/// f from the mean squares of the change by blurring and of the change by blurring that again.
CUTOUT_HD float fineness(float once, float twice) {
  const float share = twice / (once + 1e-9F);
  return clamp01((share - kWide) / (kFine - kWide));
}

/// From sum(k): sums over a window of r, g, b, r r, r g, r b, g g, g b, b b.
template <typename Sum>
CUTOUT_HD Window window_of(const Sum& sum) {
  const auto mean = [&](int k) { return sum(k) * kWindowMean; };
  const float r = mean(0);
  const float g = mean(1);
  const float b = mean(2);
  return {r, g, b,
          factor(mean(3) - r * r, mean(4) - r * g, mean(5) - r * b, mean(6) - g * g,
                 mean(7) - g * b, mean(8) - b * b, kEpsilon)};
}

/// Sums over a window of r v, g v, b v and v -> f times the plane's slopes and offset, in place.
CUTOUT_HD void fit_plane(const Window& window, float f, float& red, float& green, float& blue,
                         float& value) {
  const float mean = value * kWindowMean;
  float a[3];
  solve_slopes(window.covariance, red * kWindowMean - window.red * mean,
               green * kWindowMean - window.green * mean, blue * kWindowMean - window.blue * mean,
               a);
  red = f * a[0];
  green = f * a[1];
  blue = f * a[2];
  value = f * (mean - a[0] * window.red - a[1] * window.green - a[2] * window.blue);
}

/// Returns the residual of the data term: (1 - c) (blurred - p), with share 0 without p.
CUTOUT_HD float data_residual(float sample_confidence, float output, float share, float blurred) {
  return (1.0F - sample_confidence) * (blurred - share * snap(output));
}

/// value - (sum of window planes), times the smoothness. `count`: sum of the windows' f / 49;
/// r, g, b, offset: sums of what fit_plane() gives.
CUTOUT_HD float laplacian(float count, float value, float red, float green, float blue, float r,
                          float g, float b, float offset) {
  const float planes = r * red + g * green + b * blue + offset;
  return kSmoothness * (count * value - kWindowMean * planes);
}

/// 1/2 of the Hessian times a direction, of which `value` is the network pixel's.
CUTOUT_HD float hessian(float smooth, float blurred, float value, float sample_confidence,
                        float fineness) {
  return blurred + smooth + (sample_confidence + (1.0F - fineness)) * value;
}

/// -1/2 of the gradient at the start.
CUTOUT_HD float descent(float smooth, float blurred, float value, float sample_confidence,
                        float sampled) {
  return -(blurred + smooth + sample_confidence * (value - sampled));
}

/// The diagonal of the blur applied twice, H'H.
CUTOUT_HD float blur_diagonal(const float* weights) {
  float squares = weights[0] * weights[0];
  for (int i = 1; i <= kBlurRadius; ++i) squares += 2.0F * weights[i] * weights[i];
  return squares * squares;
}

/// Approximation of the diagonal of 1/2 of the Hessian.
CUTOUT_HD float diagonal(float sample_confidence, float fineness, float count, float blur) {
  return (1.0F - sample_confidence) * blur + sample_confidence + (1.0F - fineness) +
         kSmoothness * kWindowDiagonal * count;
}

}  // namespace energy

}  // namespace cutout
