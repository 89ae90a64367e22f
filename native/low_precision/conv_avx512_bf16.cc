#include "low_precision/kernels.h"

#if defined(__x86_64__)

#define CUTOUT_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#include "low_precision/conv_avx512.h"
#include "low_precision/finish_bf16.h"

namespace cutout::low_precision {

namespace {

struct DotBf16 {
  using Sums = __m512;
  using Finisher = FinisherBf16;
  static constexpr bool kWide = false;

  CUTOUT_AVX512_BF16 static inline Sums zero() { return _mm512_setzero_ps(); }
  CUTOUT_AVX512_BF16 static inline Sums dot(Sums sums, __m512i inputs, __m512i weights) {
    return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(inputs),
                            reinterpret_cast<__m512bh>(weights));
  }
};

}  // namespace

Kernel conv_avx512_bf16() { return {&convolve<DotBf16>, true}; }

}  // namespace cutout::low_precision

#endif
