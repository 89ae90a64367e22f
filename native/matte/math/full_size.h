#pragma once

#include <cstdint>

#include "matte/math/local_model.h"
#include "matte/math/pixel.h"
#include "matte/math/probability.h"

namespace cutout {

/// Channels that are interpolated from network pixels to pixels.
enum Channel {
  kCoefficients,  // kA0 .. kB of local_model.h, the plane through the network pixel's own alpha
  kOffset = kCoefficients + kPlaneChannels - 1,  // the last of them
  kFore,
  kBack = kFore + 3,
  kConfidence = kBack + 3,
  kChannels
};

CUTOUT_HD float blend(float a, float b, float t) { return a + t * (b - a); }

/// Catmull-Rom spline between b and c, limited to their range.
CUTOUT_HD float between(float a, float b, float c, float d, float wa, float wb, float wc,
                        float wd) {
  const float value = wa * a + wb * b + wc * c + wd * d;
  const float low = b < c ? b : c;
  const float high = b < c ? c : b;
  return value < low ? low : (value > high ? high : value);
}

/// alpha^2 + (1 - alpha)^2.
CUTOUT_HD float squares(float alpha) {
  const float rest = 1.0F - alpha;
  return alpha * alpha + rest * rest;
}

CUTOUT_HD std::uint32_t to_byte(float v) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(v * 255.0F + 0.5F));
}

/// The refined pixel from `value(channel)`, interpolated linearly, and `q`, the spline's alpha.
/// Steps 3 to 6 of refine.h, with its symbols.
template <typename Value>
CUTOUT_HD std::uint32_t refined_pixel(std::uint32_t pixel, float q, const Value& value,
                                      std::uint32_t hidden_mask) {
  constexpr float kGray = 128.0F;  // behind the image's own transparency, as in network_input.cc
  const std::uint32_t source_alpha = pixel >> 24;
  const float source_opacity =
      static_cast<float>(static_cast<std::int32_t>(source_alpha)) * (1.0F / 255.0F);
  const float gray = kGray * (1.0F - source_opacity);
  const auto colour_of = [&](int shift) {
    const auto byte = static_cast<std::int32_t>((pixel >> shift) & 255U);
    return (static_cast<float>(byte) * source_opacity + gray) * (1.0F / 255.0F);
  };
  const float colour[3] = {colour_of(0), colour_of(8), colour_of(16)};
  const float plane[4] = {value(kCoefficients), value(kCoefficients + 1), value(kCoefficients + 2),
                          value(kCoefficients + 3)};
  const float fore[3] = {value(kFore), value(kFore + 1), value(kFore + 2)};
  const float back[3] = {value(kBack), value(kBack + 1), value(kBack + 2)};
  const float confidence = value(kConfidence);
  const float guided = clamp01(plane_alpha(colour, plane));
  const float alpha1 = clamp01(blend(q, guided, confidence));
  const float d[3] = {fore[0] - back[0], fore[1] - back[1], fore[2] - back[2]};
  const auto residual = [&](int c, float a) { return colour[c] - back[c] - a * d[c]; };
  const float r[3] = {residual(0, alpha1), residual(1, alpha1), residual(2, alpha1)};
  const float separation = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
  const float projection = r[0] * d[0] + r[1] * d[1] + r[2] * d[2];
  // Of the colour from the line F-B; rounding may leave it below 0.
  const float squared_distance =
      r[0] * r[0] + r[1] * r[1] + r[2] * r[2] - projection * projection / (separation + kNoise);
  const float u =
      confidence * kNoise / (kNoise + (squared_distance > 0.0F ? squared_distance : 0.0F));
  const float alpha = clamp01(alpha1 + u * projection / (squares(alpha1) + u * separation));
  const float share = alpha / squares(alpha);
  const auto foreground_byte = [&](int c) {
    return to_byte(clamp01(fore[c] + share * residual(c, alpha)));
  };
  const std::uint32_t foreground =
      foreground_byte(0) | (foreground_byte(1) << 8) | (foreground_byte(2) << 16);
  const std::uint32_t m = to_byte(alpha);
  // A mask of all bits where the pixel is mixed: a branch would keep the loop from being
  // vectorised.
  const std::uint32_t mixed =
      0U - (static_cast<std::uint32_t>(source_alpha == 255) & static_cast<std::uint32_t>(m != 255) &
            static_cast<std::uint32_t>(m != 0));
  const std::uint32_t rgb = (foreground & mixed) | (pixel & ~mixed & 0x00FFFFFFU);
  return with_alpha(rgb, multiply_255(source_alpha, m), hidden_mask);
}

/// Alpha for which colours are estimated where colour sampling ran.
CUTOUT_HD float toward_samples(float alpha, float sample_confidence, float sampled_alpha) {
  return alpha + sample_confidence * (sampled_alpha - alpha);
}

}  // namespace cutout
