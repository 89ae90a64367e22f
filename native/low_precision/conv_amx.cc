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

  CUTOUT_AVX512 static inline Finisher finisher(const ConvTask& task, int group) {
    return requantiser_of(task, group);
  }
  CUTOUT_AVX512 static inline void finish(const Sum* sums, const Finisher& finisher,
                                          std::uint8_t* output) {
    requantise(_mm512_load_si512(sums), finisher, output);
  }
  CUTOUT_AVX512 static inline void finish(const Sum* high, const Sum* low, const Finisher& finisher,
                                          std::uint8_t* output) {
    requantise(_mm512_load_si512(high), _mm512_load_si512(low), finisher, output);
  }
};

}  // namespace

void conv_amx(const ConvTask& task, int first_row, int last_row, int first_group, int last_group) {
  convolve_tiles<TilesOfInt8>(task, first_row, last_row, first_group, last_group);
}

}  // namespace cutout::low_precision

#endif
