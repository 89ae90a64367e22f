// The Unit of requantise.h in registers of Arm's Advanced SIMD.
#pragma once

#include <arm_neon.h>

#include "low_precision/requantise.h"

namespace cutout::low_precision {

namespace {

struct NeonUnit {
  using Floats = float32x4_t;
  using Sums = int32x4_t;
  static constexpr int kCount = 4;

  CUTOUT_KERNEL static Floats at_least(Floats values, float low) {
    return vmaxnmq_f32(values, vdupq_n_f32(low));
  }
  CUTOUT_KERNEL static Floats at_most(Floats values, float high) {
    return vminnmq_f32(values, vdupq_n_f32(high));
  }
  CUTOUT_KERNEL static Sums rounded(Floats values) { return vcvtnq_s32_f32(values); }
  CUTOUT_KERNEL static void store_bytes(const Sums (&values)[4], std::uint8_t* output) {
    const int16x8_t first = vcombine_s16(vqmovn_s32(values[0]), vqmovn_s32(values[1]));
    const int16x8_t second = vcombine_s16(vqmovn_s32(values[2]), vqmovn_s32(values[3]));
    vst1q_u8(output, vcombine_u8(vqmovun_s16(first), vqmovun_s16(second)));
  }
};

}  // namespace

}  // namespace cutout::low_precision
