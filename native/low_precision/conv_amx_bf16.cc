#include "low_precision/kernels.h"

#if defined(__x86_64__)

#define CUTOUT_TARGET \
  __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define CUTOUT_TILE_DOT(sums, inputs, weights) _tile_dpbf16ps(sums, inputs, weights)
#include "low_precision/conv_tiles.h"
#include "low_precision/finish_bf16.h"

namespace cutout::low_precision {

namespace {

struct TilesOfBf16 {
  using Sum = float;
  using Finisher = FinisherBf16;
  static constexpr bool kWide = false;

  CUTOUT_AVX512_BF16 static inline __m512 load(const Sum* sums) { return _mm512_load_ps(sums); }
};

}  // namespace

Kernel conv_amx_bf16() { return {&convolve_tiles<TilesOfBf16>, true}; }

}  // namespace cutout::low_precision

#endif
