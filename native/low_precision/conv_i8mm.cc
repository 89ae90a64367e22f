#include "low_precision/kernels.h"

#if defined(__aarch64__)

#define CUTOUT_TARGET __attribute__((target("arch=armv8.2-a+i8mm")))
#include "low_precision/conv_neon.h"

namespace cutout::low_precision {

namespace {

/// `usmmla` multiplies 8 unsigned inputs of two pixels by 8 signed weights of two channels.
struct MatrixProduct {
  static constexpr int kPairs = kRowPixels / 2;
  static constexpr int kChannelPairs = kLanes / 2;

  struct Start {};
  /// The sums of two pixels and two channels: the first pixel's, then the second's.
  struct Block {
    int32x4_t sums[kPairs][kChannelPairs];
  };

  CUTOUT_ARM static Start start(const ConvTask& /*task*/, const std::int8_t* /*panel*/) {
    return {};
  }
  CUTOUT_ARM static void begin(Block& block, Start /*start*/) {
    for (auto& pixels : block.sums) {
      for (int32x4_t& sums : pixels) sums = vdupq_n_s32(0);
    }
  }
  CUTOUT_ARM static void add(Block& block, const std::uint8_t* from, std::ptrdiff_t stride,
                             const std::int8_t* row) {
    add_eight(block, from, stride, row);
    add_eight(block, from + kStepInputs / 2, stride, row + kStepBytes / 2);
  }
  CUTOUT_ARM static void end(const Block& block, SumsNeon (&sums)[kRowPixels]) {
    for (int p = 0; p < kPairs; ++p) {
      for (int q = 0; q < kQuads; ++q) {
        const int64x2_t left = vreinterpretq_s64_s32(block.sums[p][2 * q]);
        const int64x2_t right = vreinterpretq_s64_s32(block.sums[p][2 * q + 1]);
        sums[2 * p].quad[q] = vreinterpretq_s32_s64(vzip1q_s64(left, right));
        sums[2 * p + 1].quad[q] = vreinterpretq_s32_s64(vzip2q_s64(left, right));
      }
    }
  }

 private:
  /// The products of 8 inputs of each pixel, whose weights are packed by fours.
  CUTOUT_ARM static void add_eight(Block& block, const std::uint8_t* from, std::ptrdiff_t stride,
                                   const std::int8_t* row) {
    uint8x16_t inputs[kPairs];
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      inputs[p] = vcombine_u8(vld1_u8(from + 2 * p * stride), vld1_u8(from + (2 * p + 1) * stride));
    }
#pragma GCC unroll 4
    for (int q = 0; q < kQuads; ++q) {
      const int32x4_t four = vreinterpretq_s32_s8(vld1q_s8(row + q * 16));
      const int32x4_t next = vreinterpretq_s32_s8(vld1q_s8(row + (kQuads + q) * 16));
      const int8x16_t left = vreinterpretq_s8_s32(vzip1q_s32(four, next));
      const int8x16_t right = vreinterpretq_s8_s32(vzip2q_s32(four, next));
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        int32x4_t(&sums)[kChannelPairs] = block.sums[p];
        sums[2 * q] = vusmmlaq_s32(sums[2 * q], inputs[p], left);
        sums[2 * q + 1] = vusmmlaq_s32(sums[2 * q + 1], inputs[p], right);
      }
    }
  }
};

}  // namespace

Kernel conv_i8mm() { return {&convolve<MatrixProduct>}; }

}  // namespace cutout::low_precision

#endif
