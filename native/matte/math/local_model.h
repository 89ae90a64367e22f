#pragma once

#include <cstddef>

#include "core/simd.h"

namespace cutout {

/// Alpha as a function of colour, fitted to a window of 7 x 7 network pixels (the border repeated):
/// a plane, alpha = a . colour + b, the least-squares fit of the colour guided filter (He 2010).
/// Each channel is an array of its own.
enum ModelChannel { kA0, kA1, kA2, kB };
inline constexpr int kPlaneChannels = 4;  // kA0 .. kB

inline constexpr int kModelRadius = 3;    // network pixels
inline constexpr float kEpsilon = 1e-7F;  // squared colour, added to the variances of a window

inline constexpr int kModelWindow = 2 * kModelRadius + 1;
static_assert(kModelWindow == 7, "the sums below are written out");
/// The factor from the sum of a window's values to their mean.
inline constexpr float kWindowMean = 1.0F / (kModelWindow * kModelWindow);

/// Subtracted from colours and alpha before they are summed. Variances are differences of means of
/// squares; smaller squares lose less to rounding.
inline constexpr float kModelMiddle = 0.5F;

namespace window {

/// Products that are summed over a window.
enum Product { kR, kG, kBl, kP, kRR, kRG, kRB, kGG, kGB, kBB, kRp, kGp, kBp, kProducts };

}  // namespace window

/// The sum of seven numbers in a fixed order.
CUTOUT_HD float sum7(float a, float b, float c, float d, float e, float f, float g) {
  return ((a + b) + (c + d)) + ((e + f) + g);
}

CUTOUT_HD void plane_products(float r, float g, float b, float p, float* out,
                              std::ptrdiff_t stride) {
  using enum window::Product;
  out[kR * stride] = r;
  out[kG * stride] = g;
  out[kBl * stride] = b;
  out[kP * stride] = p;
  out[kRR * stride] = r * r;
  out[kRG * stride] = r * g;
  out[kRB * stride] = r * b;
  out[kGG * stride] = g * g;
  out[kGB * stride] = g * b;
  out[kBB * stride] = b * b;
  out[kRp * stride] = r * p;
  out[kGp * stride] = g * p;
  out[kBp * stride] = b * p;
}

CUTOUT_HD float at_least(float value, float least) { return value > least ? value : least; }

/// LDL^T of a window's covariances of colour with `epsilon` added to the variances. In windows of
/// one colour, of grays or of two colours the matrix has at most one large eigenvalue; its
/// determinant, of the order of epsilon^2, would be lost to rounding, while every pivot is at least
/// epsilon and is limited to that.
struct Covariance {
  float over0;  // 1 / pivots
  float over1;
  float over2;
  float l10;
  float l20;
  float l21;
};

CUTOUT_HD Covariance factor(float rr, float rg, float rb, float gg, float gb, float bb,
                            float epsilon) {
  Covariance f;
  f.over0 = 1.0F / at_least(rr + epsilon, epsilon);
  f.l10 = rg * f.over0;
  f.l20 = rb * f.over0;
  f.over1 = 1.0F / at_least(gg + epsilon - f.l10 * rg, epsilon);
  const float rest = gb - f.l10 * rb;
  f.l21 = rest * f.over1;
  f.over2 = 1.0F / at_least(bb + epsilon - f.l20 * rb - f.l21 * rest, epsilon);
  return f;
}

/// The slopes of a plane from its covariances with alpha.
CUTOUT_HD void solve_slopes(const Covariance& f, float rp, float gp, float bp, float* a) {
  const float y1 = gp - f.l10 * rp;
  const float y2 = bp - f.l20 * rp - f.l21 * y1;
  a[2] = y2 * f.over2;
  a[1] = y1 * f.over1 - f.l21 * a[2];
  a[0] = rp * f.over0 - f.l10 * a[1] - f.l20 * a[2];
}

/// Sums over a window -> the plane: (covariances + kEpsilon) a = covariances with alpha.
CUTOUT_HD void solve_plane(const float* sum, std::ptrdiff_t from, float* out, std::ptrdiff_t to) {
  using enum window::Product;
  const auto mean = [&](int k) { return sum[k * from] * kWindowMean; };
  const float r = mean(kR);
  const float g = mean(kG);
  const float b = mean(kBl);
  const float p = mean(kP);
  const Covariance covariance =
      factor(mean(kRR) - r * r, mean(kRG) - r * g, mean(kRB) - r * b, mean(kGG) - g * g,
             mean(kGB) - g * b, mean(kBB) - b * b, kEpsilon);
  float a[3];
  solve_slopes(covariance, mean(kRp) - r * p, mean(kGp) - g * p, mean(kBp) - b * p, a);
  out[kA0 * to] = a[0];
  out[kA1 * to] = a[1];
  out[kA2 * to] = a[2];
  const float middle = p - (a[0] * r + a[1] * g + a[2] * b);  // alpha - 1/2 of the middle gray
  out[kB * to] = kModelMiddle + middle - kModelMiddle * (a[0] + a[1] + a[2]);
}

/// The offset of the plane with the slopes of `plane` that gives a colour in 0..1 this alpha.
CUTOUT_HD float offset_through(const float* colour, const float* plane, float alpha) {
  return alpha - (plane[kA0] * colour[0] + plane[kA1] * colour[1] + plane[kA2] * colour[2]);
}

/// Alpha of a colour in 0..1 by a plane; may lie outside 0..1.
CUTOUT_HD float plane_alpha(const float* colour, const float* plane) {
  return plane[kA0] * colour[0] + plane[kA1] * colour[1] + plane[kA2] * colour[2] + plane[kB];
}

}  // namespace cutout
