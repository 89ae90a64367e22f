#include "low_precision/kernels.h"

#if defined(__x86_64__)

#define CUTOUT_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#include "low_precision/conv_avx512.h"
#include "low_precision/requantise_avx512.h"
#include "low_precision/winograd_avx512.h"

namespace cutout::low_precision {

namespace {

/// Sums of two products of 16 bits, as conv_avx2.cc has them.
struct Int16s {
  CUTOUT_AVX512 static inline __m512i dot(__m512i sums, __m512i pairs, __m512i weights) {
    return _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, weights));
  }
};

/// Bytes 0 and 2 of every 4, and 1 and 3, as 16 bits.
struct Bytes : RequantisedSums {
  CUTOUT_AVX512 static inline Sums dot(Sums sums, __m512i inputs, __m512i weights) {
    const __m512i even = _mm512_and_si512(inputs, _mm512_set1_epi16(0xff));
    const __m512i even_weights = _mm512_srai_epi16(_mm512_slli_epi16(weights, 8), 8);
    sums = Int16s::dot(sums, even, even_weights);
    return Int16s::dot(sums, _mm512_srli_epi16(inputs, 8), _mm512_srai_epi16(weights, 8));
  }
};

}  // namespace

Kernel conv_avx512() { return winograd_kernel<Bytes, Vector512<Int16s>>(); }

}  // namespace cutout::low_precision

#endif
