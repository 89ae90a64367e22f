#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>

#include "low_precision/conv.h"

// GCC 12 takes the undefined operands of its own AVX-512 functions for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace cutout::low_precision {

#define CUTOUT_AVX512_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"), always_inline))

/// Constants of kLanes output channels, and what becomes of their sums.
struct FinisherBf16 {
  __m512 bias;
  __m512 lower_bound;
  bool floats;
};

CUTOUT_AVX512_BF16 inline FinisherBf16 finisher_bf16(const ConvTask& task, int group) {
  const std::size_t at = static_cast<std::size_t>(group) * kLanes;
  return {_mm512_loadu_ps(task.conv->float_bias.data() + at),
          _mm512_set1_ps(task.conv->relu ? 0.0F : -INFINITY), task.floats};
}

/// Stores the outputs of one pixel.
CUTOUT_AVX512_BF16 inline void finish_bf16(__m512 sums, const FinisherBf16& finisher,
                                           std::uint8_t* output) {
  const __m512 value = _mm512_max_ps(_mm512_add_ps(sums, finisher.bias), finisher.lower_bound);
  if (finisher.floats) {
    _mm512_storeu_ps(output, value);
    return;
  }
  const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(output), rounded);
}

}  // namespace cutout::low_precision

#pragma GCC diagnostic pop
