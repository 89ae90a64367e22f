#include "low_precision/kernels.h"

#if defined(__x86_64__)

#define CUTOUT_TARGET __attribute__((target("avx2")))
#include "low_precision/conv_avx2.h"
#include "low_precision/winograd_avx2.h"

namespace cutout::low_precision {

namespace {

/// Products of 16 bits, whose sums of two fit 32: `vpmaddubsw`, which takes bytes, saturates at 16.
struct Avx2 {
  /// Bytes 0 and 2 of every 4, and 1 and 3, as 16 bits.
  struct Pairs {
    __m256i even;
    __m256i odd;
  };
  using Inputs = Pairs;
  using Weights = Pairs;

  CUTOUT_TARGET static CUTOUT_INLINE Inputs inputs(__m256i four) {
    return {_mm256_and_si256(four, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(four, 8)};
  }
  CUTOUT_TARGET static CUTOUT_INLINE Weights weights(__m256i packed) {
    return {_mm256_srai_epi16(_mm256_slli_epi16(packed, 8), 8), _mm256_srai_epi16(packed, 8)};
  }
  CUTOUT_TARGET static CUTOUT_INLINE __m256i dot(__m256i sums, const Inputs& inputs,
                                                 const Weights& weights) {
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(inputs.even, weights.even));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(inputs.odd, weights.odd));
  }
};

/// Products of 16 bits where every weight is small enough for two of them.
struct Avx2Int7 : PlainBytes {
  CUTOUT_TARGET static CUTOUT_INLINE __m256i dot(__m256i sums, Inputs inputs, Weights weights) {
    const __m256i pairs = _mm256_maddubs_epi16(inputs, weights);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

CUTOUT_TARGET void run(const ConvTask& task, int first_row, int last_row, int first_group,
                       int last_group) {
  const ConvKernel own =
      task.conv->int7_weights ? &convolve<Avx2Int7> : winograd_kernel<Avx2, Vector256>().run;
  own(task, first_row, last_row, first_group, last_group);
}

}  // namespace

Kernel conv_avx2() {
  Kernel kernel = winograd_kernel<Avx2, Vector256>();
  kernel.run = &run;
  return kernel;
}

}  // namespace cutout::low_precision

#endif
