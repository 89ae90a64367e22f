// The Unit of requantise.h and winograd.h in registers of AVX2.
#pragma once

#include <immintrin.h>

#include "low_precision/requantise.h"

namespace cutout::low_precision {

namespace {

struct Avx2Unit {
  typedef float Floats __attribute__((vector_size(32)));
  typedef std::int32_t Sums __attribute__((vector_size(32)));
  typedef std::uint16_t Int16s __attribute__((vector_size(32)));
  typedef std::uint32_t Int32s __attribute__((vector_size(32)));
  static constexpr int kCount = 2;
  static constexpr int kTiles = 6;

  CUTOUT_KERNEL static Floats at_least(Floats values, float low) {
    return _mm256_max_ps(values, _mm256_set1_ps(low));
  }
  CUTOUT_KERNEL static Floats at_most(Floats values, float high) {
    return _mm256_min_ps(values, _mm256_set1_ps(high));
  }
  CUTOUT_KERNEL static Sums rounded(Floats values) {
    return reinterpret_cast<Sums>(_mm256_cvtps_epi32(values));
  }
  CUTOUT_KERNEL static void store_bytes(const Sums (&values)[2], std::uint8_t* output) {
    const __m256i words =
        _mm256_permute4x64_epi64(_mm256_packs_epi32(reinterpret_cast<__m256i>(values[0]),
                                                    reinterpret_cast<__m256i>(values[1])),
                                 0xd8);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(output),
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
  CUTOUT_KERNEL static Int16s widened(const std::uint8_t* bytes) {
    return reinterpret_cast<Int16s>(
        _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes))));
  }
  CUTOUT_KERNEL static Int16s spread(const std::int8_t* packed, __m128i order) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(packed));
    const __m256i spread = _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(order));
    return reinterpret_cast<Int16s>(_mm256_srai_epi16(spread, 8));
  }
  CUTOUT_KERNEL static Int32s dot(Int32s sums, Int16s pairs, Int16s weights) {
    return sums + reinterpret_cast<Int32s>(_mm256_madd_epi16(reinterpret_cast<__m256i>(pairs),
                                                             reinterpret_cast<__m256i>(weights)));
  }
};

}  // namespace

}  // namespace cutout::low_precision
