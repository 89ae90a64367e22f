// The Arithmetic of conv_rows.h in registers of AVX2, with `Products` of 4 inputs and the weights
// of 8 output channels:
//   Inputs, inputs(four)                 from 4 bytes of one pixel in every lane
//   Weights, weights(packed)             from 4 bytes of each channel
//   dot(sums, inputs, weights)
#pragma once

#include <algorithm>
#include <cstring>

#include "low_precision/conv_rows.h"
#include "low_precision/unit_avx2.h"

namespace cutout::low_precision {

namespace {

template <typename Products>
struct Avx2Rows {
  using Unit = Avx2Unit;
  struct Start {};
  using Block = RowSums<Unit>;
  static constexpr int kStepInputs = 4;

  CUTOUT_KERNEL static Start start(const ConvTask& /*task*/, const std::int8_t* /*panel*/) {
    return {};
  }
  CUTOUT_KERNEL static void begin(Block& block, Start /*start*/) {
    for (auto& pixel : block) pixel[0] = pixel[1] = Unit::Sums{};
  }
  CUTOUT_KERNEL static void add(Block& block, const std::uint8_t* from, std::ptrdiff_t stride,
                                const std::int8_t* row) {
    const auto* const packed = reinterpret_cast<const __m256i*>(row);
    const typename Products::Weights first = Products::weights(_mm256_loadu_si256(packed));
    const typename Products::Weights second = Products::weights(_mm256_loadu_si256(packed + 1));
#pragma GCC unroll 8
    for (int p = 0; p < kRowPixels; ++p) {
      std::int32_t four;
      std::memcpy(&four, from + p * stride, sizeof(four));
      const typename Products::Inputs inputs = Products::inputs(_mm256_set1_epi32(four));
      block[p][0] = Products::dot(block[p][0], inputs, first);
      block[p][1] = Products::dot(block[p][1], inputs, second);
    }
  }
  CUTOUT_KERNEL static void end(const Block& block, RowSums<Unit>& sums) {
    std::memcpy(&sums, &block, sizeof sums);
  }
};

}  // namespace

}  // namespace cutout::low_precision
