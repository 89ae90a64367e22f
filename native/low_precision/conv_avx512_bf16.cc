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
  CUTOUT_AVX512_BF16 static inline Finisher finisher(const ConvTask& task, int group) {
    return finisher_bf16(task, group);
  }
  CUTOUT_AVX512_BF16 static inline void finish(Sums sums, const Finisher& finisher,
                                               std::uint8_t* output) {
    finish_bf16(sums, finisher, output);
  }
};

}  // namespace

void conv_avx512_bf16(const ConvTask& task, int first_row, int last_row, int first_group,
                      int last_group) {
  convolve<DotBf16>(task, first_row, last_row, first_group, last_group);
}

}  // namespace cutout::low_precision

#endif
