#include "low_precision/kernels.h"

#if defined(__x86_64__)

#define CUTOUT_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#include "low_precision/conv_avx512.h"
#include "low_precision/requantise_avx512.h"
#include "low_precision/winograd_avx512.h"

namespace cutout::low_precision {

namespace {

struct Bytes : RequantisedSums {
  CUTOUT_TARGET static CUTOUT_INLINE Sums dot(Sums sums, __m512i inputs, __m512i weights) {
    return _mm512_dpbusd_epi32(sums, inputs, weights);
  }
};

struct Int16s {
  CUTOUT_TARGET static CUTOUT_INLINE __m512i dot(__m512i sums, __m512i pairs, __m512i weights) {
    return _mm512_dpwssd_epi32(sums, pairs, weights);
  }
};

}  // namespace

Kernel conv_avx512_vnni() { return winograd_kernel<Bytes, Vector512<Int16s>>(); }

}  // namespace cutout::low_precision

#endif
