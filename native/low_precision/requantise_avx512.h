#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>

#include "low_precision/conv.h"

// GCC 12 takes the undefined operands of its own AVX-512 functions for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace cutout::low_precision {

#define CUTOUT_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"), always_inline))

/// Constants of kLanes output channels, and what becomes of their sums.
struct Requantiser512 {
  __m512 scale;
  __m512i bias;
  __m512i zero;
  __m512 lower_bound;  // of floats
  bool floats;
};

CUTOUT_AVX512 inline Requantiser512 requantiser_of(const ConvTask& task, int group) {
  const Conv& conv = *task.conv;
  const std::size_t at = static_cast<std::size_t>(group) * kLanes;
  const __m512 scale = _mm512_loadu_ps(conv.scales.data() + at);
  return {task.floats ? _mm512_mul_ps(scale, _mm512_set1_ps(task.input_scale)) : scale,
          _mm512_loadu_si512(conv.bias.data() + at), _mm512_set1_epi32(conv.zero),
          _mm512_set1_ps(conv.relu ? 0.0F : -INFINITY), task.floats};
}

CUTOUT_AVX512 inline void store_scaled(__m512 scaled, const Requantiser512& requantiser,
                                       std::uint8_t* output) {
  if (requantiser.floats) {
    _mm512_storeu_ps(reinterpret_cast<float*>(output),
                     _mm512_max_ps(scaled, requantiser.lower_bound));
    return;
  }
  // What does not fit 32 bits would become the smallest number: cut off before.
  const __m512 bounded =
      _mm512_min_ps(_mm512_max_ps(scaled, _mm512_set1_ps(-1e6F)), _mm512_set1_ps(1e6F));
  const __m512i shifted = _mm512_add_epi32(_mm512_cvtps_epi32(bounded), requantiser.zero);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(output),
                   _mm512_cvtusepi32_epi8(_mm512_max_epi32(shifted, _mm512_setzero_si512())));
}

/// Sums of kLanes channels of one pixel.
CUTOUT_AVX512 inline void requantise(__m512i sums, const Requantiser512& requantiser,
                                     std::uint8_t* output) {
  const __m512 value = _mm512_cvtepi32_ps(_mm512_add_epi32(sums, requantiser.bias));
  store_scaled(_mm512_mul_ps(value, requantiser.scale), requantiser, output);
}

/// Requantises sums of 16-bit weights likewise: 256 * high + low.
CUTOUT_AVX512 inline void requantise(__m512i high, __m512i low, const Requantiser512& requantiser,
                                     std::uint8_t* output) {
  const __m512 upper = _mm512_mul_ps(_mm512_cvtepi32_ps(high), _mm512_set1_ps(256.0F));
  const __m512 value =
      _mm512_add_ps(upper, _mm512_cvtepi32_ps(_mm512_add_epi32(low, requantiser.bias)));
  store_scaled(_mm512_mul_ps(value, requantiser.scale), requantiser, output);
}

/// What an Arithmetic of conv_avx512.h has beside its products.
struct RequantisedSums {
  using Sums = __m512i;
  using Finisher = Requantiser512;
  static constexpr bool kWide = true;

  CUTOUT_AVX512 static inline Sums zero() { return _mm512_setzero_si512(); }
  CUTOUT_AVX512 static inline Finisher finisher(const ConvTask& task, int group) {
    return requantiser_of(task, group);
  }
  CUTOUT_AVX512 static inline void finish(Sums sums, const Finisher& finisher,
                                          std::uint8_t* output) {
    requantise(sums, finisher, output);
  }
  CUTOUT_AVX512 static inline void finish(Sums high, Sums low, const Finisher& finisher,
                                          std::uint8_t* output) {
    requantise(high, low, finisher, output);
  }
};

}  // namespace cutout::low_precision

#pragma GCC diagnostic pop
