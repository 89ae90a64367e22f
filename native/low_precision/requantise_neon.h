#pragma once

#include <arm_neon.h>

#include <cmath>
#include <cstdint>

#include "low_precision/conv.h"

namespace cutout::low_precision {

#define CUTOUT_NEON inline __attribute__((always_inline))

/// Channels of a register of sums, and registers of a group.
constexpr int kQuad = 4;
constexpr int kQuads = kLanes / kQuad;

/// Sums of kLanes output channels of one pixel, in four quarters.
struct SumsNeon {
  int32x4_t quad[kQuads];
};

/// Constants of kLanes output channels, and what becomes of their sums.
struct RequantiserNeon {
  float32x4_t scale[kQuads];
  int32x4_t bias[kQuads];
  int32x4_t zero;
  float32x4_t lower_bound;  // of floats
  bool floats;
};

CUTOUT_NEON RequantiserNeon requantiser_neon_of(const ConvTask& task, int group) {
  const Conv& conv = *task.conv;
  const std::size_t at = static_cast<std::size_t>(group) * kLanes;
  const float factor = task.floats ? task.input_scale : 1.0F;
  RequantiserNeon made;
  for (int i = 0; i < kQuads; ++i) {
    made.scale[i] = vmulq_n_f32(vld1q_f32(conv.scales.data() + at + i * kQuad), factor);
    made.bias[i] = vld1q_s32(conv.bias.data() + at + i * kQuad);
  }
  made.zero = vdupq_n_s32(conv.zero);
  made.lower_bound = vdupq_n_f32(conv.relu ? 0.0F : -INFINITY);
  made.floats = task.floats;
  return made;
}

/// The number of 16 bits nearest to `value`, plus `zero`; for NaN the smallest, as on x86-64.
CUTOUT_NEON int16x4_t quantised(float32x4_t value, int32x4_t zero) {
  const float32x4_t bounded =
      vminnmq_f32(vmaxnmq_f32(value, vdupq_n_f32(-1e6F)), vdupq_n_f32(1e6F));
  return vqmovn_s32(vaddq_s32(vcvtnq_s32_f32(bounded), zero));
}

CUTOUT_NEON void store_scaled(const float32x4_t (&scaled)[kQuads],
                              const RequantiserNeon& requantiser, std::uint8_t* output) {
  if (requantiser.floats) {
    auto* const floats = reinterpret_cast<float*>(output);
    for (int i = 0; i < kQuads; ++i) {
      vst1q_f32(floats + i * kQuad, vmaxnmq_f32(scaled[i], requantiser.lower_bound));
    }
    return;
  }
  const int16x8_t first =
      vcombine_s16(quantised(scaled[0], requantiser.zero), quantised(scaled[1], requantiser.zero));
  const int16x8_t second =
      vcombine_s16(quantised(scaled[2], requantiser.zero), quantised(scaled[3], requantiser.zero));
  vst1q_u8(output, vcombine_u8(vqmovun_s16(first), vqmovun_s16(second)));
}

CUTOUT_NEON float32x4_t biased(const SumsNeon& sums, const RequantiserNeon& requantiser, int quad) {
  return vcvtq_f32_s32(vaddq_s32(sums.quad[quad], requantiser.bias[quad]));
}

/// Sums of kLanes channels of one pixel.
CUTOUT_NEON void requantise(const SumsNeon& sums, const RequantiserNeon& requantiser,
                            std::uint8_t* output) {
  float32x4_t values[kQuads];
  for (int i = 0; i < kQuads; ++i) {
    values[i] = vmulq_f32(biased(sums, requantiser, i), requantiser.scale[i]);
  }
  store_scaled(values, requantiser, output);
}

/// Requantises sums of 16-bit weights likewise: 256 * high + low.
CUTOUT_NEON void requantise(const SumsNeon& high, const SumsNeon& low,
                            const RequantiserNeon& requantiser, std::uint8_t* output) {
  float32x4_t values[kQuads];
  for (int i = 0; i < kQuads; ++i) {
    const float32x4_t upper = vmulq_n_f32(vcvtq_f32_s32(high.quad[i]), 256.0F);
    values[i] = vmulq_f32(vaddq_f32(upper, biased(low, requantiser, i)), requantiser.scale[i]);
  }
  store_scaled(values, requantiser, output);
}

}  // namespace cutout::low_precision
