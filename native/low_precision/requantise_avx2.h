#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>

#include "low_precision/conv.h"

namespace cutout::low_precision {

#define CUTOUT_AVX2 __attribute__((target("avx2"), always_inline))

/// Constants of kLanes output channels, and what becomes of their sums in one pixel, which are in
/// two registers.
class Requantiser256 {
 public:
  CUTOUT_AVX2 Requantiser256(const ConvTask& task, int group) {
    const Conv& conv = *task.conv;
    const std::size_t at = static_cast<std::size_t>(group) * kLanes;
    const __m256 factor = _mm256_set1_ps(task.floats ? task.input_scale : 1.0F);
    for (int half = 0; half < 2; ++half) {
      const std::size_t from = at + static_cast<std::size_t>(half) * kLanes / 2;
      scale_[half] = _mm256_mul_ps(_mm256_loadu_ps(conv.scales.data() + from), factor);
      bias_[half] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(conv.bias.data() + from));
    }
    zero_ = _mm256_set1_epi32(conv.zero);
    lower_bound_ = _mm256_set1_ps(conv.relu ? 0.0F : -INFINITY);
    floats_ = task.floats;
  }

  CUTOUT_AVX2 void finish(const __m256i (&sums)[2], std::uint8_t* output) const {
    store(biased(sums, 0), biased(sums, 1), output);
  }
  /// Sums of 16-bit weights: 256 * high + low.
  CUTOUT_AVX2 void finish(const __m256i (&high)[2], const __m256i (&low)[2],
                          std::uint8_t* output) const {
    store(_mm256_add_ps(upper(high[0]), biased(low, 0)),
          _mm256_add_ps(upper(high[1]), biased(low, 1)), output);
  }

 private:
  CUTOUT_AVX2 [[nodiscard]] __m256 biased(const __m256i (&sums)[2], int half) const {
    return _mm256_cvtepi32_ps(_mm256_add_epi32(sums[half], bias_[half]));
  }
  CUTOUT_AVX2 static __m256 upper(__m256i high) {
    return _mm256_mul_ps(_mm256_cvtepi32_ps(high), _mm256_set1_ps(256.0F));
  }
  /// What does not fit 32 bits would become the smallest number: cut off before.
  CUTOUT_AVX2 [[nodiscard]] __m256i quantised(__m256 value) const {
    const __m256 bounded =
        _mm256_min_ps(_mm256_max_ps(value, _mm256_set1_ps(-1e6F)), _mm256_set1_ps(1e6F));
    return _mm256_add_epi32(_mm256_cvtps_epi32(bounded), zero_);
  }
  CUTOUT_AVX2 void store(__m256 first, __m256 second, std::uint8_t* output) const {
    first = _mm256_mul_ps(first, scale_[0]);
    second = _mm256_mul_ps(second, scale_[1]);
    if (floats_) {
      auto* const floats = reinterpret_cast<float*>(output);
      _mm256_storeu_ps(floats, _mm256_max_ps(first, lower_bound_));
      _mm256_storeu_ps(floats + kLanes / 2, _mm256_max_ps(second, lower_bound_));
      return;
    }
    const __m256i words =
        _mm256_permute4x64_epi64(_mm256_packs_epi32(quantised(first), quantised(second)), 0xd8);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(output),
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }

  __m256 scale_[2];
  __m256i bias_[2];
  __m256i zero_;
  __m256 lower_bound_;  // of floats
  bool floats_;
};

}  // namespace cutout::low_precision
