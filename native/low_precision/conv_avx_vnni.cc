#include "low_precision/kernels.h"

#if defined(__x86_64__)

#define CUTOUT_TARGET __attribute__((target("avx2,avxvnni")))
#include "low_precision/conv_avx2.h"

namespace cutout::low_precision {

namespace {

struct ByteProducts {
  using Inputs = __m256i;
  using Weights = __m256i;

  CUTOUT_KERNEL static Inputs inputs(__m256i four) { return four; }
  CUTOUT_KERNEL static Weights weights(__m256i packed) { return packed; }
  CUTOUT_KERNEL static Avx2Unit::Sums dot(Avx2Unit::Sums sums, Inputs inputs, Weights weights) {
    return reinterpret_cast<Avx2Unit::Sums>(
        _mm256_dpbusd_avx_epi32(reinterpret_cast<__m256i>(sums), inputs, weights));
  }
};

}  // namespace

Kernel conv_avx_vnni() { return {&convolve<Avx2Rows<ByteProducts>>}; }

}  // namespace cutout::low_precision

#endif
