#include "low_precision/kernels.h"

#if defined(__x86_64__)

#define CUTOUT_TARGET __attribute__((target("avx2,avxvnni")))
#include "low_precision/conv_avx2.h"

namespace cutout::low_precision {

namespace {

struct AvxVnni : PlainBytes {
  CUTOUT_TARGET static CUTOUT_INLINE __m256i dot(__m256i sums, Inputs inputs, Weights weights) {
    return _mm256_dpbusd_avx_epi32(sums, inputs, weights);
  }
};

}  // namespace

Kernel conv_avx_vnni() { return {&convolve<AvxVnni>}; }

}  // namespace cutout::low_precision

#endif
