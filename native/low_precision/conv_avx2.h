// The loops of the kernels for AVX2 and AVX-VNNI. Each kernel includes them once, after defining
// CUTOUT_TARGET: a function is only inlined into one of the same instruction set.
//
// An Arithmetic has, for 8 output channels:
//   Inputs, inputs(four)                 from 4 bytes of one pixel in every lane
//   Weights, weights(packed)             from 4 bytes of each channel
//   dot(sums, inputs, weights)
#pragma once

#include <immintrin.h>

#include <algorithm>

#include "low_precision/conv.h"
#include "low_precision/requantise_avx2.h"

namespace cutout::low_precision {

namespace {

constexpr int kRowPixels = 6;

/// An Arithmetic that multiplies bytes as they are, but for its `dot`.
struct PlainBytes {
  using Inputs = __m256i;
  using Weights = __m256i;
  CUTOUT_TARGET static CUTOUT_INLINE Inputs inputs(__m256i four) { return four; }
  CUTOUT_TARGET static CUTOUT_INLINE Weights weights(__m256i packed) { return packed; }
};

/// Sums of kRowPixels neighbouring pixels for one panel, in registers.
template <typename Arithmetic>
CUTOUT_TARGET CUTOUT_INLINE void multiply(const ConvTask& task, const std::uint8_t* window,
                                          const std::int8_t* panel,
                                          __m256i (&sums)[kRowPixels][2]) {
  const std::ptrdiff_t stride = task.input.stride * task.conv->stride;
  for (auto& pixel : sums) pixel[0] = pixel[1] = _mm256_setzero_si256();
  for (std::size_t i = 0; i < task.offsets.size(); ++i) {
    const std::uint8_t* from = window + task.offsets[i];
    const auto* row = reinterpret_cast<const __m256i*>(panel + i * kChunkBytes);
    const int groups = (task.conv->chunks[i].bytes + 3) / 4;
    for (int j = 0; j < groups; ++j, from += 4, row += 2) {
      const typename Arithmetic::Weights first = Arithmetic::weights(_mm256_loadu_si256(row));
      const typename Arithmetic::Weights second = Arithmetic::weights(_mm256_loadu_si256(row + 1));
#pragma GCC unroll 8
      for (int p = 0; p < kRowPixels; ++p) {
        const typename Arithmetic::Inputs inputs =
            Arithmetic::inputs(_mm256_set1_epi32(four_bytes(from + p * stride)));
        sums[p][0] = Arithmetic::dot(sums[p][0], inputs, first);
        sums[p][1] = Arithmetic::dot(sums[p][1], inputs, second);
      }
    }
  }
}

template <typename Arithmetic>
CUTOUT_TARGET void convolve(const ConvTask& task, int first_row, int last_row, int first_group,
                            int last_group) {
  const bool int16_weights = task.conv->int16_weights;
  const int width = task.output.width;
  for (int group = first_group; group < last_group; ++group) {
    const std::int8_t* const weights = task.weights(group);
    const Requantiser256 requantiser(task, group);
    for (int y = first_row; y < last_row; ++y) {
      for (int x = 0; x < width; x += kRowPixels) {
        // The last ones of a row begin earlier and are computed twice.
        const int from = std::max(0, std::min(x, width - kRowPixels));
        __m256i sums[kRowPixels][2];
        __m256i low[kRowPixels][2];
        multiply<Arithmetic>(task, task.window(from, y), weights, sums);
        if (int16_weights) {
          multiply<Arithmetic>(task, task.window(from, y), weights + task.panel_bytes(), low);
        }
        const int pixels = std::min(kRowPixels, width - from);
        std::uint8_t* output = task.group_at(task.output.at(from, y), group);
        for (int p = 0; p < pixels; ++p, output += task.output.stride) {
          if (int16_weights) {
            requantiser.finish(sums[p], low[p], output);
          } else {
            requantiser.finish(sums[p], output);
          }
        }
      }
    }
  }
}

}  // namespace

}  // namespace cutout::low_precision
