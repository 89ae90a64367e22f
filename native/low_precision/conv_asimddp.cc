#include "low_precision/kernels.h"

#if defined(__aarch64__)

#define CUTOUT_TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#include "low_precision/conv_rows.h"
#include "low_precision/unit_neon.h"

namespace cutout::low_precision {

namespace {

/// `sdot` multiplies signed bytes: sums of (input - 128) * weight, which begin with those of
/// 128 * weight.
struct DotProduct {
  using Unit = NeonUnit;
  struct Start {
    GroupSums<Unit> sums;
  };
  using Block = RowSums<Unit>;
  static constexpr int kStepInputs = 16;

  CUTOUT_KERNEL static Start start(const ConvTask& task, const std::int8_t* panel) {
    const int8x16_t least = vdupq_n_s8(-128);
    Start start{};
    const std::int8_t* const end = panel + task.panel_bytes();
    for (; panel < end; panel += Unit::kCount * 16) {
      for (int q = 0; q < Unit::kCount; ++q) {
        start.sums[q] = vdotq_s32(start.sums[q], vld1q_s8(panel + q * 16), least);
      }
    }
    for (int32x4_t& quad : start.sums) quad = vnegq_s32(quad);
    return start;
  }
  CUTOUT_KERNEL static void begin(Block& block, const Start& start) {
    for (auto& pixel : block) std::copy_n(start.sums, Unit::kCount, pixel);
  }
  CUTOUT_KERNEL static void add(Block& block, const std::uint8_t* from, std::ptrdiff_t stride,
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
  CUTOUT_KERNEL static void end(const Block& block, RowSums<Unit>& sums) {
    std::memcpy(&sums, &block, sizeof sums);
  }

 private:
  /// The products of inputs [4 * kFour, 4 * kFour + 4).
  template <int kFour>
  CUTOUT_KERNEL static void add_four(Block& block, const int8x16_t (&inputs)[kRowPixels],
                                     const std::int8_t* row) {
#pragma GCC unroll 4
    for (int q = 0; q < Unit::kCount; ++q) {
      const int8x16_t weights = vld1q_s8(row + (kFour * Unit::kCount + q) * 16);
#pragma GCC unroll 8
      for (int p = 0; p < kRowPixels; ++p) {
        int32x4_t& sum = block[p][q];
        sum = vdotq_laneq_s32(sum, weights, inputs[p], kFour);
      }
    }
  }
};

}  // namespace

Kernel conv_asimddp() { return {&convolve<DotProduct>}; }

}  // namespace cutout::low_precision

#endif
