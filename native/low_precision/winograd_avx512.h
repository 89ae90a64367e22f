// The Vector of winograd.h in registers of AVX-512, with an instruction set's `Dot`, whose
// dot(sums, pairs, weights) adds the products of two neighbouring 16-bit numbers.
#pragma once

#include <immintrin.h>

#include "low_precision/requantise_avx512.h"
#include "low_precision/winograd.h"

// GCC 12 takes the undefined operands of its own AVX-512 functions for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace cutout::low_precision {

namespace {

template <typename Dot>
struct Vector512 {
  using Int16s = __m512i;
  using Sums = __m512i;
  using Finisher = Requantiser512;
  static constexpr int kInt16s = 32;
  static constexpr int kTiles = 12;

  CUTOUT_AVX512 static inline Int16s widened(const std::uint8_t* bytes) {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes)));
  }
  /// The first two of every 4 bytes, or the last two.
  CUTOUT_AVX512 static inline Int16s two_of_four(const std::int8_t* packed, int last) {
    const __m512i bytes = _mm512_loadu_si512(packed);
    const __m512i order = _mm512_broadcast_i32x4(
        last == 0 ? _mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13)
                  : _mm_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15));
    return _mm512_srai_epi16(_mm512_shuffle_epi8(bytes, order), 8);
  }
  CUTOUT_AVX512 static inline Int16s plus(Int16s a, Int16s b) { return _mm512_add_epi16(a, b); }
  CUTOUT_AVX512 static inline Int16s minus(Int16s a, Int16s b) { return _mm512_sub_epi16(a, b); }
  CUTOUT_AVX512 static inline Int16s load(const std::int16_t* from) {
    return _mm512_load_si512(from);
  }
  CUTOUT_AVX512 static inline Int16s pair(const std::int16_t* from) {
    return _mm512_set1_epi32(four_bytes(from));
  }
  CUTOUT_AVX512 static inline void store(Int16s words, void* to) { _mm512_store_si512(to, words); }

  CUTOUT_AVX512 static inline Sums zero() { return _mm512_setzero_si512(); }
  CUTOUT_TARGET static CUTOUT_INLINE Sums dot(Sums sums, Int16s pairs, Int16s weights) {
    return Dot::dot(sums, pairs, weights);
  }
  CUTOUT_AVX512 static inline Sums load_sums(const std::int32_t* from) {
    return _mm512_load_si512(from);
  }
  CUTOUT_AVX512 static inline Sums add(Sums a, Sums b) { return _mm512_add_epi32(a, b); }
  CUTOUT_AVX512 static inline Sums subtract(Sums a, Sums b) { return _mm512_sub_epi32(a, b); }
  CUTOUT_AVX512 static inline Sums times(Sums a, int factor) {
    return _mm512_mullo_epi32(a, _mm512_set1_epi32(factor));
  }
  CUTOUT_AVX512 static inline Sums shifted(Sums a, int bits) {
    return _mm512_srai_epi32(a, static_cast<unsigned>(bits));
  }
};

}  // namespace

}  // namespace cutout::low_precision

#pragma GCC diagnostic pop
