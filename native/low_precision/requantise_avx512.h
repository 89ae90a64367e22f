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

/// Constants of kLanes output channels, and what becomes of their sums in one pixel.
class Requantiser512 {
 public:
  Requantiser512() = default;
  CUTOUT_AVX512 Requantiser512(const ConvTask& task, int group) {
    const Conv& conv = *task.conv;
    const std::size_t at = static_cast<std::size_t>(group) * kLanes;
    const __m512 scale = _mm512_loadu_ps(conv.scales.data() + at);
    scale_ = task.floats ? _mm512_mul_ps(scale, _mm512_set1_ps(task.input_scale)) : scale;
    bias_ = _mm512_loadu_si512(conv.bias.data() + at);
    zero_ = _mm512_set1_epi32(conv.zero);
    lower_bound_ = _mm512_set1_ps(conv.relu ? 0.0F : -INFINITY);
    floats_ = task.floats;
  }

  CUTOUT_AVX512 void finish(__m512i sums, std::uint8_t* output) const {
    store(_mm512_cvtepi32_ps(_mm512_add_epi32(sums, bias_)), output);
  }
  /// Sums of 16-bit weights: 256 * high + low.
  CUTOUT_AVX512 void finish(__m512i high, __m512i low, std::uint8_t* output) const {
    const __m512 upper = _mm512_mul_ps(_mm512_cvtepi32_ps(high), _mm512_set1_ps(256.0F));
    store(_mm512_add_ps(upper, _mm512_cvtepi32_ps(_mm512_add_epi32(low, bias_))), output);
  }
  /// The same for the one register that a Vector of winograd.h has for kLanes sums.
  CUTOUT_AVX512 void finish(const __m512i (&sums)[1], std::uint8_t* output) const {
    finish(sums[0], output);
  }
  CUTOUT_AVX512 void finish(const __m512i (&high)[1], const __m512i (&low)[1],
                            std::uint8_t* output) const {
    finish(high[0], low[0], output);
  }

 private:
  CUTOUT_AVX512 void store(__m512 value, std::uint8_t* output) const {
    const __m512 scaled = _mm512_mul_ps(value, scale_);
    if (floats_) {
      _mm512_storeu_ps(reinterpret_cast<float*>(output), _mm512_max_ps(scaled, lower_bound_));
      return;
    }
    // What does not fit 32 bits would become the smallest number: cut off before.
    const __m512 bounded =
        _mm512_min_ps(_mm512_max_ps(scaled, _mm512_set1_ps(-1e6F)), _mm512_set1_ps(1e6F));
    const __m512i shifted = _mm512_add_epi32(_mm512_cvtps_epi32(bounded), zero_);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(output),
                     _mm512_cvtusepi32_epi8(_mm512_max_epi32(shifted, _mm512_setzero_si512())));
  }

  __m512 scale_;
  __m512i bias_;
  __m512i zero_;
  __m512 lower_bound_;  // of floats
  bool floats_;
};

/// What an Arithmetic of conv_avx512.h has beside its products.
struct RequantisedSums {
  using Sums = __m512i;
  using Finisher = Requantiser512;
  static constexpr bool kWide = true;

  CUTOUT_AVX512 static inline Sums zero() { return _mm512_setzero_si512(); }
};

}  // namespace cutout::low_precision

#pragma GCC diagnostic pop
