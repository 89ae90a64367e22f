#include "low_precision/kernels.h"

#if defined(__x86_64__)

#define CUTOUT_TARGET \
  __attribute__((target("amx-tile,amx-int8,avx512f,avx512bw,avx512dq,avx512vl")))
#define CUTOUT_TILE_DOT(sums, inputs, weights) _tile_dpbusd(sums, inputs, weights)
#include "low_precision/conv_tiles.h"
#include "low_precision/unit_avx512.h"

namespace cutout::low_precision {

Kernel conv_amx() { return {&convolve_tiles<RequantisedSums>}; }

}  // namespace cutout::low_precision

#endif
