#include "low_precision/kernels.h"

#if defined(__x86_64__)

#define CUTOUT_TARGET \
  __attribute__((target("amx-tile,amx-int8,avx512f,avx512bw,avx512dq,avx512vl")))
#define CUTOUT_TILE_DOT(sums, inputs, weights) _tile_dpbusd(sums, inputs, weights)
#include "low_precision/conv_tiles.h"
#include "low_precision/requantise_avx512.h"

namespace cutout::low_precision {

namespace {

struct TilesOfInt8 {
  using Sum = std::int32_t;
  using Finisher = Requantiser512;
  static constexpr bool kWide = true;

  CUTOUT_AVX512 static inline __m512i load(const Sum* sums) { return _mm512_load_si512(sums); }
};

}  // namespace

Kernel conv_amx() { return {&convolve_tiles<TilesOfInt8>}; }

}  // namespace cutout::low_precision

#endif
