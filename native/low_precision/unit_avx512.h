// The Unit of requantise.h in registers of AVX-512, and that of winograd.h with an instruction
// set's `Dot`, whose dot(sums, pairs, weights) adds the products of two neighbouring 16-bit
// numbers.
#pragma once

#include <immintrin.h>

#include "low_precision/requantise.h"

// GCC 12 takes the undefined operands of its own AVX-512 functions for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace cutout::low_precision {

namespace {

struct Avx512Unit {
  typedef float Floats __attribute__((vector_size(64)));
  typedef std::int32_t Sums __attribute__((vector_size(64)));
  static constexpr int kCount = 1;

  CUTOUT_KERNEL static Floats at_least(Floats values, float low) {
    return _mm512_max_ps(values, _mm512_set1_ps(low));
  }
  CUTOUT_KERNEL static Floats at_most(Floats values, float high) {
    return _mm512_min_ps(values, _mm512_set1_ps(high));
  }
  CUTOUT_KERNEL static Sums rounded(Floats values) {
    return reinterpret_cast<Sums>(_mm512_cvtps_epi32(values));
  }
  CUTOUT_KERNEL static void store_bytes(const Sums (&values)[1], std::uint8_t* output) {
    const __m512i positive =
        _mm512_max_epi32(reinterpret_cast<__m512i>(values[0]), _mm512_setzero_si512());
    _mm_storeu_si128(reinterpret_cast<__m128i*>(output), _mm512_cvtusepi32_epi8(positive));
  }
};

/// What an Arithmetic of conv_avx512.h and conv_tiles.h has beside its products.
struct RequantisedSums {
  using Sum = std::int32_t;
  using Sums = Avx512Unit::Sums;
  using Finisher = Requantiser<Avx512Unit>;
  static constexpr bool kWide = true;

  CUTOUT_KERNEL static Finisher finisher(const ConvTask& task, int group) {
    return requantiser_of<Avx512Unit>(task, group);
  }
  CUTOUT_KERNEL static void finish(const Sums& sums, const Finisher& finisher,
                                   std::uint8_t* output) {
    requantise<Avx512Unit>({sums}, finisher, output);
  }
  CUTOUT_KERNEL static void finish(const Sums& high, const Sums& low, const Finisher& finisher,
                                   std::uint8_t* output) {
    requantise<Avx512Unit>({high}, {low}, finisher, output);
  }
};

template <typename Dot>
struct Avx512Tiles : Avx512Unit {
  typedef std::uint16_t Int16s __attribute__((vector_size(64)));
  typedef std::uint32_t Int32s __attribute__((vector_size(64)));
  static constexpr int kTiles = 12;

  CUTOUT_KERNEL static Int16s widened(const std::uint8_t* bytes) {
    return reinterpret_cast<Int16s>(
        _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes))));
  }
  CUTOUT_KERNEL static Int16s spread(const std::int8_t* packed, __m128i order) {
    const __m512i bytes = _mm512_loadu_si512(packed);
    const __m512i spread = _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(order));
    return reinterpret_cast<Int16s>(_mm512_srai_epi16(spread, 8));
  }
  CUTOUT_KERNEL static Int32s dot(Int32s sums, Int16s pairs, Int16s weights) {
    return reinterpret_cast<Int32s>(Dot::dot(reinterpret_cast<__m512i>(sums),
                                             reinterpret_cast<__m512i>(pairs),
                                             reinterpret_cast<__m512i>(weights)));
  }
};

}  // namespace

}  // namespace cutout::low_precision

#pragma GCC diagnostic pop
