#include "low_precision/conv.h"

#if defined(__x86_64__)

#define CUTOUT_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#include "low_precision/conv_avx512.h"
#include "low_precision/requantise_avx512.h"

namespace cutout::low_precision {

namespace {

struct Vnni {
  using Sums = __m512i;
  using Finisher = Requantiser512;
  static constexpr bool kWide = true;

  CUTOUT_TARGET static inline __attribute__((always_inline)) Sums zero() {
    return _mm512_setzero_si512();
  }
  CUTOUT_TARGET static inline __attribute__((always_inline)) Sums dot(Sums sums, __m512i inputs,
                                                                      __m512i weights) {
    return _mm512_dpbusd_epi32(sums, inputs, weights);
  }
  CUTOUT_AVX512 static inline Finisher finisher(const ConvTask& task, int group) {
    return requantiser_of(task, group);
  }
  CUTOUT_AVX512 static inline void finish(Sums sums, const Finisher& finisher,
                                          std::uint8_t* output) {
    requantise(sums, finisher, output);
  }
  CUTOUT_AVX512 static inline void finish(Sums high, Sums low, const Finisher& finisher,
                                          std::uint8_t* output) {
    requantise(high, low, finisher, output);
  }
};

}  // namespace

void conv_avx512_vnni(const ConvTask& task, int first_row, int last_row, int first_group,
                      int last_group) {
  convolve<Vnni>(task, first_row, last_row, first_group, last_group);
}

}  // namespace cutout::low_precision

#endif
