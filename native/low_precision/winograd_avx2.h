// The Vector of winograd.h in registers of AVX2.
#pragma once

#include <immintrin.h>

#include "low_precision/requantise_avx2.h"
#include "low_precision/winograd.h"

namespace cutout::low_precision {

namespace {

struct Vector256 {
  using Int16s = __m256i;
  using Sums = __m256i;
  using Finisher = Requantiser256;
  static constexpr int kInt16s = 16;
  static constexpr int kTiles = 6;

  CUTOUT_AVX2 static inline Int16s widened(const std::uint8_t* bytes) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
  }
  /// The first two of every 4 bytes, or the last two.
  CUTOUT_AVX2 static inline Int16s two_of_four(const std::int8_t* packed, int last) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(packed));
    const __m256i order = _mm256_broadcastsi128_si256(
        last == 0 ? _mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13)
                  : _mm_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15));
    return _mm256_srai_epi16(_mm256_shuffle_epi8(bytes, order), 8);
  }
  CUTOUT_AVX2 static inline Int16s plus(Int16s a, Int16s b) { return _mm256_add_epi16(a, b); }
  CUTOUT_AVX2 static inline Int16s minus(Int16s a, Int16s b) { return _mm256_sub_epi16(a, b); }
  CUTOUT_AVX2 static inline Int16s load(const std::int16_t* from) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
  }
  CUTOUT_AVX2 static inline Int16s pair(const std::int16_t* from) {
    return _mm256_set1_epi32(four_bytes(from));
  }
  CUTOUT_AVX2 static inline void store(Int16s words, void* to) {
    _mm256_store_si256(static_cast<__m256i*>(to), words);
  }

  CUTOUT_AVX2 static inline Sums zero() { return _mm256_setzero_si256(); }
  CUTOUT_AVX2 static inline Sums dot(Sums sums, Int16s pairs, Int16s weights) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, weights));
  }
  CUTOUT_AVX2 static inline Sums load_sums(const std::int32_t* from) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
  }
  CUTOUT_AVX2 static inline Sums add(Sums a, Sums b) { return _mm256_add_epi32(a, b); }
  CUTOUT_AVX2 static inline Sums subtract(Sums a, Sums b) { return _mm256_sub_epi32(a, b); }
  CUTOUT_AVX2 static inline Sums times(Sums a, int factor) {
    return _mm256_mullo_epi32(a, _mm256_set1_epi32(factor));
  }
  CUTOUT_AVX2 static inline Sums shifted(Sums a, int bits) { return _mm256_srai_epi32(a, bits); }
};

}  // namespace

}  // namespace cutout::low_precision
