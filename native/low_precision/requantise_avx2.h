#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>

#include "low_precision/conv.h"

namespace cutout::low_precision {

#define CUTOUT_AVX2 __attribute__((target("avx2"), always_inline))

/// Sums of kLanes output channels of one pixel, in two halves.
struct Sums256 {
  __m256i half[2];
};

/// Constants of kLanes output channels, and what becomes of their sums.
struct Requantiser256 {
  __m256 scale[2];
  __m256i bias[2];
  __m256i zero;
  __m256 lower_bound;  // of floats
  bool floats;
};

CUTOUT_AVX2 inline Requantiser256 requantiser256_of(const ConvTask& task, int group) {
  const Conv& conv = *task.conv;
  const std::size_t at = static_cast<std::size_t>(group) * kLanes;
  const float* const scales = conv.scales.data() + at;
  const auto* const biases = reinterpret_cast<const __m256i*>(conv.bias.data() + at);
  const __m256 factor = _mm256_set1_ps(task.floats ? task.input_scale : 1.0F);
  return {{_mm256_mul_ps(_mm256_loadu_ps(scales), factor),
           _mm256_mul_ps(_mm256_loadu_ps(scales + kLanes / 2), factor)},
          {_mm256_loadu_si256(biases), _mm256_loadu_si256(biases + 1)},
          _mm256_set1_epi32(conv.zero),
          _mm256_set1_ps(conv.relu ? 0.0F : -INFINITY),
          task.floats};
}

/// What does not fit 32 bits would become the smallest number: cut off before.
CUTOUT_AVX2 inline __m256i quantised(__m256 value, __m256i zero) {
  const __m256 bounded =
      _mm256_min_ps(_mm256_max_ps(value, _mm256_set1_ps(-1e6F)), _mm256_set1_ps(1e6F));
  return _mm256_add_epi32(_mm256_cvtps_epi32(bounded), zero);
}

CUTOUT_AVX2 inline void store_scaled(__m256 first, __m256 second, const Requantiser256& requantiser,
                                     std::uint8_t* output) {
  if (requantiser.floats) {
    auto* const floats = reinterpret_cast<float*>(output);
    _mm256_storeu_ps(floats, _mm256_max_ps(first, requantiser.lower_bound));
    _mm256_storeu_ps(floats + kLanes / 2, _mm256_max_ps(second, requantiser.lower_bound));
    return;
  }
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32(quantised(first, requantiser.zero), quantised(second, requantiser.zero)),
      0xd8);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(output),
      _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

CUTOUT_AVX2 inline __m256 biased(const Sums256& sums, const Requantiser256& requantiser, int half) {
  return _mm256_cvtepi32_ps(_mm256_add_epi32(sums.half[half], requantiser.bias[half]));
}

/// Sums of kLanes channels of one pixel.
CUTOUT_AVX2 inline void requantise(const Sums256& sums, const Requantiser256& requantiser,
                                   std::uint8_t* output) {
  store_scaled(_mm256_mul_ps(biased(sums, requantiser, 0), requantiser.scale[0]),
               _mm256_mul_ps(biased(sums, requantiser, 1), requantiser.scale[1]), requantiser,
               output);
}

/// Requantises sums of 16-bit weights likewise: 256 * high + low.
CUTOUT_AVX2 inline void requantise(const Sums256& high, const Sums256& low,
                                   const Requantiser256& requantiser, std::uint8_t* output) {
  __m256 values[2];
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m256 upper = _mm256_mul_ps(_mm256_cvtepi32_ps(high.half[half]), _mm256_set1_ps(256.0F));
    values[half] = _mm256_mul_ps(_mm256_add_ps(upper, biased(low, requantiser, half)),
                                 requantiser.scale[half]);
  }
  store_scaled(values[0], values[1], requantiser, output);
}

}  // namespace cutout::low_precision
