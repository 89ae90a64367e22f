#pragma once

#include <cstdint>

#include "core/simd.h"
#include "matte/math/probability.h"
#include "matte/math/pyramid.h"

namespace cutout {

/// A network pixel of colour sampling (matte/colour_sampling.h).

inline constexpr int kForeRadius = 3;  // network pixels
inline constexpr int kBackRadius = 2;
inline constexpr int kWideRadius = 20;
// Wide parts with p above it are foreground samples; those below 1 - kInside are not raised.
inline constexpr float kInside = 0.7F;
inline constexpr float kUnknown = 0.5F;
// Variance of a colour along F - B, as a share of the sum over its three channels: between one
// third, where all directions are alike, and 1.
inline constexpr float kAlongLine = 0.5F;

// Bits of a label: what all network pixels of a neighbourhood are.
inline constexpr std::uint8_t kForeSample = 1;
inline constexpr std::uint8_t kBackSample = 2;

CUTOUT_HD std::uint8_t label_of(float p) {
  return static_cast<std::uint8_t>(static_cast<int>(p > kCertainForeground) * kForeSample +
                                   static_cast<int>(p < kCertainBackground) * kBackSample);
}

CUTOUT_HD bool is_inside(float p) { return p > kInside; }
CUTOUT_HD bool is_faint(float p) { return !(p >= 1.0F - kInside); }

/// 1 for foreground, 0 for background, kUnknown for neither.
CUTOUT_HD float level_of(std::uint8_t labels) {
  return kUnknown + 0.5F * (static_cast<float>(labels & kForeSample) -
                            0.5F * static_cast<float>(labels & kBackSample));
}

/// The sampled alpha t of a network pixel and its confidence c.
struct Sample {
  float alpha;
  float confidence;
};

/// Variance of the colours that were averaged, from their mean and the mean of their squared
/// length; rounding may leave that below 0.
CUTOUT_HD float variance_of(const float* mean) {
  const float variance = mean[kSquaredLength] - squared_length(mean[0], mean[1], mean[2]);
  return variance > 0.0F ? variance : 0.0F;
}

/// `fore`, `back`: means of the samples' r, g, b and squared length; `p` in 0..1.
CUTOUT_HD Sample sample_of(const float* colour, const float* fore, const float* back, float p) {
  const float d[3] = {fore[0] - back[0], fore[1] - back[1], fore[2] - back[2]};
  const float x[3] = {colour[0] - back[0], colour[1] - back[1], colour[2] - back[2]};
  const float separation = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
  const float along = x[0] * d[0] + x[1] * d[1] + x[2] * d[2];
  const float line = along / (separation + 1e-6F);
  const float alpha = clamp01(line);
  const float e[3] = {x[0] - line * d[0], x[1] - line * d[1], x[2] - line * d[2]};
  const float distance = e[0] * e[0] + e[1] * e[1] + e[2] * e[2];
  const float rest = 1.0F - alpha;
  const float variance =
      kNoise + (alpha * alpha * variance_of(fore) + rest * rest * variance_of(back));
  const float prior = p * (1.0F - p) * separation;
  return {alpha, prior / (prior + kAlongLine * variance) * (kNoise / (kNoise + distance))};
}

/// Returns the sample without confidence where it would raise what is faint.
CUTOUT_HD Sample limited_where_faint(const Sample& sample, float p, bool faint) {
  return {sample.alpha, faint && sample.alpha > p ? 0.0F : sample.confidence};
}

CUTOUT_HD float moved_towards(float p, const Sample& sample) {
  return clamp01(p + sample.confidence * (sample.alpha - p));
}

}  // namespace cutout
