#include "low_precision/kernels.h"

#if defined(__aarch64__)

#define CUTOUT_TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#include "low_precision/conv_neon.h"

namespace cutout::low_precision {

namespace {

/// `sdot` multiplies signed bytes: sums of (input - 128) * weight, which begin with those of
/// 128 * weight.
struct DotProduct {
  using Start = SumsNeon;
  struct Block {
    SumsNeon pixels[kRowPixels];
  };

  CUTOUT_ARM static Start start(const ConvTask& task, const std::int8_t* panel) {
    const int8x16_t least = vdupq_n_s8(-128);
    SumsNeon sums;
    for (int32x4_t& quad : sums.quad) quad = vdupq_n_s32(0);
    const std::int8_t* const end = panel + task.panel_bytes();
    for (; panel < end; panel += kQuads * 16) {
      for (int q = 0; q < kQuads; ++q) {
        sums.quad[q] = vdotq_s32(sums.quad[q], vld1q_s8(panel + q * 16), least);
      }
    }
    for (int32x4_t& quad : sums.quad) quad = vnegq_s32(quad);
    return sums;
  }
  CUTOUT_ARM static void begin(Block& block, const Start& start) {
    for (SumsNeon& pixel : block.pixels) pixel = start;
  }
  CUTOUT_ARM static void add(Block& block, const std::uint8_t* from, std::ptrdiff_t stride,
                             const std::int8_t* row) {
    int8x16_t inputs[kRowPixels];
#pragma GCC unroll 8
    for (int p = 0; p < kRowPixels; ++p) {
      inputs[p] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from + p * stride), vdupq_n_u8(0x80)));
    }
    add_four<0>(block, inputs, row);
    add_four<1>(block, inputs, row);
    add_four<2>(block, inputs, row);
    add_four<3>(block, inputs, row);
  }
  CUTOUT_ARM static void end(const Block& block, SumsNeon (&sums)[kRowPixels]) {
    std::copy_n(block.pixels, kRowPixels, sums);
  }

 private:
  /// The products of inputs [4 * kFour, 4 * kFour + 4).
  template <int kFour>
  CUTOUT_ARM static void add_four(Block& block, const int8x16_t (&inputs)[kRowPixels],
                                  const std::int8_t* row) {
#pragma GCC unroll 4
    for (int q = 0; q < kQuads; ++q) {
      const int8x16_t weights = vld1q_s8(row + (kFour * kQuads + q) * 16);
#pragma GCC unroll 8
      for (int p = 0; p < kRowPixels; ++p) {
        int32x4_t& sum = block.pixels[p].quad[q];
        sum = vdotq_laneq_s32(sum, weights, inputs[p], kFour);
      }
    }
  }
};

}  // namespace

Kernel conv_asimddp() { return {&convolve<DotProduct>}; }

}  // namespace cutout::low_precision

#endif
