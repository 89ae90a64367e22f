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

/// Constants of kLanes output channels, and what becomes of their sums in one pixel.
class FinisherBf16 {
 public:
  FinisherBf16() = default;
  CUTOUT_AVX512_BF16 FinisherBf16(const ConvTask& task, int group)
      : bias_(_mm512_loadu_ps(task.conv->float_bias.data() +
                              static_cast<std::size_t>(group) * kLanes)),
        lower_bound_(_mm512_set1_ps(task.conv->relu ? 0.0F : -INFINITY)),
        floats_(task.floats) {}

  CUTOUT_AVX512_BF16 void finish(__m512 sums, std::uint8_t* output) const {
    const __m512 value = _mm512_max_ps(_mm512_add_ps(sums, bias_), lower_bound_);
    if (floats_) {
      _mm512_storeu_ps(output, value);
      return;
    }
    const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(output), rounded);
  }

 private:
  __m512 bias_;
  __m512 lower_bound_;
  bool floats_;
};

}  // namespace cutout::low_precision

#pragma GCC diagnostic pop
