#include "low_precision/conv.h"

#if defined(__x86_64__)

#define CUTOUT_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#include "low_precision/conv_avx512.h"
#include "low_precision/requantise_avx512.h"
#include "low_precision/winograd_avx512.h"

namespace cutout::low_precision {

namespace {

struct Bytes : RequantisedSums {
  CUTOUT_TARGET static inline __attribute__((always_inline)) Sums dot(Sums sums, __m512i inputs,
                                                                      __m512i weights) {
    return _mm512_dpbusd_epi32(sums, inputs, weights);
  }
};

struct Words {
  CUTOUT_TARGET static inline __attribute__((always_inline)) __m512i dot(__m512i sums,
                                                                         __m512i pairs,
                                                                         __m512i weights) {
    return _mm512_dpwssd_epi32(sums, pairs, weights);
  }
};
using Vector = Vector512<Words>;

void run(const ConvTask& task, int first_row, int last_row, int first_group, int last_group) {
  if (task.transformed.empty()) {
    convolve<Bytes>(task, first_row, last_row, first_group, last_group);
  } else {
    convolve_tiles<Vector>(task, first_row, last_row, first_group, last_group);
  }
}

}  // namespace

Kernel avx512_vnni_kernel() {
  return {&run, false, &winograd_bytes, &transform_weights<Vector>, kOutputs};
}

}  // namespace cutout::low_precision

#endif
