#include "image/layers.h"

#include "core/simd.h"
#include "image/math/layers.h"

namespace cutout {

CUTOUT_SIMD void lay_over(std::uint32_t* __restrict pixels,
                          const std::uint32_t* __restrict background,
                          const float* __restrict shadow, int n) {
  for (int x = 0; x < n; ++x) pixels[x] = laid_over(pixels[x], background[x], shadow[x]);
}

}  // namespace cutout
